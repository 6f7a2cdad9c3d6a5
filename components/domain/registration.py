"""How an endpoint declares itself: one ConfigMap in its team's namespace, one object of this type.

The owner is never a field: it is the team of the namespace that the ConfigMap stands in. The
target is always a Service of the same namespace, so a registration can't point at someone else's.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from . import labels
from .args import Args
from .names import K8sName

KEY = "registration.json"

Text = Annotated[str, Field(max_length=1024, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""One line for people: no control characters, which neither databases nor terminals take well."""

Route = Annotated[str, Field(max_length=1024, pattern=r"^(/[!-~]*)?$")]
"""A path of the model's HTTP server, such as ``/predict``: ASCII without spaces, for it is sent."""


class EndpointType(StrEnum):
    """How requests reach an endpoint."""

    SYNC = "sync"
    ASYNC = "async"
    STREAMING = "streaming"


class Access(StrEnum):
    """Which keys may call an endpoint."""

    TEAM = "team"
    """Keys of the team that owns it."""
    EVERYONE = "everyone"
    """Every valid key of the platform."""


class Registration(Args):
    """What the platform needs to know to route to an endpoint and to show it."""

    schema_version: Literal[1] = 1
    name: K8sName
    """The endpoint's name, unique in the platform; clients say it as ``model``."""
    type: EndpointType
    service: K8sName
    """A Service in the same namespace; its ready addresses are the workers."""
    port: int = Field(default=5000, ge=1, le=65535)
    """The forwarder's port on each worker."""
    runtime: Text
    """The engine, such as ``llama.cpp``; ``runnable-image`` when it is the user's own."""
    image: Text
    """The model container's image."""
    model: Text = ""
    """The model that is served, for people to read; empty when the image alone says it."""
    weights: Text = ""
    """The versioned source of the weights, empty when the image brings them."""
    accelerator: Text = "cpu"
    gpus: int = Field(default=0, ge=0)
    min_workers: int = Field(ge=0)
    """Workers that always run; 0 for an endpoint that sleeps when nobody calls it."""
    max_workers: int = Field(ge=0)
    autoscaled: bool = False
    """Whether an autoscaler chooses the number of workers between the two."""
    per_worker: int = Field(ge=1)
    """Concurrent requests per worker that scaling aims at."""
    max_concurrency: int = Field(ge=1)
    """Concurrent requests per worker above which the forwarder answers 429."""
    request_timeout_seconds: int = Field(default=600, ge=1)
    """How long one request or task may take."""
    hold_seconds: int = Field(default=0, ge=0)
    """How long the gateway holds a request while no worker is ready; 0 answers 503 at once."""
    predict_path: Route = "/predict"
    """Where a task's ``args`` are posted to at the model."""
    stream_path: Route = ""
    """The same for an answer in pieces; empty when the model has no such route."""
    task_expires_seconds: int = Field(default=86_400, ge=1)
    """How long a task of an ASYNC endpoint may wait before it is given up."""
    lease_seconds: int = Field(default=60, ge=10, le=43_200)
    """For how long a task stays invisible to others unless its worker extends it."""
    max_deliveries: int = Field(default=5, ge=1)
    """How often a task is handed to workers before it goes to the dead letters."""
    queue: Text = ""
    """The broker's queue of an ASYNC endpoint; empty where its name follows from the endpoint's."""
    access: Access = Access.TEAM
    openai: bool = True
    """Whether the image speaks OpenAI's API, so that it is listed in ``/v1/models``."""
    stack: Text = ""
    """The Pulumi stack that declares it, for the error that says who to ask."""

    def to_data(self) -> dict[str, str]:
        """Return the ConfigMap's ``data``; equal registrations give equal text."""
        return {KEY: self.model_dump_json(indent=1)}

    @classmethod
    def from_data(cls, data: Mapping[str, str]) -> "Registration":
        """Read it back; fields of a newer version are left out rather than refused.

        Raises:
            KeyError: when the ConfigMap holds no registration.
            pydantic.ValidationError: when it isn't a valid one; the message names the field.
        """
        return cls.model_validate_json(data[KEY], extra="ignore")

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Registration":
        """Read a decoded registration, as ``from_data`` does.

        Raises:
            pydantic.ValidationError: when it isn't a valid one; the message names the field.
        """
        return cls.model_validate(document, strict=False, extra="ignore")

    @staticmethod
    def object_labels(endpoint: str) -> dict[str, str]:
        """Labels of the ConfigMap that carries the registration of ``endpoint``."""
        return {labels.REGISTRATION: "1", labels.ENDPOINT: endpoint}
