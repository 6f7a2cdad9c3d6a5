"""What a pool of GPU nodes is made of."""

from collections.abc import Mapping, Sequence
from typing import Literal, Self

import pulumi
from pydantic import Field, model_validator

from ..contracts import In
from ..domain.accelerators import ACCELERATOR_LABEL, GPU_RESOURCE, Accelerator
from ..domain.args import Args
from ..domain.aws_instances import Instance, default_instance, instance
from ..domain.aws_zones import Zone, zones_problem
from .capacity import Capacity, CapacityBlock, OnDemand, Reservation, can_be_kept, suffix_of
from .cluster import NodeCluster
from .launch_template import Disk

TaintEffect = Literal["NoSchedule", "NoExecute", "PreferNoSchedule"]
GPU_DISK = Disk(gib=100, throughput_mib=600)
"""The root disk of GPU nodes. Parallel pulls want 600 MiB/s where images end up there
(awslabs/soci-snapshotter, docs/parallel-mode.md)."""


class Taint(Args):
    """What keeps pods away that don't tolerate it."""

    key: str = Field(max_length=63)
    """Its key."""
    value: str = Field(default="", max_length=63)
    """Its value."""
    effect: TaintEffect = "NoSchedule"
    """What it does to pods that don't tolerate it."""


GPU_TAINT = Taint(key=GPU_RESOURCE, value="true")
"""Keeps pods off GPU nodes that ask for no GPU."""


