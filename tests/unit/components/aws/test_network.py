"""The network: what is in it, what it costs least, and one that is there already."""

import json
from ipaddress import IPv4Network
from typing import Any

import pytest
from pydantic import ValidationError

from components.aws.network import Network
from components.aws.network_args import ExistingNetwork, Nat, NetworkArgs
from components.aws.subnets import shared_out
from components.domain.aws_zones import region_of, zones_problem
from tests import eks_samples
from tests.aws_outputs import REGION
from tests.harness import Built, build

ZONES = tuple(f"{REGION}{letter}" for letter in "abc")


def network(**changes: Any) -> Built:
    args = eks_samples.network_args(**{"zones": ZONES, **changes})
    return build(lambda: Network("net", args))


def existing(**changes: Any) -> ExistingNetwork:
    fields: dict[str, Any] = {
        "vpc_id": "vpc-theirs",
        "cidr": "10.0.0.0/16",
        "private_subnets": {zone: f"subnet-{zone[-1]}" for zone in ZONES},
    }
    return ExistingNetwork(**{**fields, **changes})


def named(built: Built, kind: str) -> dict[str, dict[str, Any]]:
    return {it.name: it.inputs for it in built.all(kind)}


def test_each_zone_has_a_private_a_gpu_and_a_public_subnet_that_do_not_overlap() -> None:
    subnets = named(network(), "Subnet")
    assert len(subnets) == 9
    ranges = [IPv4Network(it["cidrBlock"]) for it in subnets.values()]
    assert not any(a.overlaps(b) for a in ranges for b in ranges if a is not b)
    assert all(it.subnet_of(IPv4Network("10.64.0.0/16")) for it in ranges)
    assert subnets["net-gpu-eu-west-1b"]["availabilityZone"] == "eu-west-1b"


@pytest.mark.parametrize("cidr", ["10.64.0.0/16", "10.64.0.0/18", "10.64.0.0/20"])
def test_a_zone_that_is_added_at_the_end_moves_no_other(cidr: str) -> None:
    six = [f"us-east-1{letter}" for letter in "abcdef"]
    for count in range(1, 6):
        fewer, more = shared_out(cidr, six[:count]), shared_out(cidr, six[: count + 1])
        assert all(more[zone] == ranges for zone, ranges in fewer.items())


def test_load_balancers_find_their_subnets_and_none_among_gpu_nodes() -> None:
    subnets = named(network(), "Subnet")
    roles = {
        name: {key for key in it["tags"] if key.startswith("kubernetes.io/role/")}
        for name, it in subnets.items()
    }
    assert roles["net-public-eu-west-1a"] == {"kubernetes.io/role/elb"}
    assert roles["net-private-eu-west-1a"] == {"kubernetes.io/role/internal-elb"}
    assert roles["net-gpu-eu-west-1a"] == set()


def test_no_instance_gets_a_public_address_by_itself() -> None:
    assert all(it["mapPublicIpOnLaunch"] is False for it in named(network(), "Subnet").values())


def test_the_default_security_group_lets_nothing_through() -> None:
    group = network().one("DefaultSecurityGroup").inputs
    assert not {"ingress", "egress"} & group.keys()


@pytest.mark.parametrize(("nat", "gateways", "routes"), [(Nat.PER_ZONE, 3, 3), (Nat.ONE, 1, 3)])
def test_private_subnets_reach_the_internet_by_nat(nat: Nat, gateways: int, routes: int) -> None:
    built = network(nat=nat)
    assert len(built.all("NatGateway")) == gateways
    out = [it for it in built.all("Route") if "natGatewayId" in it.inputs]
    assert len(out) == routes
    assert len({it.inputs["natGatewayId"] for it in out}) == gateways


def test_without_a_way_out_there_is_nothing_public() -> None:
    built = network(nat=Nat.NONE)
    for kind in ("NatGateway", "InternetGateway", "Route", "Eip"):
        assert built.all(kind) == [], kind
    assert built.value.public_subnets == {}
    assert {name.split("-")[1] for name in named(built, "Subnet")} == {"private", "gpu"}


def test_a_change_of_nat_changes_routes_and_no_subnet_or_table() -> None:
    one, each = network(nat=Nat.ONE), network(nat=Nat.PER_ZONE)
    for kind in ("Subnet", "RouteTable", "RouteTableAssociation"):
        assert named(one, kind) == named(each, kind)
    assert named(one, "Route").keys() == named(each, "Route").keys()


