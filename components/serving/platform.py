"""What an endpoint needs to know of the platform that it is deployed to."""

from dataclasses import dataclass
from typing import Literal

import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain.args import Opaque
from ..domain.names import K8sName
from ..foundation import Broker, Bucket, Identity

Metrics = Literal["prometheus-adapter", "keda"]
"""Who reads the concurrency of endpoints that never scale to zero."""


@dataclass(frozen=True, kw_only=True)
class Platform(Opaque):
    """A platform as one team sees it; each cloud has its own subclass."""

    team: K8sName
    """Whose endpoints these are."""
    namespace: In[str]
    """The team's namespace."""
    services_image: In[str]
    """The image of the forwarder and of the weights' loader."""
    gateway_url: In[str]
    """Where requests go to, for programs in the cluster."""
    weights: Bucket
    """Where weights are read from."""
    identity: Identity
    """How grants become permissions."""
    broker: Broker
    """What carries the tasks of asynchronous endpoints."""
    prometheus_url: In[str]
    """Where KEDA reads the metrics that endpoints scale on."""
    redis_address: In[str]
    """Redis as ``host:port``: where KEDA finds activation lists."""
    redis_tls: bool = False
    """Whether Redis is reached over TLS. Plain, as ``metrics`` is."""
    cacher_url: In[str]
    """Who tells KEDA how many tasks are outstanding, where the broker itself can't."""
    metrics: Metrics = "prometheus-adapter"
    """Who reads the concurrency of endpoints that never scale to zero: the Prometheus adapter for
    an HPA, or KEDA, which then scales those too. Plain, for it decides what is created."""
    provider: k8s.Provider | None = None
    """The access to the cluster, where the program has no provider of its own for it."""
