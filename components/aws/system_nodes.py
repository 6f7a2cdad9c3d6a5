"""Nodes for everything that needs no GPU: controllers, the platform's services, data services."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

import pulumi
import pulumi_aws as aws
from pydantic import AfterValidator, Field, model_validator

from ..contracts import In
from ..domain.args import Args
from ..domain.aws_instances import instance
from .cluster import NodeCluster
from .launch_template import Disk, Template, latest_version, launch_template
from .limits import EKS_NODE_GROUP, LAUNCH_TEMPLATE, autonamed
from .node_config import encoded, node_config
from .update_checks import floor_above_desired, refuse_before_update

LABEL = "llm-platform/nodes"
"""On nodes: what they are for."""
DESIRED = "scalingConfig.desiredSize"
"""How many nodes there are is the autoscaler's; the program ignores it where it stands."""


def _cpu_type(value: str) -> str:
    if instance(value).accelerator.is_gpu:
        raise ValueError(f"{value!r} has GPUs: make a GpuPool of it")
    return value


class SystemNodesArgs(Args):
    """How many, and of which kind."""

    cluster: NodeCluster
    """The cluster that they join."""
    subnet_ids: tuple[In[str], ...] = Field(min_length=1)
    """Private subnets, one of each zone."""
    instance_types: tuple[Annotated[str, AfterValidator(_cpu_type)], ...] = Field(
        default=("m7i.xlarge",), min_length=1
    )
    """Types that it may take, the preferred one first; of one size, for an autoscaler takes them
    for alike."""
    min_nodes: int = Field(default=2, ge=1)
    """The least; two, so that one may go."""
    max_nodes: int = Field(default=6, ge=1)
    """The most."""
    disk: Disk = Field(default_factory=Disk)
    """Their root disks."""
    release_version: str | None = None
    """The AMI's release, such as ``1.35.2-20260714``; the newest when made, if left out."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """More labels of the nodes."""
    tags: Mapping[str, str] = Field(default_factory=dict)
    """More tags of instances and disks, which the provider's default tags don't reach."""

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.min_nodes > self.max_nodes:
            raise ValueError(f"min_nodes={self.min_nodes} is above max_nodes={self.max_nodes}")
        sizes = {(instance(it).vcpus, instance(it).memory_gib) for it in self.instance_types}
        if len(sizes) > 1:
            raise ValueError(
                f"instance_types={list(self.instance_types)}: all with as many vCPUs and as much "
                "memory, for an autoscaler reckons with the first"
            )
        return self


class SystemNodes(pulumi.ComponentResource):
    """A managed node group over all zones for everything that needs no GPU.

    Creates a launch template and a node group. How many nodes there are between the least and the
    most isn't touched after the group is made.
    """

    node_group_name: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]
    """The node group, which pods need."""

    def __init__(
        self, name: str, args: SystemNodesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:SystemNodes", name, None, opts)
        types = [instance(it) for it in args.instance_types]
        template = launch_template(
            autonamed(name, "template", limit=LAUNCH_TEMPLATE),
            Template(
                disk=args.disk,
                user_data=encoded(node_config(types)),
                instance_name=name,
                tags=args.tags,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        group = aws.eks.NodeGroup(
            autonamed(name, "group", limit=EKS_NODE_GROUP),
            cluster_name=args.cluster.name,
            node_role_arn=args.cluster.node_role_arn,
            subnet_ids=list(args.subnet_ids),
            ami_type=types[0].ami_type,
            version=args.cluster.version,
            release_version=args.release_version,
            capacity_type="ON_DEMAND",
            instance_types=list(args.instance_types),
            launch_template={"id": template.id, "version": latest_version(template)},
            scaling_config={
                "min_size": args.min_nodes,
                "max_size": args.max_nodes,
                "desired_size": args.min_nodes,
            },
            update_config={"max_unavailable": 1},
            node_repair_config={"enabled": True, "max_parallel_nodes_repaired_count": 1},
            labels={LABEL: "system", **args.labels},
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(args.cluster.ready),
                ignore_changes=[DESIRED],
                hooks=refuse_before_update(f"{name}-floor", floor_above_desired),
            ),
        )
        self.node_group_name = group.node_group_name
        self.ready = [group]
        self.register_outputs({"node_group_name": self.node_group_name})
