"""What people say about how the gateway runs."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from ..contracts import In
from ..domain.args import Args
from ..domain.images import ImageRef
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..foundation import Foundation
from .platform import Metrics

NAME = "gateway"
"""The name of its Deployment and its Service."""


class GatewayArgs(Args):
    """How the gateway runs."""

    namespace: In[str]
    """Where it runs."""
    image: ImageRef
    """The services' image."""
    foundation: Foundation
    """The database, Redis, bucket and broker that it uses."""
    team_keys: Mapping[K8sName, In[str]] = Field(default_factory=dict)
    """The gateway key of each team."""
    replicas: int = Field(default=1, ge=1, le=100)
    """Gateways that share the load; at least so many when their number follows it."""
    max_replicas: int | None = Field(default=None, ge=1, le=100)
    """Gateways at most, so that their number follows the load; fixed when left out."""
    target_concurrency: int = Field(default=200, ge=1)
    """Requests that each gateway is meant to have open or waiting at once."""
    metrics: Metrics = "prometheus-adapter"
    """Who reads that number: the Prometheus adapter for an HPA, or KEDA."""
    prometheus_url: In[str] | None = None
    """Where KEDA reads it; only for ``metrics="keda"``."""
    routing: Literal["workers", "service"] = "workers"
    """Whether it chooses the worker itself, or leaves that to a mesh behind each Service."""
    cpu: Quantity | None = None
    """The processors kept for each; ``50m`` when left out, and ``500m`` where their number follows
    the load, which is measured by it."""
    memory: Quantity = "256Mi"
    """The memory of each."""
    node_port: int | None = Field(default=None, ge=30000, le=32767)
    """A port on every node that leads to it; none when left out."""
    request_timeout_seconds: int = Field(default=600, ge=1, le=86400)
    """The longest request: how long a stopping gateway waits for open ones."""

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise ValueError(
                f"max_replicas={self.max_replicas} is below replicas={self.replicas}: leave "
                "max_replicas out for a fixed number"
            )
        if self.scales and self.metrics == "keda" and self.prometheus_url is None:
            raise ValueError(
                'prometheus_url is missing: metrics="keda" scales the gateway on what is read there'
            )
        return self

    @property
    def scales(self) -> bool:
        """Whether the number of gateways follows the load."""
        return self.max_replicas is not None and self.max_replicas > self.replicas
