"""What people say to get a model served."""

from typing import Self

from pydantic import Field, InstanceOf, model_validator

from ..domain.accelerators import Accelerator
from ..domain.args import Args
from ..domain.hooks import Hooks
from ..domain.quantities import Quantity
from ..domain.registration import Access, EndpointType
from ..domain.scaling import Scaling
from ..domain.timeouts import Timeouts
from ..domain.weights import Weights
from .platform import Platform
from .runtimes import Needs, Runtime


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
    scratch: Quantity = "1Gi"
    """Room in ``/tmp``, where engines keep what they compile."""


class Tasks(Args):
    """How the tasks of an ASYNC endpoint are kept."""

    expires_seconds: int = Field(default=86_400, ge=1)
    """How long a task may wait before it is given up."""
    lease_seconds: int = Field(default=60, ge=10, le=43_200)
    """How long a task stays with its worker unless that extends it: one whose worker was killed
    runs again within twice this time."""
    max_deliveries: int = Field(default=5, ge=1, le=1000)
    """How often a task is handed to workers before it goes to the dead letters."""


class ModelEndpointArgs(Args):
    """A model, how it is served, and on what."""

    platform: Platform
    """Where it is deployed: ``LocalPlatform.read(…)``, or what the platform's program passes."""
    runtime: InstanceOf[Runtime]
    """What serves it: ``Vllm(…)``, ``LlamaCpp(…)`` or ``RunnableImage(…)``."""
    weights: Weights | None = None
    """The versioned weights that are on the worker's disk before the model starts."""
    type: EndpointType = EndpointType.SYNC
    """``SYNC`` answers whole, ``STREAMING`` piece by piece too; ``ASYNC`` takes tasks from a queue
    and keeps their results."""
    accelerator: Accelerator = Accelerator.CPU
    """What it computes on."""
    gpus: int = 0
    """GPUs of one worker; 1 when left out and the accelerator is a GPU."""
    resources: Resources = Field(default_factory=Resources)
    """What one worker may use."""
    scaling: Scaling = Field(default_factory=Scaling)
    """How many workers, how many requests each, and how that changes."""
    hooks: Hooks = Field(default_factory=Hooks)
    """What runs before and after the model."""
    tasks: Tasks = Field(default_factory=Tasks)
    """How the tasks of an ASYNC endpoint are kept."""
    request_timeout_seconds: int = Field(default=600, ge=1, le=86_400)
    """How long one request may take; every other time limit follows from it. Not for ASYNC."""
    task_timeout_seconds: int = Field(default=3600, ge=1, le=86_400)
    """The same for one task of an ASYNC endpoint."""
    startup_timeout_seconds: int = Field(default=600, ge=10)
    """How long a worker may take from its start until the model is loaded."""
    hold_seconds: int | None = Field(default=None, ge=0)
    """How long the gateway holds a request while no worker is ready; as long as a worker may take
    to start when left out, and 0 answers 503 at once."""
    access: Access = Access.TEAM
    """Whose keys may call it."""
    surge: bool | None = None
    """Whether a new worker starts before an old one stops; by default only without GPUs, since a
    second set of GPUs is rarely idle."""

    @model_validator(mode="before")
    @classmethod
    def _one_gpu_unless_said(cls, data: dict[str, object]) -> dict[str, object]:
        accelerator = data.get("accelerator", Accelerator.CPU)
        if "gpus" not in data and accelerator != Accelerator.CPU:
            return {**data, "gpus": 1}
        return data

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        for problem in (self._accelerator_problem(), self._runtime_problem(), self._type_problem()):
            if problem:
                raise ValueError(problem)
        self.scaling.cooldown(self.type)
        return self

    def _accelerator_problem(self) -> str:
        if self.accelerator.is_gpu and self.gpus < 1:
            return (
                f"gpus={self.gpus} with accelerator={self.accelerator.value!r}: a worker needs at "
                "least one GPU; leave gpus out for one, or use accelerator=Accelerator.CPU"
            )
        if not self.accelerator.is_gpu and self.gpus != 0:
            return (
                f"gpus={self.gpus} with accelerator='cpu': say which GPU, such as "
                "accelerator=Accelerator.L40S"
            )
        return ""

    def _runtime_problem(self) -> str:
        if self.runtime.needs_weights and self.weights is None:
            return (
                f"weights are missing: {self.runtime.kind} serves weights from the bucket, "
                'weights=Weights("s3://bucket/model/version/")'
            )
        if self.type is EndpointType.STREAMING and not self.runtime.task_stream_path:
            return (
                f"stream_path is missing in runtime={self.runtime.kind}, which type=STREAMING "
                'needs: say where it answers in pieces, stream_path="/stream", or use type=SYNC'
            )
        return self.runtime.problem(
            Needs(gpus=self.gpus, shared_memory=self.resources.shared_memory)
        )

    def _type_problem(self) -> str:
        given = self.model_fields_set
        if not self.is_async:
            only_async = sorted({"tasks", "task_timeout_seconds"} & given)
            if only_async:
                return (
                    f"{only_async[0]} is for type=ASYNC and this endpoint is {self.type.name}: "
                    "take it out; request_timeout_seconds says how long a request may take"
                )
            return ""
        if "request_timeout_seconds" in given:
            return (
                f"request_timeout_seconds={self.request_timeout_seconds} doesn't hold for type="
                "ASYNC, which has no open requests: say task_timeout_seconds"
            )
        if self.scaling.source.kind != "prometheus":
            return (
                f"scaling.source={self.scaling.source.kind!r} doesn't hold for type=ASYNC, which "
                "scales on its queue: take it out"
            )
        return ""

    @property
    def is_async(self) -> bool:
        """Whether its work comes from a queue."""
        return self.type is EndpointType.ASYNC

    @property
    def held_seconds(self) -> int:
        """How long the gateway holds a request while no worker is ready."""
        if self.is_async:
            return 0
        return self.startup_timeout_seconds if self.hold_seconds is None else self.hold_seconds

    @property
    def timeouts(self) -> Timeouts:
        """The time limits that follow from how long one request or task may take."""
        limit = self.task_timeout_seconds if self.is_async else self.request_timeout_seconds
        return Timeouts(limit)

    @property
    def rolls_with_surge(self) -> bool:
        """Whether a new worker starts before an old one stops."""
        return not self.accelerator.is_gpu if self.surge is None else self.surge
