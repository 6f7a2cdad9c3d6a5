"""What a stack's settings may say, read once and checked before anything is registered."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import pulumi
from pulumi.runtime import config as pulumi_config
from pydantic import Field, ValidationError, field_validator, model_validator

from components.domain.args import Args
from components.domain.images import ImageRef
from components.domain.names import K8sName
from components.domain.quantities import Quantity
from components.domain.weights import WeightsSource
from components.local.foundation import DataImages, VolumeSizes
from components.serving.platform import Metrics

from .addon_settings import AddonSettings

PROJECT = "llm-platform"


class SettingsError(pulumi.RunError):
    """A setting is wrong; Pulumi prints the message and no traceback."""


class LocalFoundationSettings(Args):
    """Settings of a ``foundation`` stack whose cloud is ``local``."""

    cloud: Literal["local"] = "local"
    kubeconfig: str = ""
    """Path of the kubeconfig; ``$KUBECONFIG`` or ``~/.kube/config`` when left out."""
    context: str = ""
    """The kubeconfig's context; its current one when left out."""
    registry: str = Field(min_length=1)
    """What the names of images begin with, such as ``10.88.0.1:5000``."""
    images: DataImages
    """The data services' images, by digest."""
    volumes: VolumeSizes = Field(default_factory=VolumeSizes)
    """The data services' disks."""
    storage_class: K8sName | None = None
    """The class of the disks; the cluster's default when left out."""

    @property
    def kubeconfig_path(self) -> Path:
        """The kubeconfig that these settings mean."""
        named = self.kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
        return Path(named or "~/.kube/config").expanduser()


class ServiceImages(Args):
    """The images of what the platform runs."""

    services: ImageRef
    """Gateway, cacher, forwarder, and the weights' loader."""
    llamacpp: ImageRef
    """The llama.cpp engine."""


class TeamSettings(Args):
    """A team and what it may use."""

    name: K8sName = Field(max_length=40)
    gpus: int | None = Field(default=None, ge=1)
    """GPUs that its workers may ask for together; leave it out for a team without GPUs."""
    endpoints: int = Field(default=10, ge=1)
    """Endpoints that it may have."""
    workers: int = Field(default=50, ge=1)
    """Pods that it may have at once, those of a rollout among them."""
    cpu: Quantity | None = None
    """CPU that its pods may request together; no limit when left out."""
    memory: Quantity | None = None
    """Memory that its pods may request together; no limit when left out."""
    callbacks: bool = False
    """Whether its workers may call public addresses, which hooks that call back need."""

    @field_validator("name")
    @classmethod
    def _is_no_other_key(cls, value: str) -> str:
        if value == "admin":
            raise ValueError("'admin' is the name of the platform's own key: choose another")
        return value


class GatewaySettings(Args):
    """How the gateway runs."""

    replicas: int = Field(default=1, ge=1, le=100)
    """Gateways that share the load; at least so many when ``max_replicas`` is given."""
    max_replicas: int | None = Field(default=None, ge=1, le=100)
    """Gateways at most, so that their number follows the load; fixed when left out."""
    target_concurrency: int = Field(default=200, ge=1)
    """Requests that each is meant to have open or waiting at once, where their number follows."""
    memory: Quantity = "256Mi"
    """The memory of each."""
    node_port: int = Field(default=30080, ge=30000, le=32767)
    """The port on every node that leads to it."""
    address: str = ""
    """How programs outside reach it; the API server's host and the node port when left out."""
    request_timeout_seconds: int = Field(default=600, ge=1, le=86400)
    """The longest request."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise ValueError(
                f"max_replicas={self.max_replicas} is below replicas={self.replicas}: leave "
                "max_replicas out for a fixed number"
            )
        return self


class LocalPlatformSettings(Args):
    """Settings of a ``platform`` stack whose cloud is ``local``."""

    cloud: Literal["local"] = "local"
    foundation: str = ""
    """The foundation's stack; ``organization/llm-platform/foundation.<environment>`` by default."""
    images: ServiceImages
    """The platform's images, by digest."""
    teams: tuple[TeamSettings, ...] = (TeamSettings(name="demo"),)
    """The teams; ``demo`` alone when left out."""
    gateway: GatewaySettings = Field(default_factory=GatewaySettings)
    """How the gateway runs."""
    addons: AddonSettings
    """Where the cluster's add-ons come from."""
    metrics: Metrics = "prometheus-adapter"
    """Who reads the concurrency of endpoints that never scale to zero: the Prometheus adapter, or
    KEDA, which is one component less."""
    mesh: Literal["none", "istio"] = "none"
    """Whether a mesh carries requests between pods; then it chooses the worker of each."""
    weights: Mapping[K8sName, WeightsSource] = Field(default_factory=dict)
    """Versioned sources of weights by endpoint, as publishing prints them."""

    @model_validator(mode="after")
    def _teams_are_different(self) -> Self:
        names = [team.name for team in self.teams]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"teams: {sorted(twice)[0]!r} is there twice")
        return self