def test_s3_has_its_gateway_endpoint_whatever_else_is_wanted() -> None:
    for built in (network(), network(interface_endpoints=False), network(nat=Nat.NONE)):
        s3 = named(built, "VpcEndpoint")["net-endpoints-s3"]
        assert s3["vpcEndpointType"] == "Gateway"
        assert s3["serviceName"] == "com.amazonaws.eu-west-1.s3"
        assert len(s3["routeTableIds"]) == 3


def test_services_are_reached_inside_of_the_vpc_by_https_only() -> None:
    built = network()
    endpoints = [it for it in built.all("VpcEndpoint") if it.inputs["vpcEndpointType"] != "Gateway"]
    services = {
        it.inputs["serviceName"].removeprefix("com.amazonaws.eu-west-1.") for it in endpoints
    }
    assert {"ecr.api", "ecr.dkr", "eks-auth", "sts", "sqs", "kms", "secretsmanager"} <= services
    assert all(it.inputs["privateDnsEnabled"] for it in endpoints)
    assert all(len(it.inputs["subnetIds"]) == 3 for it in endpoints)
    rule = built.one("SecurityGroupIngressRule").inputs
    assert (rule["fromPort"], rule["toPort"], rule["cidrIpv4"]) == (443, 443, "10.64.0.0/16")


def test_the_services_can_be_chosen() -> None:
    built = network(interface_endpoints=("ecr.api",))
    assert set(named(built, "VpcEndpoint")) == {"net-endpoints-s3", "net-endpoints-ecr-api"}
    assert network(interface_endpoints=False).value.endpoints_security_group is None


def test_nodes_wait_for_their_way_to_aws() -> None:
    built = network()
    kinds = sorted({type(it).__name__ for it in built.value.ready})
    assert kinds == ["Route", "VpcEndpoint"]


def test_an_existing_vpc_is_used_as_it_is() -> None:
    there = existing(public_subnets={ZONES[0]: "subnet-public"})
    built = build(lambda: Network("net", NetworkArgs(existing=there)))
    assert [it.kind for it in built.resources] == ["Network"]
    assert set(built.value.private_subnets) == set(ZONES)
    assert built.value.gpu_subnets is built.value.private_subnets
    assert built.value.region == REGION


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"zones": ("eu-west-1a",)}, "at least two"),
        ({"zones": ("eu-west-1a", "eu-west-1a")}, "at most once"),
        ({"zones": ("eu-west-1a", "us-east-1a")}, "all of one region"),
        ({"zones": ("eu-west-1", "eu-west-1b")}, "isn't an availability zone"),
        ({"zones": ("us-west-2-lax-1a", "us-west-2a")}, "isn't an availability zone"),
        ({"cidr": "10.64.0.0/24"}, "from /16 to /20"),
        ({"cidr": "8.8.0.0/16"}, "private range"),
        ({"cidr": "10.64.0.1/16"}, "host bits"),
        ({"nat": "none", "interface_endpoints": False}, "would reach nothing"),
        ({"nat": "two"}, "nat"),
    ],
)
def test_what_could_not_work_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        eks_samples.network_args(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"private_subnets": {"eu-west-1a": "subnet-a"}}, "private_subnets"),
        ({"gpu_subnets": {"eu-west-1d": "subnet-d"}}, r"existing.gpu_subnets: \['eu-west-1d'\]"),
        (
            {"private_subnets": {"eu-west-1a": "subnet-a", "eu-west-2a": "subnet-b"}},
            "all of one region",
        ),
    ],
)
def test_an_existing_vpc_that_could_not_work_is_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        NetworkArgs(existing=existing(**given))


def test_zones_and_an_existing_vpc_must_say_the_same() -> None:
    with pytest.raises(ValidationError, match="leave zones out"):
        NetworkArgs(zones=ZONES[:2], existing=existing())


def test_a_zone_s_region_is_checked_where_one_is_known() -> None:
    assert region_of("us-gov-west-1a") == "us-gov-west-1"
    assert zones_problem(("eu-west-1a", "eu-west-1b"), "eu-west-1") is None
    assert "not in the region 'us-east-1'" in str(zones_problem(("eu-west-1a",), "us-east-1"))


def test_the_first_preview_knows_every_range() -> None:
    args = eks_samples.network_args(zones=ZONES)
    previewed = build(lambda: Network("net", args), preview=True)
    ranges = [it.inputs["cidrBlock"] for it in previewed.all("Subnet")]
    assert json.dumps(ranges)
    assert len(set(ranges)) == 9