class GpuPoolArgs(Args):
    """Which GPUs, how many nodes of them, and where they come from."""

    cluster: NodeCluster
    """The cluster that the nodes join."""
    subnets: Mapping[Zone, In[str]] = Field(min_length=1)
    """The subnets of GPU nodes, by zone."""
    accelerator: Accelerator
    """The kind of GPU."""
    instance_types: tuple[str, ...] = ()
    """Types that it may take, all with as many GPUs, vCPUs and as much memory; the accelerator's
    default when left out."""
    zones: tuple[Zone, ...] = ()
    """The zones that nodes may be in; all that have a subnet when left out. In more than one, AWS
    may move nodes to even zones out, draining them first."""
    warm_floor: int = Field(default=0, ge=0)
    """Nodes that are kept whatever happens: on the first of ``capacity`` that isn't taken away.
    To raise it later, raise the node group's desired size first; the preview says how."""
    max_nodes: int = Field(ge=1)
    """The most nodes of each on-demand or spot group; reservations have as many as they have."""
    capacity: tuple[Capacity, ...] = Field(default=(OnDemand(),), min_length=1)
    """Where nodes come from, the preferred one first; one node group each. Their names decide which
    is which, so that one may be added, removed or moved without another being made anew."""
    disk: Disk = GPU_DISK
    """The root disks."""
    ami_id: In[str] | None = None
    """An image of one's own, made from AL2023 with NVIDIA's driver; it then has no release, no type
    and no version, and follows no upgrade by itself."""
    ami_type: str | None = None
    """The kind of EKS-optimised image; that with NVIDIA's driver when left out."""
    version: In[str] | None = None
    """The nodes' Kubernetes version; the cluster's when left out, so that nodes follow it."""
    release_version: str | None = None
    """The AMI's release, such as ``1.35.2-20260714``; the newest when made, if left out. A new one
    rolls the nodes one by one, each ended before the next begins, for GPUs are scarce."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """More labels of the nodes."""
    extra_taints: tuple[Taint, ...] = ()
    """More taints than that of GPU nodes."""
    tags: Mapping[str, str] = Field(default_factory=dict)
    """More tags of instances and disks, which the provider's default tags don't reach."""
    needs: Sequence[pulumi.Resource] = ()
    """What must stand before a node starts, besides what the cluster says."""

    @property
    def types(self) -> tuple[Instance, ...]:
        """The types with what they have."""
        if not self.instance_types:
            return (default_instance(self.accelerator),)
        return tuple(instance(it) for it in self.instance_types)

    @property
    def all_zones(self) -> tuple[str, ...]:
        """The zones that nodes may be in."""
        return self.zones or tuple(self.subnets)

    @property
    def all_labels(self) -> Mapping[str, str]:
        """The labels of every node of the pool."""
        return {
            ACCELERATOR_LABEL: self.accelerator.value,
            # What NVIDIA's charts choose nodes by.
            "nvidia.com/gpu.present": "true",
            # Without it the cluster autoscaler takes a node for ready before its GPUs are there,
            # and orders another (its README for AWS, "Special note on GPU instances").
            "k8s.amazonaws.com/accelerator": f"nvidia-{self.accelerator.value}",
            **self.labels,
        }

    @property
    def all_taints(self) -> tuple[Taint, ...]:
        """The taints of every node of the pool."""
        return (GPU_TAINT, *self.extra_taints)

    @property
    def kept_on(self) -> str | None:
        """The name of the capacity that the floor rests on; none where there is no floor."""
        kept = [suffix_of(it) for it in self.capacity if can_be_kept(it)]
        return kept[0] if kept and self.warm_floor else None

    @model_validator(mode="after")
    def _image_is_one_or_the_other(self) -> Self:
        if self.ami_id is None:
            return self
        for field in ("version", "release_version", "ami_type"):
            if getattr(self, field) is not None:
                raise ValueError(
                    f"{field} with ami_id: EKS takes none for an image of one's own; "
                    f"leave {field} out, or ami_id"
                )
        return self

    @model_validator(mode="after")
    def _types_are_alike(self) -> Self:
        if not self.accelerator.is_gpu:
            raise ValueError("accelerator='cpu': nodes without GPUs are SystemNodes")
        for it in self.types:
            if it.accelerator is not self.accelerator:
                raise ValueError(
                    f"instance_types: {it.type} has {it.accelerator.value}, "
                    f"not {self.accelerator.value}"
                )
        if len({(it.gpus, it.vcpus, it.memory_gib) for it in self.types}) > 1:
            raise ValueError(
                f"instance_types={list(self.instance_types)}: all with as many GPUs, vCPUs and as "
                "much memory, for an autoscaler reckons with one; make two pools of them"
            )
        return self

    @model_validator(mode="after")
    def _zones_have_subnets(self) -> Self:
        problem = zones_problem(self.all_zones)
        if problem:
            raise ValueError(problem)
        strangers = set(self.all_zones) - set(self.subnets)
        if strangers:
            raise ValueError(
                f"zones={sorted(strangers)}: no subnet there; subnets has {sorted(self.subnets)}"
            )
        return self

    @model_validator(mode="after")
    def _capacity_fits(self) -> Self:
        names = [suffix_of(it) for it in self.capacity]
        if len(set(names)) < len(names):
            raise ValueError(f"capacity: {names} must differ; give some of them a name")
        for it in self.capacity:
            if not isinstance(it, Reservation | CapacityBlock):
                continue
            if it.zone not in self.all_zones:
                raise ValueError(
                    f"capacity: {suffix_of(it)} is in {it.zone}, but zones has "
                    f"{list(self.all_zones)}"
                )
            if len(self.types) > 1:
                raise ValueError(
                    f"instance_types={list(self.instance_types)} with {suffix_of(it)}: what is "
                    "reserved is of one type; name that one only"
                )
        return self

    @model_validator(mode="after")
    def _floor_can_be_kept(self) -> Self:
        kept = self.kept_on
        if self.warm_floor and kept is None:
            raise ValueError(
                f"warm_floor={self.warm_floor}: nothing in capacity can be kept, for spot nodes "
                "and blocks are taken away; add OnDemand() or a Reservation"
            )
        for it in self.capacity:
            most = self.most_of(it)
            if suffix_of(it) == kept and self.warm_floor > most:
                raise ValueError(
                    f"warm_floor={self.warm_floor} is above the {most} nodes of {kept}, on which "
                    "it rests"
                )
        return self

    def most_of(self, capacity: Capacity) -> int:
        """Return the most nodes that one of its capacities may have."""
        if isinstance(capacity, Reservation | CapacityBlock):
            return capacity.nodes
        return capacity.max_nodes or self.max_nodes

    def least_of(self, capacity: Capacity) -> int:
        """Return the least nodes of one of its capacities."""
        return self.warm_floor if suffix_of(capacity) == self.kept_on else 0
