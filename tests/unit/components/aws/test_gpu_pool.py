"""Pools of GPU nodes: what they boot, where they come from, and who owns their number."""

import base64
import re
from typing import Any

import pulumi
import pytest
import yaml
from pydantic import ValidationError

from components.aws.capacity import (
    CapacityBlock,
    OnDemand,
    Reservation,
    Spot,
    group_patterns,
    suffix_of,
)
from components.aws.gpu_nodes import GpuPool
from components.aws.gpu_pool_args import GpuPoolArgs, Taint
from components.aws.launch_template import Disk
from components.aws.system_nodes import SystemNodes
from components.domain.accelerators import Accelerator
from tests import eks_samples
from tests.aws_outputs import SCALING_GROUP
from tests.harness import Built, Recorded, build
from tests.samples import known

ZONE = eks_samples.ZONES[0]
TAGS = "k8s.io/cluster-autoscaler/node-template/"
BLOCK = CapacityBlock(reservation_id="cr-block", zone=ZONE, nodes=2)
RESERVED = Reservation(reservation_id="cr-reserved", zone=ZONE, nodes=3)
EVERY_KIND = (RESERVED, BLOCK, OnDemand(), Spot())


def pool(preview: bool = False, opts: pulumi.ResourceOptions | None = None, **how: Any) -> Built:
    return build(lambda: GpuPool("h100", eks_samples.pool_args(**how), opts), preview=preview)


def groups(built: Built) -> dict[str, Recorded]:
    return {it.name: it for it in built.all("NodeGroup")}


def group(**how: Any) -> dict[str, Any]:
    return pool(**how).one("NodeGroup").inputs


def template(built: Built, suffix: str) -> dict[str, Any]:
    (found,) = (it for it in built.all("LaunchTemplate") if it.name == f"h100-{suffix}-template")
    return found.inputs


def user_data(built: Built, suffix: str = "on-demand") -> dict[str, Any]:
    text = base64.b64decode(template(built, suffix)["userData"]).decode()
    assert text.startswith("MIME-Version: 1.0\n")
    (_, body) = text.split("Content-Type: application/node.eks.aws\n\n")
    return yaml.safe_load(body.partition("\n--")[0])


# What nodes are


def test_nodes_boot_nvidia_s_driver_and_follow_the_cluster_s_version() -> None:
    inputs = group()
    assert inputs["amiType"] == "AL2023_x86_64_NVIDIA"
    assert inputs["version"] == "1.35"
    assert inputs["instanceTypes"] == ["g6e.4xlarge"]
    assert group(version="1.34", release_version="1.34.9-20260714")["version"] == "1.34"


