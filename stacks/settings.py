"""What a stack's settings may say, whatever its cloud, and what a ``local`` one's may besides."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from components.domain.args import Args
from components.domain.images import ImageRef
from components.domain.names import K8sName
from components.domain.quantities import Quantity
from components.domain.weights import WeightsSource
from components.local.foundation import DataImages, VolumeSizes
from components.serving.platform import Metrics

from .addon_settings import AddonSettings


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
    llamacpp: ImageRef | None = None
    """The llama.cpp engine; the demo endpoint runs on it, and isn't there without it."""


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


class LocalGatewaySettings(GatewaySettings):
    """How the gateway runs and is reached."""

    node_port: int = Field(default=30080, ge=30000, le=32767)
    """The port on every node that leads to it."""
    address: str = ""
    """How programs outside reach it; the API server's host and the node port when left out."""


class PlatformSettings(Args):
    """Settings of a ``platform`` stack, whatever its cloud."""

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


class LocalPlatformSettings(PlatformSettings):
    """Settings of a ``platform`` stack whose cloud is ``local``."""

    cloud: Literal["local"] = "local"
    # Frozen, so it may be narrower than the base's.
    gateway: LocalGatewaySettings = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default_factory=LocalGatewaySettings
    )
    """How the gateway runs and is reached."""
