"""Pools of GPU nodes."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ..domain.names import K8S_NAME_LIMIT, safe_name
from .capacity import (
    AnyCapacity,
    CapacityBlock,
    Reservation,
    eks_capacity_type,
    node_group_name,
    suffix_of,
)
from .gpu_pool_args import GpuPoolArgs, Taint, TaintEffect
from .launch_template import Template, latest_version, launch_template
from .limits import LAUNCH_TEMPLATE, autonamed
from .node_config import ClusterDetails, encoded, node_config
from .scale_from_zero import tag_group, template_tags
from .system_nodes import DESIRED
from .update_checks import floor_above_desired, refuse_before_update

POOL_LABEL = "llm-platform/pool"
"""On GPU nodes: the pool that they belong to."""
CAPACITY_LABEL = "llm-platform/capacity"
"""On GPU nodes: what kind of capacity they are."""
_EFFECTS: Mapping[TaintEffect, str] = {
    "NoSchedule": "NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
}


class GpuPool(pulumi.ComponentResource):
    """Nodes with one kind of GPU, from several sources in order of preference.

    Creates, for each of ``capacity``, a launch template and a managed node group whose nodes have
    GPUs with a driver, their own disks as one array, images pulled in parallel, and are repaired
    when a GPU fails; and tags on its Auto Scaling group, so that a pool with no node can grow.
    How many nodes there are between the least and the most isn't touched after a group is made:
    that is ignored where the group stands, for options of a component don't reach its children.
    """

    node_group_names: pulumi.Output[Sequence[str]]
    """The names of its node groups, in order of preference."""
    node_groups: Mapping[str, aws.eks.NodeGroup]
    """The node groups, by what their names end with."""
    scaling_groups: Mapping[str, pulumi.Output[str]]
    """The names of the Auto Scaling groups behind them."""
    ready: Sequence[pulumi.Resource]
    """Its node groups, which pods need."""

    def __init__(
        self, name: str, args: GpuPoolArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:GpuPool", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.node_groups = {suffix_of(it): self._node_group(it) for it in args.capacity}
        self.scaling_groups = {
            suffix: _scaling_group(group) for suffix, group in self.node_groups.items()
        }
        for capacity in args.capacity:
            self._describe(capacity)
        self.ready = list(self.node_groups.values())
        self.node_group_names = pulumi.Output.all(
            *(group.node_group_name for group in self.node_groups.values())
        )
        self.register_outputs({"node_group_names": self.node_group_names})

    def _node_group(self, capacity: AnyCapacity) -> aws.eks.NodeGroup:
        args, suffix = self._args, suffix_of(capacity)
        template = self._template(capacity)
        is_block = isinstance(capacity, CapacityBlock)
        own_image = args.ami_id is not None
        least, most = args.least_of(capacity), args.most_of(capacity)
        return aws.eks.NodeGroup(
            node_group_name(self._name, capacity),
            cluster_name=args.cluster.name,
            node_role_arn=args.cluster.node_role_arn,
            subnet_ids=[args.subnets[zone] for zone in self._zones(capacity)],
            ami_type=None if own_image else args.ami_type or args.types[0].ami_type,
            version=None if own_image else args.version or args.cluster.version,
            release_version=args.release_version,
            capacity_type=eks_capacity_type(capacity),
            # A block's template names the type, and then the group must not.
            instance_types=None if is_block else [it.type for it in args.types],
            launch_template={"id": template.id, "version": latest_version(template)},
            scaling_config={"min_size": least, "max_size": most, "desired_size": least},
            # Ends a node before it starts the next: there may be no GPU to spare.
            update_config={"max_unavailable": 1, "update_strategy": "MINIMAL"},
            node_repair_config={"enabled": True, "max_parallel_nodes_repaired_count": 1},
            labels=self._labels(capacity),
            taints=[_taint(it) for it in args.all_taints],
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*args.cluster.ready, *args.needs],
                ignore_changes=[DESIRED],
                hooks=refuse_before_update(f"{self._name}-{suffix}-floor", floor_above_desired),
            ),
        )

    def _template(self, capacity: AnyCapacity) -> aws.ec2.LaunchTemplate:
        args, name = self._args, f"{self._name}-{suffix_of(capacity)}"
        return launch_template(
            autonamed(name, "template", limit=LAUNCH_TEMPLATE),
            Template(
                disk=args.disk,
                user_data=self._user_data(),
                instance_name=name,
                tags=args.tags,
                image_id=args.ami_id,
                capacity=capacity,
                instance_type=args.types[0].type if isinstance(capacity, CapacityBlock) else None,
            ),
            self._child,
        )

    def _user_data(self) -> str | pulumi.Output[str]:
        """Return what nodes are told; with an image of one's own EKS doesn't tell them the rest."""
        args, cluster = self._args, self._args.cluster
        if args.ami_id is None:
            return encoded(node_config(args.types))
        facts = pulumi.Output.all(
            name=cluster.name,
            endpoint=cluster.endpoint,
            certificate=cluster.certificate,
            service_cidr=cluster.service_cidr,
        )
        return facts.apply(lambda them: encoded(node_config(args.types, ClusterDetails(**them))))

    def _zones(self, capacity: AnyCapacity) -> Sequence[str]:
        if isinstance(capacity, Reservation | CapacityBlock):
            return (capacity.zone,)
        return self._args.all_zones

    def _labels(self, capacity: AnyCapacity) -> Mapping[str, str]:
        return {
            POOL_LABEL: safe_name(self._name, limit=K8S_NAME_LIMIT),
            CAPACITY_LABEL: capacity.kind,
            **self._args.all_labels,
        }

    def _describe(self, capacity: AnyCapacity) -> None:
        args, suffix = self._args, suffix_of(capacity)
        tag_group(
            f"{self._name}-{suffix}",
            self.scaling_groups[suffix],
            template_tags(self._labels(capacity), args.all_taints, args.types[0], args.disk.gib),
            self._child,
        )


def _taint(taint: Taint) -> aws.eks.NodeGroupTaintArgsDict:
    return {"key": taint.key, "value": taint.value, "effect": _EFFECTS[taint.effect]}


def _scaling_group(group: aws.eks.NodeGroup) -> pulumi.Output[str]:
    """Return the name of the group that EKS makes, known once it is made."""

    def name_of(resources: Sequence[aws.eks.outputs.NodeGroupResource]) -> str:
        made = resources[0].autoscaling_groups or []
        return str(made[0].name)

    return group.resources.apply(name_of)