def test_pods_cannot_become_the_node_and_disks_are_encrypted() -> None:
    made = template(pool(disk=Disk(gib=200, throughput_mib=1000, iops=4000)), "on-demand")
    assert made["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }
    (device,) = made["blockDeviceMappings"]
    assert device["ebs"]["encrypted"] == "true"
    assert (device["ebs"]["volumeSize"], device["ebs"]["throughput"]) == (200, 1000)
    # EKS puts nodes into the cluster's security group and a subnet only if the template doesn't.
    assert not {"vpcSecurityGroupIds", "networkInterfaces", "iamInstanceProfile"} & made.keys()


def test_instances_carry_the_tags_that_the_provider_s_defaults_do_not_reach() -> None:
    made = template(pool(tags={"cost-centre": "search"}), "on-demand")
    kinds = {it["resourceType"]: it["tags"] for it in made["tagSpecifications"]}
    assert set(kinds) == {"instance", "volume", "network-interface"}
    assert kinds["instance"] == {"Name": "h100-on-demand", "cost-centre": "search"}


def test_a_node_s_disks_are_one_and_images_come_in_parallel() -> None:
    spec = user_data(pool())["spec"]
    assert spec["instance"] == {"localStorage": {"strategy": "RAID0"}}
    assert spec["featureGates"] == {"FastImagePull": True}
    assert spec["kubelet"]["config"]["maxParallelImagePulls"] == 8
    assert "cluster" not in spec, "EKS says where the cluster is"


def test_small_nodes_do_not_pull_in_parallel() -> None:
    spec = user_data(pool(instance_types=("g6e.xlarge",)))["spec"]
    assert "featureGates" not in spec
    assert "instance" in spec


def test_pods_without_gpus_stay_away_and_the_rest_find_their_gpu() -> None:
    inputs = group(labels={"stage": "blue"}, extra_taints=(Taint(key="team", value="search"),))
    assert inputs["taints"] == [
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"},
        {"key": "team", "value": "search", "effect": "NO_SCHEDULE"},
    ]
    assert inputs["labels"] == {
        "llm-platform/accelerator": "l40s",
        "llm-platform/capacity": "on-demand",
        "llm-platform/pool": "h100",
        "nvidia.com/gpu.present": "true",
        "k8s.amazonaws.com/accelerator": "nvidia-l40s",
        "stage": "blue",
    }


def test_nodes_roll_without_spare_gpus_and_broken_ones_are_replaced() -> None:
    inputs = group()
    assert inputs["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}
    assert inputs["nodeRepairConfig"] == {"enabled": True, "maxParallelNodesRepairedCount": 1}


def test_a_new_template_version_reaches_the_group() -> None:
    assert group()["launchTemplate"]["version"] == "3"


# An image of one's own


def test_an_image_of_one_s_own_has_no_release_and_no_type_and_is_told_everything() -> None:
    built = pool(ami_id="ami-1")
    inputs = built.one("NodeGroup").inputs
    assert not {"amiType", "version", "releaseVersion"} & inputs.keys()
    assert template(built, "on-demand")["imageId"] == "ami-1"
    assert user_data(built)["spec"]["cluster"] == {
        "name": "prod-aws",
        "apiServerEndpoint": "https://ABC.gr7.eu-west-1.eks.amazonaws.com",
        "certificateAuthority": "LS0tLS1CRUdJTg==",
        "cidr": "172.20.0.0/16",
    }


@pytest.mark.parametrize(
    "also",
    [
        {"version": "1.35"},
        {"release_version": "1.35.2-20260714"},
        {"ami_type": "AL2023_x86_64_NVIDIA"},
    ],
)
def test_with_an_image_of_one_s_own_nothing_else_says_what_to_boot(also: dict[str, str]) -> None:
    (field,) = also
    with pytest.raises(ValidationError, match=f"{field} with ami_id"):
        eks_samples.pool_args(ami_id="ami-1", **also)


# Where nodes come from


def test_each_source_is_a_node_group_in_order() -> None:
    built = pool(capacity=EVERY_KIND)
    assert list(built.value.node_groups) == [
        f"reservation-{ZONE}",
        f"capacity-block-{ZONE}",
        "on-demand",
        "spot",
    ]
    types = {
        name.removeprefix("h100-"): it.inputs["capacityType"] for name, it in groups(built).items()
    }
    assert types == {
        f"reservation-{ZONE}": "ON_DEMAND",
        f"capacity-block-{ZONE}": "CAPACITY_BLOCK",
        "on-demand": "ON_DEMAND",
        "spot": "SPOT",
    }


def test_what_is_reserved_is_in_its_one_zone_and_is_what_the_template_asks_for() -> None:
    built = pool(capacity=EVERY_KIND)
    for kind, found, at_most in (("reservation", RESERVED, 3), ("capacity-block", BLOCK, 2)):
        inputs = groups(built)[f"h100-{kind}-{ZONE}"].inputs
        assert inputs["subnetIds"] == [eks_samples.SUBNETS[ZONE]]
        assert inputs["scalingConfig"]["maxSize"] == at_most
        target = template(built, f"{kind}-{ZONE}")["capacityReservationSpecification"]
        assert target["capacityReservationTarget"] == {
            "capacityReservationId": found.reservation_id
        }
    assert groups(built)["h100-spot"].inputs["subnetIds"] == list(eks_samples.SUBNETS.values())


def test_a_block_s_template_names_its_type_and_its_market_and_the_group_does_not() -> None:
    built = pool(capacity=(BLOCK,))
    made = template(built, f"capacity-block-{ZONE}")
    assert made["instanceType"] == "g6e.4xlarge"
    assert made["instanceMarketOptions"] == {"marketType": "capacity-block"}
    inputs = built.one("NodeGroup").inputs
    assert "instanceTypes" not in inputs
    assert inputs["scalingConfig"]["desiredSize"] == 0, "a block that hasn't begun has no node"
    reserved = template(pool(capacity=(RESERVED,)), f"reservation-{ZONE}")
    assert not {"instanceType", "instanceMarketOptions"} & reserved.keys()


def test_a_source_that_comes_or_goes_moves_no_other() -> None:
    before, after = pool(capacity=(OnDemand(), Spot())), pool(capacity=EVERY_KIND)
    old = {it.urn: it.inputs for it in before.resources}
    new = {it.urn: it.inputs for it in after.resources}
    assert old.items() <= new.items()


def test_the_autoscaler_is_told_the_order_before_there_are_groups() -> None:
    built = pool(capacity=EVERY_KIND)
    patterns = group_patterns("h100", EVERY_KIND)
    names = [SCALING_GROUP.format(f"{name}-1a2b3c4") for name in groups(built)]
    for pattern, name in zip(patterns, names, strict=True):
        matching = [it for it in names if re.match(pattern, it)]
        assert matching == [name]


@pytest.mark.parametrize(
    ("capacity", "kept"),
    [
        ((OnDemand(), Spot()), "h100-on-demand"),
        ((Spot(), OnDemand()), "h100-on-demand"),
        ((BLOCK, RESERVED, OnDemand()), f"h100-reservation-{ZONE}"),
    ],
)
def test_the_floor_rests_on_the_first_source_that_is_not_taken_away(
    capacity: tuple[Any, ...], kept: str
) -> None:
    built = pool(capacity=capacity, warm_floor=2)
    least = {name: it.inputs["scalingConfig"]["minSize"] for name, it in groups(built).items()}
    assert least == {name: 2 if name == kept else 0 for name in least}


# Who owns their number (pulumi/pulumi-eks#709)


def test_the_number_of_nodes_is_ignored_where_the_group_stands() -> None:
    opts = pulumi.ResourceOptions(ignore_changes=["scalingConfig.desiredSize"])
    for built in (pool(capacity=EVERY_KIND), pool(opts=opts)):
        for found in groups(built).values():
            assert found.ignore_changes == ("scalingConfig.desiredSize",), found.name
    system = build(lambda: SystemNodes("system", eks_samples.system_args()))
    assert system.one("NodeGroup").ignore_changes == ("scalingConfig.desiredSize",)


# Scale from zero (eksctl-io/eksctl#7543)


def tags_of(built: Built, scaling_group: str) -> dict[str, dict[str, Any]]:
    return {
        it.inputs["tag"]["key"].removeprefix(TAGS): it.inputs["tag"]
        for it in built.all("Tag")
        if it.inputs.get("autoscalingGroupName") == scaling_group
    }


def test_an_empty_group_says_what_a_node_of_it_would_be() -> None:
    built = pool(
        accelerator=Accelerator.H100,
        instance_types=("p5.48xlarge",),
        labels={"stage": "blue"},
        extra_taints=(Taint(key="team", value="search", effect="NoExecute"),),
    )
    found = groups(built)["h100-on-demand"].inputs
    tags = tags_of(built, SCALING_GROUP.format("h100-on-demand-1a2b3c4"))
    said = {key: tag["value"] for key, tag in tags.items()}
    assert {f"label/{key}": value for key, value in found["labels"].items()}.items() <= said.items()
    assert said["label/llm-platform/accelerator"] == "h100"
    assert said["taint/nvidia.com/gpu"] == "true:NoSchedule"
    assert said["taint/team"] == "search:NoExecute"
    assert said["resources/nvidia.com/gpu"] == "8"
    assert said["resources/ephemeral-storage"] == "25840G", "what kubelet leaves of 30,400 GB"
    assert len(said) == len(found["labels"]) + len(found["taints"]) + 2
    assert all(tag["propagateAtLaunch"] is False for tag in tags.values())


def test_the_tags_are_in_the_first_preview_though_the_group_s_name_is_not_known() -> None:
    known_later, now = pool(preview=True), pool()
    assert {it.urn for it in known_later.all("Tag")} == {it.urn for it in now.all("Tag")}
    for tag in known_later.all("Tag"):
        assert isinstance(tag.inputs["tag"]["value"], str)


def test_two_pools_tag_their_own_groups() -> None:
    def program() -> None:
        for name in ("one", "two"):
            GpuPool(name, eks_samples.pool_args(capacity=(OnDemand(), Spot())))

    built = build(program)
    assert len({it.inputs["autoscalingGroupName"] for it in built.all("Tag")}) == 4


# What could not work


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"accelerator": "cpu"}, "SystemNodes"),
        ({"instance_types": ("g6e.4xlrage",)}, r"did you mean g6e\.4xlarge"),
        ({"instance_types": ("p5.48xlarge",)}, "has h100, not l40s"),
        ({"instance_types": ("g6e.4xlarge", "g6e.8xlarge")}, "make two pools"),
        ({"zones": ("eu-west-1c",)}, "no subnet there"),
        ({"zones": ("eu-west-1a", "eu-west-1a")}, "at most once"),
        ({"subnets": {"eu-west-1a": "s", "us-east-1a": "t"}}, "all of one region"),
        ({"subnets": {}}, "subnets"),
        ({"max_nodes": 0}, "max_nodes"),
        ({"capacity": ()}, "capacity"),
        ({"capacity": (OnDemand(), OnDemand())}, "must differ"),
        ({"capacity": (RESERVED, RESERVED)}, "must differ"),
        ({"capacity": (RESERVED,), "zones": ("eu-west-1b",)}, "is in eu-west-1a, but zones has"),
        ({"warm_floor": 5}, "above the 4 nodes of on-demand"),
        ({"warm_floor": 4, "capacity": (RESERVED, OnDemand())}, "above the 3 nodes of reservation"),
        ({"warm_floor": 1, "capacity": (Spot(), BLOCK)}, "nothing in capacity can be kept"),
        ({"capacity": ({"kind": "lease"},)}, "capacity"),
    ],
)
def test_what_could_not_work_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        eks_samples.pool_args(**given)