S = TypeVar("S", bound=Args)

_BY_CLOUD: dict[str, dict[str, type[Args]]] = {
    "foundation": {"local": LocalFoundationSettings},
    "platform": {"local": LocalPlatformSettings},
}


def load(kind: type[S]) -> S:
    """Read the running stack's settings.

    Args:
        kind: The settings that the stack's layer understands.

    Raises:
        SettingsError: naming each wrong setting, its value, what to do, and the file.
    """
    return parse(kind, _given(), pulumi.get_stack())


def parse(kind: type[S], given: Mapping[str, Any], stack: str) -> S:
    """Check settings that were read before.

    Raises:
        SettingsError: as ``load`` does.
    """
    layer = stack.partition(".")[0]
    cloud = given.get("cloud", "local")
    if cloud not in _BY_CLOUD[layer]:
        known = ", ".join(_BY_CLOUD[layer])
        raise SettingsError(
            f"{PROJECT}:cloud in {_file(stack)}: {cloud!r} isn't built; known: {known}"
        )
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        lines = "\n".join(_lines(error, stack, given))
        raise SettingsError(f"The settings in {_file(stack)} can't be used:\n{lines}") from None


def _given() -> dict[str, Any]:
    """Return this project's settings; objects and numbers as what they stand for."""
    everything = {**pulumi_config.get_config_env(), **pulumi_config.CONFIG.get()}
    prefix = f"{PROJECT}:"
    return {
        key.removeprefix(prefix): _value(text)
        for key, text in everything.items()
        if key.startswith(prefix)
    }


def _value(text: Any) -> Any:
    if not isinstance(text, str) or not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        # A plain text that begins like an object, such as an IPv6 address; its field judges it.
        return text


def _file(stack: str) -> str:
    return f"stacks/Pulumi.{stack}.yaml"


def _lines(error: ValidationError, stack: str, given: Mapping[str, Any]) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        path = _path(_plain_location(problem["loc"], given))
        message = str(problem["msg"]).removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            yield f"  {PROJECT}:{path}: there is no such setting"
        elif problem["type"] == "missing":
            yield (
                f"  {PROJECT}:{path}: missing; `make up` writes it, or set it with "
                f"`pulumi config set --stack {stack} --path '{PROJECT}:{path}' VALUE`"
            )
        else:
            yield f"  {PROJECT}:{path}: {message} (it is {problem['input']!r})"


def _plain_location(
    location: tuple[int | str, ...], given: Mapping[str, Any]
) -> tuple[int | str, ...]:
    """Leave out which alternative of a setting was tried: nobody wrote that as a name."""
    plain: list[int | str] = []
    value: Any = given
    untold = False
    for part in location:
        if untold and part == value["source"]:
            untold = False
            continue
        plain.append(part)
        value = _inner(value, part)
        untold = isinstance(value, Mapping) and "source" in value
    return tuple(plain)


def _inner(value: Any, part: int | str) -> Any:
    try:
        return value[part]
    except (KeyError, IndexError, TypeError):
        return None


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Let what people wrote wrongly be said in words, without a traceback.

    Raises:
        SettingsError: for a value that a component refused, naming its fields.
    """
    try:
        yield
    except ValidationError as error:
        lines = [
            f"  {_path(problem['loc']) or error.title}: "
            f"{str(problem['msg']).removeprefix('Value error, ')}"
            for problem in error.errors(include_url=False)
        ]
        raise SettingsError(f"{error.title} can't be used:\n" + "\n".join(lines)) from None
