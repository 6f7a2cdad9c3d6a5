"""What people say to get a model served."""

from typing import Self

from pydantic import Field, InstanceOf, field_validator, model_validator

from ..domain.accelerators import Accelerator
from ..domain.args import Args
from ..domain.quantities import Quantity
from ..domain.registration import Access, EndpointType
from ..domain.scaling import Scaling
from ..domain.timeouts import Timeouts
from ..domain.weights import Weights
from .platform import Platform
from .runtimes import Runtime


class Resources(Args):
    """What one worker's model container may use."""

    cpu: Quantity = "500m"
    """Processors that are kept for it; it may use more when they are idle."""
    memory: Quantity = "1Gi"
    """Memory, with what it keeps in ``/dev/shm``."""
    disk: Quantity = "2Gi"
    """Room for its weights on the node."""
    shared_memory: Quantity = "64Mi"
    """The size of ``/dev/shm``, which engines use between the processes of several GPUs."""


class ModelEndpointArgs(Args):
    """A model, how it is served, and on what."""

    platform: Platform
    """Where it is deployed: ``LocalPlatform.read(…)``, or what the platform's program passes."""
    runtime: InstanceOf[Runtime]
    """What serves it: ``LlamaCpp(…)`` or ``RunnableImage(…)``."""
    weights: Weights | None = None
    """The versioned weights that are on the worker's disk before the model starts."""
    type: EndpointType = EndpointType.SYNC
    """``SYNC`` answers whole, ``STREAMING`` piece by piece too."""
    accelerator: Accelerator = Accelerator.CPU
    """What it computes on."""
    gpus: int = 0
    """GPUs of one worker; 1 when left out and the accelerator is a GPU."""
    resources: Resources = Field(default_factory=Resources)
    """What one worker may use."""
    scaling: Scaling = Field(default_factory=Scaling)
    """How many workers, and how many requests each."""
    request_timeout_seconds: int = Field(default=600, ge=1, le=86400)
    """How long one request may take; every other time limit follows from it."""
    startup_timeout_seconds: int = Field(default=600, ge=10)
    """How long a worker may take from its start until the model is loaded."""
    access: Access = Access.TEAM
    """Whose keys may call it."""
    surge: bool | None = None
    """Whether a new worker starts before an old one stops; by default only without GPUs, since a
    second set of GPUs is rarely idle."""

    @field_validator("type")
    @classmethod
    def _is_served(cls, value: EndpointType) -> EndpointType:
        if value is EndpointType.ASYNC:
            raise ValueError("this version serves SYNC and STREAMING endpoints")
        return value

    @model_validator(mode="before")
    @classmethod
    def _one_gpu_unless_said(cls, data: dict[str, object]) -> dict[str, object]:
        accelerator = data.get("accelerator", Accelerator.CPU)
        if "gpus" not in data and accelerator != Accelerator.CPU:
            return {**data, "gpus": 1}
        return data

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if self.accelerator.is_gpu and self.gpus < 1:
            raise ValueError(
                f"gpus={self.gpus} with accelerator={self.accelerator.value!r}: a worker needs at "
                "least one GPU; leave gpus out for one, or use accelerator=Accelerator.CPU"
            )
        if not self.accelerator.is_gpu and self.gpus != 0:
            raise ValueError(
                f"gpus={self.gpus} with accelerator='cpu': say which GPU, such as "
                "accelerator=Accelerator.L40S"
            )
        if self.runtime.needs_weights and self.weights is None:
            raise ValueError(
                f"weights are missing: {self.runtime.kind} serves weights from the bucket, "
                'weights=Weights("s3://bucket/model/version/")'
            )
        return self

    @property
    def timeouts(self) -> Timeouts:
        """The time limits that follow from ``request_timeout_seconds``."""
        return Timeouts(self.request_timeout_seconds)

    @property
    def rolls_with_surge(self) -> bool:
        """Whether a new worker starts before an old one stops."""
        return not self.accelerator.is_gpu if self.surge is None else self.surge
