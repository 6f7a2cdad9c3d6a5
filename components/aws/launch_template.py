"""The launch template of nodes: their disk, their metadata service, their tags."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import pulumi
import pulumi_aws as aws
from pydantic import Field, model_validator

from ..contracts import In
from ..domain.args import Args
from .capacity import AnyCapacity, CapacityBlock, Reservation

ROOT_DEVICE = "/dev/xvda"
"""The root device of Amazon Linux 2023."""
_MIB_PER_IOPS = 0.25
"""gp3 gives at most this much throughput for each of its operations (EBS user guide, gp3)."""


class Disk(Args):
    """A node's root disk, a gp3 volume that is encrypted and ends with the node."""

    gib: int = Field(default=100, ge=20, le=16_384)
    """Its size in GiB. Where a node has disks of its own, images and weights are on those."""
    throughput_mib: int = Field(default=125, ge=125, le=1000)
    """MiB per second; 125 are in the price."""
    iops: int = Field(default=3000, ge=3000, le=16_000)
    """Operations per second; 3,000 are in the price."""
    key_arn: In[str] | None = None
    """The KMS key that encrypts it; AWS's own ``aws/ebs`` when left out. The role
    ``AWSServiceRoleForAutoScaling`` must be allowed to use it, or no node starts."""

    @model_validator(mode="after")
    def _balanced(self) -> Self:
        if self.throughput_mib > self.iops * _MIB_PER_IOPS:
            raise ValueError(
                f"throughput_mib={self.throughput_mib} with iops={self.iops}: gp3 gives at most "
                f"{_MIB_PER_IOPS} MiB/s per operation; set iops={self.throughput_mib * 4}"
            )
        return self


@dataclass(frozen=True, kw_only=True)
class Template:
    """What nodes start from."""

    disk: Disk
    user_data: In[str]
    """Base64."""
    instance_name: str
    """The tag ``Name`` of instances and disks."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    """More tags of instances and disks, which the provider's default tags don't reach."""
    image_id: In[str] | None = None
    """An image of one's own."""
    capacity: AnyCapacity | None = None
    """Where instances come from, for what a template says of it."""
    instance_type: str | None = None
    """The only type; a capacity block's template must name it."""


def launch_template(
    name: str, template: Template, opts: pulumi.ResourceOptions
) -> aws.ec2.LaunchTemplate:
    """Create a launch template that EKS takes for a node group.

    It names no subnet, no instance profile and no security group: then EKS adds its own. Pods
    can't reach the metadata service, and with it the node's role, for the answer's hop limit is 1.
    """
    tags = {"Name": template.instance_name, **template.tags}
    tagged = ("instance", "volume", "network-interface")
    return aws.ec2.LaunchTemplate(
        name,
        block_device_mappings=[_root(template.disk)],
        metadata_options={
            "http_endpoint": "enabled",
            "http_tokens": "required",
            "http_put_response_hop_limit": 1,
        },
        tag_specifications=[{"resource_type": kind, "tags": tags} for kind in tagged],
        user_data=template.user_data,
        image_id=template.image_id,
        instance_type=template.instance_type,
        capacity_reservation_specification=_target(template.capacity),
        instance_market_options=_market(template.capacity),
        update_default_version=True,
        opts=opts,
    )


def latest_version(template: aws.ec2.LaunchTemplate) -> pulumi.Output[str]:
    """Return the version that was just made, so that a change rolls the nodes."""
    return template.latest_version.apply(lambda version: f"{version:.0f}")


def _root(disk: Disk) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgsDict:
    ebs: aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgsDict = {
        "volume_type": "gp3",
        "volume_size": disk.gib,
        "throughput": disk.throughput_mib,
        "iops": disk.iops,
        "encrypted": "true",
        "delete_on_termination": "true",
    }
    if disk.key_arn is not None:
        ebs["kms_key_id"] = disk.key_arn
    return {"device_name": ROOT_DEVICE, "ebs": ebs}


def _target(
    capacity: AnyCapacity | None,
) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgsDict | None:
    if not isinstance(capacity, Reservation | CapacityBlock):
        return None
    return {
        "capacity_reservation_target": {"capacity_reservation_id": capacity.reservation_id},
    }


def _market(
    capacity: AnyCapacity | None,
) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgsDict | None:
    return {"market_type": "capacity-block"} if isinstance(capacity, CapacityBlock) else None
