"""Karpenter's objects for one kind of overflow node; pure, so that they can be looked at."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ..contracts import In
from ..domain.accelerators import ACCELERATOR_LABEL, GPU_RESOURCE, Accelerator
from ..domain.args import Args
from ..domain.aws_instances import Instance, instance, instances_with
from ..domain.aws_zones import Zone
from ..domain.names import K8sName
from .gpu_pool_args import GPU_DISK, GPU_TAINT, Taint
from .launch_template import ROOT_DEVICE, Disk
from .node_config import FAST_PULL_VCPUS, node_config, user_data

CapacityType = Literal["reserved", "spot", "on-demand"]
"""What Karpenter may buy. It takes reserved first, then spot, then on demand."""


class OverflowPool(Args):
    """Nodes that come when everything else is full, and go when they are empty."""

    name: K8sName
    """What Karpenter's objects are called."""
    accelerator: Accelerator
    """The kind of GPU."""
    instance_types: tuple[str, ...] = ()
    """Types that it may take, of any size; all with this GPU and enough processors to pull images
    in parallel when left out."""
    zones: tuple[Zone, ...] = ()
    """The zones that nodes may be in; all that have a subnet when left out."""
    max_gpus: int = Field(ge=1)
    """The most GPUs of all its nodes together. The floor of warm nodes isn't its business: those
    are node groups, which pods find first."""
    capacity_types: tuple[CapacityType, ...] = Field(default=("on-demand",), min_length=1)
    """What it may buy."""
    reservation_ids: tuple[In[str], ...] = ()
    """Capacity reservations that it may use, ``cr-…``; with ``reserved`` only."""
    ami_release: str = Field(default="v20260714", pattern=r"^v[0-9]{8}$")
    """The release of the EKS-optimised AL2023 image. A new one replaces nodes, one at a time."""
    disk: Disk = GPU_DISK
    """The root disks."""
    idle_minutes: int = Field(default=10, ge=1)
    """How long a node is empty before it goes."""
    expire_hours: int = Field(default=720, ge=1)
    """How old a node gets; a new one has a newer kernel."""
    drain_minutes: int = Field(default=90, ge=1)
    """How long pods have to end when a node goes: longer than the longest task."""
    weight: int = Field(default=10, ge=1, le=100)
    """Which pool is tried first: the one with more."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """More labels of the nodes."""
    extra_taints: tuple[Taint, ...] = ()
    """More taints than that of GPU nodes."""
    tags: Mapping[str, str] = Field(default_factory=dict)
    """More tags of instances and disks."""

    @property
    def types(self) -> tuple[Instance, ...]:
        """The types with what they have; those that aren't sold on demand come from blocks only."""
        if self.instance_types:
            return tuple(instance(it) for it in self.instance_types)
        offered = instances_with(self.accelerator)
        return tuple(
            it for it in offered if it.usd_per_hour is not None and it.vcpus >= FAST_PULL_VCPUS
        )

    @model_validator(mode="after")
    def _types_have_the_gpu(self) -> Self:
        if not self.accelerator.is_gpu:
            raise ValueError("accelerator='cpu': overflow is for GPUs")
        for it in self.types:
            if it.accelerator is not self.accelerator:
                raise ValueError(
                    f"instance_types: {it.type} has {it.accelerator.value}, "
                    f"not {self.accelerator.value}"
                )
        smallest = min(it.gpus for it in self.types)
        if smallest > self.max_gpus:
            raise ValueError(
                f"max_gpus={self.max_gpus}: the smallest of its types has {smallest}, "
                "so that there would never be a node"
            )
        return self

    @model_validator(mode="after")
    def _reservations_are_named(self) -> Self:
        reserved = "reserved" in self.capacity_types
        if reserved and not self.reservation_ids:
            raise ValueError("reservation_ids is empty, though capacity_types has 'reserved'")
        if self.reservation_ids and not reserved:
            raise ValueError("capacity_types lacks 'reserved', though reservation_ids has some")
        return self


def node_class(
    pool: OverflowPool,
    *,
    instance_profile: In[str],
    security_group_id: In[str],
    subnets: Mapping[str, In[str]],
) -> Mapping[str, Any]:
    """Return the spec of the ``EC2NodeClass``: what machines of the pool are like.

    Subnets and security group are named by their ids, so that two environments in one VPC never
    take each other's.
    """
    zones = pool.zones or tuple(subnets)
    spec: dict[str, Any] = {
        "amiSelectorTerms": [{"alias": f"al2023@{pool.ami_release}"}],
        "instanceProfile": instance_profile,
        "subnetSelectorTerms": [{"id": subnets[zone]} for zone in zones],
        "securityGroupSelectorTerms": [{"id": security_group_id}],
        "blockDeviceMappings": [{"deviceName": ROOT_DEVICE, "ebs": _root(pool.disk)}],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": 1,
        },
        "userData": user_data(node_config(pool.types)),
        "tags": {"Name": pool.name, **pool.tags},
    }
    if all(it.nvme_gb for it in pool.types):
        spec["instanceStorePolicy"] = "RAID0"
    if pool.reservation_ids:
        spec["capacityReservationSelectorTerms"] = [{"id": it} for it in pool.reservation_ids]
    return spec


def node_pool(pool: OverflowPool, zones: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the spec of the ``NodePool``: when nodes come and go, and how many there may be."""
    return {
        "weight": pool.weight,
        "limits": {GPU_RESOURCE: pool.max_gpus},
        "disruption": {
            # Moving a model to save a little costs more than it saves.
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{pool.idle_minutes}m",
            "budgets": [{"nodes": "1"}],
        },
        "template": {
            "metadata": {
                "labels": {
                    ACCELERATOR_LABEL: pool.accelerator.value,
                    "nvidia.com/gpu.present": "true",
                    **pool.labels,
                }
            },
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws",
                    "kind": "EC2NodeClass",
                    "name": pool.name,
                },
                "expireAfter": f"{pool.expire_hours}h",
                "terminationGracePeriod": f"{pool.drain_minutes}m",
                "taints": [_taint(it) for it in (GPU_TAINT, *pool.extra_taints)],
                "requirements": [
                    _one_of("node.kubernetes.io/instance-type", [it.type for it in pool.types]),
                    _one_of("topology.kubernetes.io/zone", pool.zones or zones),
                    _one_of("karpenter.sh/capacity-type", pool.capacity_types),
                    _one_of("kubernetes.io/arch", ["amd64"]),
                ],
            },
        },
    }


def _one_of(key: str, values: tuple[str, ...] | list[str]) -> Mapping[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def _taint(taint: Taint) -> Mapping[str, str]:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}


def _root(disk: Disk) -> Mapping[str, Any]:
    root: dict[str, Any] = {
        "volumeType": "gp3",
        "volumeSize": f"{disk.gib}Gi",
        "throughput": disk.throughput_mib,
        "iops": disk.iops,
        "encrypted": True,
        "deleteOnTermination": True,
    }
    return root if disk.key_arn is None else {**root, "kmsKeyID": disk.key_arn}