def test_what_is_reserved_is_of_one_type() -> None:
    # Two types of one shape, were there any; the table has none, so the rule is asked directly.
    args = eks_samples.pool_args(capacity=(RESERVED,))
    two = args.model_copy(update={"instance_types": ("g6e.4xlarge", "g6e.4xlarge")})
    with pytest.raises(ValidationError, match="reserved is of one type"):
        GpuPoolArgs(**dict(two))


@pytest.mark.parametrize("kind", [Reservation, CapacityBlock])
def test_what_is_reserved_is_in_exactly_one_zone(kind: Any) -> None:
    with pytest.raises(ValidationError, match="zone"):
        kind(reservation_id="cr-1", nodes=1)
    with pytest.raises(ValidationError, match="isn't an availability zone"):
        kind(reservation_id="cr-1", nodes=1, zone="eu-west-1a,eu-west-1b")


def test_settings_say_a_source_by_its_kind() -> None:
    args = eks_samples.pool_args(
        capacity=(
            {"kind": "capacity-block", "reservation_id": "cr-1", "zone": ZONE, "nodes": 1},
            {"kind": "spot", "name": "leftover"},
        )
    )
    assert [suffix_of(it) for it in args.capacity] == [f"capacity-block-{ZONE}", "leftover"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_nodes": 4, "max_nodes": 2}, "min_nodes=4 is above max_nodes=2"),
        ({"instance_types": ("g6e.4xlarge",)}, "make a GpuPool"),
        ({"instance_types": ("m7i.large", "m7i.xlarge")}, "as much memory"),
        ({"disk": {"throughput_mib": 1000}}, "set iops=4000"),
    ],
)
def test_system_nodes_that_could_not_work_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        eks_samples.system_args(**given)


def test_a_reservation_may_be_known_later() -> None:
    later = Reservation(reservation_id=known("cr-later"), zone=ZONE, nodes=1)
    made = template(pool(capacity=(later,)), f"reservation-{ZONE}")
    target = made["capacityReservationSpecification"]["capacityReservationTarget"]
    assert target == {"capacityReservationId": "cr-later"}
