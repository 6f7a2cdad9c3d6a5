"""What an endpoint needs to know of the platform that it is deployed to."""

from dataclasses import dataclass

import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain.args import Opaque
from ..domain.names import K8sName
from ..foundation import Bucket, Identity


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
    provider: k8s.Provider | None = None
    """The access to the cluster, where the program has no provider of its own for it."""
