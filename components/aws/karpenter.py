"""Karpenter: GPU nodes above the floor of warm ones, for the rare overflow."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field, model_validator

from ..contracts import In
from ..domain import labels
from ..domain.args import Args
from ..domain.aws_zones import Zone
from ..kube.addon import BY_SOURCE, Chart, ChartSource, Existing, ExistingSource, release
from .karpenter_access import NAMESPACE, SERVICE_ACCOUNT
from .overflow import OverflowPool, node_class, node_pool

CHART = Chart(repository="oci://public.ecr.aws/karpenter", chart="karpenter", version="1.14.1")
DEFINITIONS = "karpenter-crd"
"""The chart with Karpenter's definitions. Its main chart has them too, but helm installs what is
in a chart's ``crds`` once and never updates it."""
_COMPONENT = "karpenter"
_DRAIN = pulumi.CustomTimeouts(delete="2h")
"""Nodes drain before their class goes: ``drain_minutes``, and some time for the machines."""


class KarpenterArgs(Args):
    """How Karpenter runs, and which nodes it may make."""

    source: Annotated[ChartSource | ExistingSource, BY_SOURCE] = CHART
    """Where it comes from."""
    cluster_name: In[str]
    """The EKS cluster."""
    queue_name: In[str]
    """The queue that tells of instances that end."""
    instance_profile: In[str]
    """The instance profile of its nodes."""
    security_group_id: In[str]
    """The cluster's security group."""
    subnets: Mapping[Zone, In[str]] = Field(min_length=1)
    """The subnets of GPU nodes, by zone."""
    pools: tuple[OverflowPool, ...] = ()
    """Its nodes."""
    isolated: bool = False
    """Whether the VPC has no way out: then it can't ask for prices and uses those it was built
    with."""

    @model_validator(mode="after")
    def _pools_fit(self) -> Self:
        names = [it.name for it in self.pools]
        if len(set(names)) < len(names):
            raise ValueError(f"pools={names}: each name at most once")
        for pool in self.pools:
            strangers = set(pool.zones) - set(self.subnets)
            if strangers:
                raise ValueError(
                    f"pools: {pool.name} has zones={sorted(strangers)}, where there is no subnet"
                )
        return self


class Karpenter(pulumi.ComponentResource):
    """Makes GPU nodes for pods that found no room, and ends them when they are empty.

    Creates Karpenter's definitions and its controller from their charts and, for each pool, an
    EC2NodeClass and a NodePool. With ``existing`` it creates the last two only. Warm nodes are a
    ``GpuPool``'s: pods take those first, and Karpenter sees only the pods that found none.
    """

    ready: Sequence[pulumi.Resource]
    """What must stand before pods may count on overflow."""

    def __init__(
        self, name: str, args: KarpenterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Karpenter", name, None, opts)
        self._name, self._args = name, args
        source = args.source
        installed = [] if isinstance(source, Existing) else self._install(source)
        self.ready = [*installed, *(self._pool(it, installed) for it in args.pools)]
        self.register_outputs({})

    def _install(self, source: Chart) -> list[pulumi.Resource]:
        definitions = release(
            f"{self._name}-definitions",
            Chart(repository=source.repository, chart=DEFINITIONS, version=source.version),
            {},
            namespace=NAMESPACE,
            opts=pulumi.ResourceOptions(parent=self),
        )
        controller = release(
            self._name,
            source,
            chart_values(self._args),
            namespace=NAMESPACE,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[definitions]),
        )
        return [definitions, controller]

    def _pool(self, pool: OverflowPool, installed: list[pulumi.Resource]) -> pulumi.Resource:
        args = self._args
        spec = node_class(
            pool,
            instance_profile=args.instance_profile,
            security_group_id=args.security_group_id,
            subnets=args.subnets,
        )
        machines = self._object("karpenter.k8s.aws/v1", "EC2NodeClass", pool, spec, installed)
        rules = node_pool(pool, tuple(args.subnets))
        return self._object("karpenter.sh/v1", "NodePool", pool, rules, [*installed, machines])

    def _object(
        self,
        version: str,
        kind: str,
        pool: OverflowPool,
        spec: Mapping[str, Any],
        needs: list[pulumi.Resource],
    ) -> k8s.apiextensions.CustomResource:
        return k8s.apiextensions.CustomResource(
            f"{self._name}-{pool.name}-{'nodes' if kind == 'NodePool' else 'machines'}",
            api_version=version,
            kind=kind,
            metadata={"name": pool.name, "labels": labels.common(_COMPONENT, pool.name)},
            spec=spec,
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs, custom_timeouts=_DRAIN),
        )


def chart_values(args: KarpenterArgs) -> Mapping[str, Any]:
    """Return the chart's values."""
    return {
        "replicas": 2,
        "serviceAccount": {"name": SERVICE_ACCOUNT},
        # Karpenter must run before the cluster's DNS has a node to run on.
        "dnsPolicy": "Default",
        "settings": {
            "clusterName": args.cluster_name,
            "interruptionQueue": args.queue_name,
            "isolatedVPC": args.isolated,
        },
        "controller": {
            "resources": {
                "requests": {"cpu": "250m", "memory": "512Mi"},
                "limits": {"memory": "1Gi"},
            }
        },
    }
