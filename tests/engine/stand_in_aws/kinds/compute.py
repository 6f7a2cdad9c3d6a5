"""Launch templates, placement, reserved capacity, tags of scaling groups."""

from collections.abc import Iterator

from ..model import is_base64
from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read

ARN = "arn:aws:ec2:{region}:{account}:"

# Parameter by property, in LaunchTemplateData.
DATA = {
    "name": "LaunchTemplateName",
    "description": "VersionDescription",
    "vpcSecurityGroupIds": "LaunchTemplateData.SecurityGroupIds",
    "securityGroupNames": "LaunchTemplateData.SecurityGroups",
    "tagSpecifications": "LaunchTemplateData.TagSpecifications",
    "networkInterfaces.securityGroups": "Groups",
    "networkInterfaces.ipv4Addresses": "PrivateIpAddresses",
    "instanceRequirements.acceleratorTotalMemoryMib": "AcceleratorTotalMemoryMiB",
    "instanceRequirements.memoryMib": "MemoryMiB",
}


def _user_data(facts: Facts) -> Iterator[tuple[str, str]]:
    data = facts.get("userData")
    if isinstance(data, str) and not unknown(data) and not is_base64(data):
        yield "userData", "must be base64"


def _default_version(context: Context) -> None:
    """Make the newest version the default, where that's wished, or the one that is named."""
    facts = context.facts
    latest = facts["old"].get("updateDefaultVersion") or facts.get("updateDefaultVersion")
    wanted = "$Latest" if latest else facts.get("defaultVersion")
    if wanted is None or not facts["old"]:
        return
    if wanted == "$Latest":
        found = context.cloud.call(
            "ec2", "DescribeLaunchTemplates", {"LaunchTemplateIds": [facts["id"]]}
        )
        wanted = found["LaunchTemplates"][0]["LatestVersionNumber"]
    params = {"LaunchTemplateId": facts["id"], "DefaultVersion": str(wanted)}
    context.cloud.call("ec2", "ModifyLaunchTemplate", params)


VERSION = {name: target for name, target in DATA.items() if name != "name"}
LAUNCH_TEMPLATE = Kind(
    "aws:ec2/launchTemplate:LaunchTemplate",
    "ec2",
    Call("CreateLaunchTemplate", rename=DATA, inside="LaunchTemplateData"),
    "{made.LaunchTemplate.LaunchTemplateId}",
    update=(
        Call(
            "CreateLaunchTemplateVersion",
            {"LaunchTemplateId": "{id}"},
            rename=VERSION | {"name": None},
            inside="LaunchTemplateData",
            whole=True,
        ),
        Act(_default_version, ("updateDefaultVersion", "defaultVersion"), always=True),
    ),
    read=Read("DescribeLaunchTemplates", {"LaunchTemplateIds": ["{id}"]}, "LaunchTemplates[0]"),
    delete=(Call("DeleteLaunchTemplate", {"LaunchTemplateId": "{id}"}),),
    replaces=("name",),
    local=("updateDefaultVersion", "defaultVersion"),
    named=Named("name", 128, r"[a-zA-Z0-9().\-/_]+"),
    tag_spec="launch-template",
    gives={
        "arn": ARN + "launch-template/{id}",
        "latestVersion": "{seen.LatestVersionNumber}",
        "defaultVersion": "{seen.DefaultVersionNumber}",
    },
    recomputed=("latestVersion",),
    checks=_user_data,
    keeps=("aws:eks/nodeGroup:NodeGroup",),
)

PLACEMENT_GROUP = Kind(
    "aws:ec2/placementGroup:PlacementGroup",
    "ec2",
    Call("CreatePlacementGroup", rename={"name": "GroupName"}, moto=False),
    "{name}",
    delete=(Call("DeletePlacementGroup", {"GroupName": "{name}"}, moto=False),),
    replaces=("name", "strategy", "partitionCount", "spreadLevel"),
    named=Named("name", 255),
    tag_spec="placement-group",
    gives={"arn": ARN + "placement-group/{name}", "placementGroupId": "pg-{fake}"},
    keeps=("aws:ec2/launchTemplate:LaunchTemplate",),
)

CAPACITY_RESERVATION = Kind(
    "aws:ec2/capacityReservation:CapacityReservation",
    "ec2",
    Call("CreateCapacityReservation", moto=False),
    "cr-{fake}",
    update=(
        Call(
            "ModifyCapacityReservation",
            {"CapacityReservationId": "{id}"},
            only=("instanceCount", "endDate", "endDateType", "instanceMatchCriteria"),
            moto=False,
        ),
    ),
    delete=(Call("CancelCapacityReservation", {"CapacityReservationId": "{id}"}, moto=False),),
    replaces=("availabilityZone", "ebsOptimized", "ephemeralStorage", "instancePlatform",
              "instanceType", "outpostArn", "placementGroupArn", "tenancy"),
    tag_spec="capacity-reservation",
    gives={"arn": ARN + "capacity-reservation/{id}", "ownerId": "{account}"},
)  # fmt: skip

CAPACITY_BLOCK = Kind(
    "aws:ec2/capacityBlockReservation:CapacityBlockReservation",
    "ec2",
    Call("PurchaseCapacityBlock", moto=False),
    "cr-{fake}",
    replaces=("capacityBlockOfferingId", "instancePlatform"),
    local=("timeouts",),
    tag_spec="capacity-reservation",
    gives={"arn": ARN + "capacity-reservation/{id}"},
)

SCALING_TAG_NAMES = {
    "ResourceId": "{autoscalingGroupName}",
    "ResourceType": "auto-scaling-group",
    "Key": "{tag.key}",
    "Value": "{tag.value}",
    "PropagateAtLaunch": "{tag.propagateAtLaunch}",
}
SCALING_TAG_CALL = {"Tags": [SCALING_TAG_NAMES]}
SCALING_TAG = Kind(
    "aws:autoscaling/tag:Tag",
    "autoscaling",
    Call("CreateOrUpdateTags", SCALING_TAG_CALL, takes=("autoscalingGroupName", "tag")),
    "{autoscalingGroupName},{tag.key}",
    update=(Call("CreateOrUpdateTags", SCALING_TAG_CALL, takes=("tag",)),),
    delete=(
        Call(
            "DeleteTags",
            {"Tags": [{
                "ResourceId": "{autoscalingGroupName}",
                "ResourceType": "auto-scaling-group",
                "Key": "{tag.key}",
            }]},
        ),
    ),
    replaces=("autoscalingGroupName", "tag.key"),
)  # fmt: skip

KINDS = (LAUNCH_TEMPLATE, PLACEMENT_GROUP, CAPACITY_RESERVATION, CAPACITY_BLOCK, SCALING_TAG)
