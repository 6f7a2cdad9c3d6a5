"""A team: the unit of tenancy."""

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

from ..contracts import In
from ..domain.accelerators import GPU_RESOURCE
from ..domain.args import Args
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..foundation import DataPaths
from . import deployer, network, workload
from .generated_secret import GeneratedSecret, GeneratedSecretArgs
from .namespace import Namespace, NamespaceArgs

KEY_PREFIX = "lp-"
"""What every gateway key begins with, so that a leaked one is recognised."""

_OWN_SECRETS = 3
"""A team's own Secrets: its gateway key, its password for Redis, and its deployer's token."""
_SECRETS_OF_ENDPOINT = 3
"""What an endpoint's loader and its forwarder were granted, and variables that may be secret."""
_OWNERS_OF_ENDPOINT = 2
"""Autoscalers of an endpoint: while one hands over to the other, both stand."""
_GATEWAY_PORT = 8080
_PREEMPTING = ["system-node-critical", "system-cluster-critical"]
"""The priority classes of every cluster, whose pods take the place of everybody else's."""


class TeamArgs(Args):
    """What a team may use."""

    name: K8sName
    """The team's name; its namespace is ``team-<name>``."""
    gpus: int | None = Field(default=None, ge=1)
    """GPUs that its workers may ask for together; none when left out."""
    endpoints: int = Field(default=10, ge=1)
    """Endpoints that it may have; its Services, ConfigMaps and Secrets are limited to match."""
    workers: int = Field(default=50, ge=1)
    """Pods that it may have at once: its workers, and those that start or drain while an
    endpoint rolls."""
    cpu: Quantity | None = None
    """Processors that its pods may ask for together, with one more worker for each endpoint that
    rolls; no limit when left out."""
    memory: Quantity | None = None
    """Memory that its pods may ask for together, reckoned in the same way; no limit when left
    out."""
    kubeconfig: In[str]
    """The cluster's kubeconfig, of which the team gets the address but not the rights."""
    platform_namespace: In[str]
    """Where the gateway runs, which alone may call the team's workers."""
    monitoring_namespace: In[str] = "llm-platform-monitoring"
    """Where Prometheus runs, which reads the workers' metrics."""
    paths: DataPaths
    """How its workers reach the weights' bucket and the queues of tasks."""
    redis_user: bool = True
    """Whether its tasks wait in Redis, where it then has a user of its own."""
    callbacks: bool = False
    """Whether its workers may call public addresses, which hooks that call back need; private
    addresses stay closed."""


class Team(pulumi.ComponentResource):
    """A namespace with its quota, its network paths, its credentials and a limited kubeconfig.

    Creates a Namespace, two ResourceQuotas, NetworkPolicies, Secrets with the gateway key and the
    password for Redis, and a ServiceAccount with Role, RoleBinding and token for the kubeconfig.
    The kubeconfig can't change quota, network policies or roles, nor see another namespace, nor
    make pods that preempt others.
    """

    namespace: pulumi.Output[str]
    gateway_key: pulumi.Output[str]
    redis_password: pulumi.Output[str] | None
    """Of the team's user of Redis, which the cacher makes; none where it has no such user."""
    kubeconfig: pulumi.Output[str]
    scope: Namespace
    """The namespace as a resource, for ``deleted_with``."""

    def __init__(
        self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Team", name, None, opts)
        self.scope = Namespace(
            f"{name}-scope",
            NamespaceArgs(name=f"team-{args.name}", team=args.name),
            pulumi.ResourceOptions(parent=self),
        )
        self.namespace = self.scope.name
        self._child = pulumi.ResourceOptions(parent=self, deleted_with=self.scope.namespace)
        self._quota(name, args)
        self._paths(name, args)
        key = GeneratedSecret(
            f"{name}-gateway-key",
            GeneratedSecretArgs(
                namespace=self.namespace, name="gateway-key", keys=("key",), prefix=KEY_PREFIX
            ),
            self._child,
        )
        self.gateway_key = key.values["key"]
        self.redis_password = self._redis_password(name) if args.redis_user else None
        self.kubeconfig = deployer.limited_kubeconfig(
            name, args.kubeconfig, self.namespace, self._child
        )
        self.register_outputs(
            {
                "namespace": self.namespace,
                "gateway_key": self.gateway_key,
                "redis_password": self.redis_password,
                "kubeconfig": self.kubeconfig,
            }
        )

    def _redis_password(self, name: str) -> pulumi.Output[str]:
        secret = GeneratedSecret(
            f"{name}-redis-password",
            GeneratedSecretArgs(namespace=self.namespace, name="redis-password"),
            self._child,
        )
        return secret.values["password"]

    def _quota(self, name: str, args: TeamArgs) -> None:
        k8s.core.v1.ResourceQuota(
            f"{name}-quota",
            metadata=workload.metadata("quota", self.namespace, component="team"),
            spec={"hard": _limits(args)},
            opts=self._child,
        )
        k8s.core.v1.ResourceQuota(
            f"{name}-no-preemption",
            metadata=workload.metadata("no-preemption", self.namespace, component="team"),
            spec={
                "hard": {"pods": "0"},
                "scope_selector": {
                    "match_expressions": [
                        {"scope_name": "PriorityClass", "operator": "In", "values": _PREEMPTING}
                    ]
                },
            },
            opts=self._child,
        )

    def _paths(self, name: str, args: TeamArgs) -> None:
        platform = [network.namespace_peer(args.platform_namespace)]
        network.allow_ingress(
            f"{name}-from-gateway",
            name="from-gateway",
            namespace=self.namespace,
            pods=network.endpoint_pods(),
            peers=[*platform, network.namespace_peer(args.monitoring_namespace)],
            ports=[5000],
            opts=self._child,
        )
        outward: dict[str, Sequence[network.Egress]] = {
            "to-weights": args.paths.weights,
            "to-tasks": [*args.paths.tasks, (platform, [_GATEWAY_PORT])],
        }
        if args.callbacks:
            outward["to-callbacks"] = [([network.public_addresses()], [443])]
        for path, rules in outward.items():
            network.allow_egress(
                f"{name}-{path}",
                name=path,
                namespace=self.namespace,
                pods=network.endpoint_pods(),
                rules=rules,
                opts=self._child,
            )


def _limits(args: TeamArgs) -> dict[str, str]:
    """Return the most of everything that the team's namespace may hold."""
    limits = {
        f"requests.{GPU_RESOURCE}": str(args.gpus or 0),
        "pods": str(args.workers),
        # Every endpoint has exactly one Service and one registration.
        "services": str(args.endpoints),
        "services.nodeports": "0",
        "services.loadbalancers": "0",
        "persistentvolumeclaims": "0",
        # Kubernetes itself puts kube-root-ca.crt into every namespace.
        "count/configmaps": str(args.endpoints + 1),
        "count/secrets": str(_SECRETS_OF_ENDPOINT * args.endpoints + _OWN_SECRETS),
        "count/horizontalpodautoscalers.autoscaling": str(_OWNERS_OF_ENDPOINT * args.endpoints),
        "count/scaledobjects.keda.sh": str(args.endpoints),
    }
    if args.cpu:
        limits["requests.cpu"] = args.cpu
    if args.memory:
        limits["requests.memory"] = args.memory
    return limits
