"""Each check on its own, over answers in the form that botocore's models give them."""

import datetime
from typing import Any

import pytest
from preflight_harness import StubbedAws, nodes, plan

from deploy.preflight import offerings, pieces, processors, reach, reservations, roles, version
from deploy.preflight.report import Result

OK, WOULD_FAIL, CANT_TELL = Result.OK, Result.WOULD_FAIL, Result.CANT_TELL
G, G_SPOT, P, P5_SPOT = "L-DB2E81BA", "L-3819A6DF", "L-417A185B", "L-C4BD4855"


def instance(kind: str, **more: Any) -> dict[str, Any]:
    return {"InstanceType": kind, **more}


def running(aws: StubbedAws, *instances: dict[str, Any]) -> None:
    aws.answer("ec2", "describe_instances", {"Reservations": [{"Instances": list(instances)}]})


# Quotas of processors


def test_enough_processors_are_ok(aws: StubbedAws) -> None:
    running(aws)
    aws.limit("ec2", G, 64)
    (row,) = processors.check(plan(nodes=(nodes(),)), aws, None)
    # 4 x 16
    assert row.result is OK
    assert "l40s may come to 64" in row.found


def test_a_quota_that_stops_growth_fails_and_says_how_much_to_ask_for(aws: StubbedAws) -> None:
    running(aws, instance("g5.xlarge", CpuOptions={"CoreCount": 2, "ThreadsPerCore": 2}))
    aws.limit("ec2", G, 64)
    (row,) = processors.check(plan(nodes=(nodes(),)), aws, None)
    assert row.result is WOULD_FAIL
    assert row.found == ("64 vCPUs, 4 in use by others; l40s can start, but not grow to 64")
    assert f"--quota-code {G} --desired-value 68" in row.todo


def test_a_quota_below_the_floor_fails_at_once(aws: StubbedAws) -> None:
    running(aws)
    aws.limit("ec2", G, 0)
    (row,) = processors.check(plan(nodes=(nodes(),)), aws, None)
    assert row.result is WOULD_FAIL
    assert "l40s needs 16 at once" in row.found


def test_pools_of_one_family_add_up(aws: StubbedAws) -> None:
    running(aws)
    aws.limit("ec2", G, 95)
    pools = (nodes(), nodes(name="l4", instance_types=("g6.2xlarge",)))
    (row,) = processors.check(plan(nodes=pools), aws, None)
    # 4 x 16 + 4 x 8 = 96
    assert row.result is WOULD_FAIL
    assert "l40s + l4 can start, but not grow to 96" in row.found


def test_spot_and_on_demand_have_quotas_of_their_own(aws: StubbedAws) -> None:
    running(aws, instance("g6.2xlarge", InstanceLifecycle="spot"))
    aws.limit("ec2", G, 64)
    aws.limit("ec2", G_SPOT, 64)
    pools = (nodes(), nodes(name="l40s-spot", capacity="spot"))
    on_demand, spot = processors.check(plan(nodes=pools), aws, None)
    assert on_demand.result is OK
    # 64 wanted, 8 in use by others.
    assert spot.result is WOULD_FAIL


def test_h100_on_spot_counts_against_the_quota_of_p5(aws: StubbedAws) -> None:
    running(aws)
    aws.limit("ec2", P5_SPOT, 192)
    pool = nodes(name="h100", instance_types=("p5.48xlarge",), capacity="spot", least=0, most=1)
    (row,) = processors.check(plan(nodes=(pool,)), aws, None)
    assert row.result is OK


def test_the_largest_type_counts_for_the_maximum(aws: StubbedAws) -> None:
    running(aws)
    aws.limit("ec2", G, 127)
    pool = nodes(instance_types=("g6e.4xlarge", "g6e.8xlarge"))
    (row,) = processors.check(plan(nodes=(pool,)), aws, None)
    # 4 x 32
    assert "not grow to 128" in row.found


def test_what_runs_for_this_environment_already_is_not_others_use(aws: StubbedAws) -> None:
    tags = [{"Key": "eks:cluster-name", "Value": "dev-aws"}]
    running(aws, instance("g6e.4xlarge", Tags=tags), instance("g6e.4xlarge"))
    aws.limit("ec2", G, 80)
    (row,) = processors.check(plan(nodes=(nodes(),)), aws, "dev-aws")
    assert row.result is OK
    assert "16 in use by others" in row.found


def test_a_capacity_block_needs_no_quota(aws: StubbedAws) -> None:
    block = nodes(instance_types=("p5.48xlarge",), capacity="capacity-block", reservation="cr-1")
    assert list(processors.check(plan(nodes=(block,)), aws, None)) == []


def test_a_type_that_is_not_known_cannot_be_told(aws: StubbedAws) -> None:
    running_nothing = plan(nodes=(nodes(instance_types=("g99.large",)),))
    (row,) = processors.check(running_nothing, aws, None)
    assert row.result is CANT_TELL


def test_a_limit_that_was_never_applied_is_awss_default(aws: StubbedAws) -> None:
    running(aws)
    aws.refuse("service-quotas", "get_service_quota", "NoSuchResourceException")
    aws.answer("service-quotas", "get_aws_default_service_quota", {"Quota": {"Value": 0.0}})
    (row,) = processors.check(plan(nodes=(nodes(),)), aws, None)
    assert row.result is WOULD_FAIL


def test_a_limit_that_nobody_names_cannot_be_told(aws: StubbedAws) -> None:
    running(aws)
    for operation in ("get_service_quota", "get_aws_default_service_quota"):
        aws.refuse("service-quotas", operation, "NoSuchResourceException")
    (row,) = processors.check(plan(nodes=(nodes(),)), aws, None)
    assert row.result is CANT_TELL


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("m7i.xlarge", "L-1216C47A"),
        ("t3.large", "L-1216C47A"),
        ("im4gn.large", "L-1216C47A"),
        ("g6e.xlarge", G),
        ("gr6.4xlarge", G),
        ("p6-b200.48xlarge", P),
        ("trn2.48xlarge", None),
        ("inf2.xlarge", None),
        ("hpc7a.96xlarge", None),
        ("mac2.metal", None),
    ],
)
def test_families_count_where_aws_counts_them(kind: str, code: str | None) -> None:
    quota = processors.quota_of(kind, "on-demand")
    assert (quota.code if quota else None) == code


def test_overflow_counts_with_the_processors_that_it_may_have(aws: StubbedAws) -> None:
    running(aws)
    aws.limit("ec2", G, 100)
    pool = nodes(instance_types=("g6e.xlarge", "g6e.48xlarge"), least=0, most=8, most_vcpus=192)
    (row,) = processors.check(plan(nodes=(pool,)), aws, None)
    assert "not grow to 192" in row.found


# Quotas of pieces


def test_a_sixth_network_would_fail(aws: StubbedAws) -> None:
    aws.answer("eks", "list_clusters", {"clusters": []})
    aws.limit("eks", pieces.CLUSTERS.code, 100)
    vpcs = [{"VpcId": f"vpc-{number}"} for number in range(5)]
    aws.answer("ec2", "describe_vpcs", {"Vpcs": vpcs})
    aws.limit("vpc", pieces.NETWORKS.code, 5)
    clusters, networks = pieces.check(plan(), aws, None)
    assert clusters.result is OK
    assert networks.result is WOULD_FAIL
    assert "5 allowed, 5 in use" in networks.found


def test_nothing_is_counted_twice_once_the_environment_is_there(aws: StubbedAws) -> None:
    assert list(pieces.check(plan(), aws, "dev-aws")) == []


# Zones and instance types


def zone(name: str, **changes: Any) -> dict[str, Any]:
    return {"ZoneName": name, "ZoneId": "use1-az1", "State": "available", **changes}


def test_zones_are_looked_at_one_by_one(aws: StubbedAws) -> None:
    there = [zone("us-east-1a"), zone("us-east-1b", ZoneId="use1-az3")]
    aws.answer("ec2", "describe_availability_zones", {"AvailabilityZones": there})
    wanted = plan(zones=("us-east-1a", "us-east-1b", "us-east-1z"))
    good, without_eks, unknown = offerings.check_zones(wanted, aws)
    assert good.result is OK
    assert without_eks.result is unknown.result is WOULD_FAIL
    assert "EKS can't be in use1-az3" in without_eks.found
    assert "us-east-1 has no such zone" in unknown.found


def offered(aws: StubbedAws, *pairs: tuple[str, str]) -> None:
    offers = [{"InstanceType": kind, "Location": where} for kind, where in pairs]
    aws.answer("ec2", "describe_instance_type_offerings", {"InstanceTypeOfferings": offers})


def test_a_zone_without_the_type_is_named_with_those_that_have_it(aws: StubbedAws) -> None:
    offered(aws, ("g6e.4xlarge", "us-east-1a"), ("g6e.4xlarge", "us-east-1c"))
    (row,) = offerings.check_types(plan(nodes=(nodes(),)), aws)
    assert row.result is WOULD_FAIL
    assert row.found == "no g6e.4xlarge in us-east-1b"
    assert "us-east-1a, us-east-1c" in row.todo


def test_one_type_of_several_is_enough_in_a_zone(aws: StubbedAws) -> None:
    offered(aws, ("g6e.4xlarge", "us-east-1a"), ("g6e.8xlarge", "us-east-1b"))
    pool = nodes(instance_types=("g6e.4xlarge", "g6e.8xlarge"))
    (row,) = offerings.check_types(plan(nodes=(pool,)), aws)
    assert row.result is OK


def test_a_region_without_the_type_is_said(aws: StubbedAws) -> None:
    offered(aws)
    (row,) = offerings.check_types(plan(nodes=(nodes(),)), aws)
    assert row.found == "us-east-1 has no g6e.4xlarge"


# Kubernetes


def versions(aws: StubbedAws, **status: str) -> None:
    end = datetime.datetime(2027, 3, 27, tzinfo=datetime.UTC)
    listed = [
        {
            "clusterVersion": name.removeprefix("v").replace("_", "."),
            "versionStatus": state,
            "endOfStandardSupportDate": end,
        }
        for name, state in status.items()
    ]
    aws.answer("eks", "describe_cluster_versions", {"clusterVersions": listed})


def test_a_supported_version_says_how_long(aws: StubbedAws) -> None:
    versions(aws, v1_35="STANDARD_SUPPORT")
    (row,) = version.check(plan(), aws)
    assert row.result is OK
    assert row.found == "in standard support until 2027-03-27"


def test_a_version_in_extended_support_would_fail(aws: StubbedAws) -> None:
    versions(aws, v1_35="EXTENDED_SUPPORT", v1_36="STANDARD_SUPPORT")
    (row,) = version.check(plan(), aws)
    assert row.result is WOULD_FAIL
    assert row.todo == "choose among 1.36"


def test_a_version_that_eks_does_not_have_would_fail(aws: StubbedAws) -> None:
    versions(aws, v1_36="STANDARD_SUPPORT")
    (row,) = version.check(plan(), aws)
    assert row.found == "EKS has no such version"


# Roles


def test_a_missing_role_says_who_makes_it_and_how(aws: StubbedAws) -> None:
    role = {
        "Path": "/",
        "RoleName": "AWSServiceRoleForAmazonEKS",
        "RoleId": "AROA1234567890123456",
        "Arn": "arn:aws:iam::123456789012:role/AWSServiceRoleForAmazonEKS",
        "CreateDate": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    }
    aws.answer("iam", "get_role", {"Role": role})
    for _ in range(3):
        aws.refuse("iam", "get_role", "NoSuchEntity")
    there, *missing = roles.check(plan(database=False, cache=False), aws)
    assert there.result is OK
    assert {row.result for row in missing} == {CANT_TELL}
    assert "create-service-linked-role --aws-service-name eks-nodegroup" in missing[0].todo


# Reach


def cluster(aws: StubbedAws, endpoint: str = "https://abc.gr7.us-east-1.eks.amazonaws.com") -> None:
    aws.answer("eks", "describe_cluster", {"cluster": {"name": "dev-aws", "endpoint": endpoint}})


def test_an_api_that_answers_is_ok(aws: StubbedAws) -> None:
    cluster(aws)
    asked: list[tuple[str, int]] = []
    (row,) = reach.check(plan(), aws, "dev-aws", lambda host, port: asked.append((host, port)))
    assert row.result is OK
    assert asked == [("abc.gr7.us-east-1.eks.amazonaws.com", 443)]


def test_an_api_out_of_reach_says_where_to_run(aws: StubbedAws) -> None:
    cluster(aws)

    def refuse(_: str, __: int) -> None:
        raise TimeoutError("timed out")

    (row,) = reach.check(plan(), aws, "dev-aws", refuse)
    assert row.result is WOULD_FAIL
    assert "runner or CodeBuild in the VPC" in row.todo


def test_a_private_api_before_there_is_one_cannot_be_told(aws: StubbedAws) -> None:
    (row,) = reach.check(plan(), aws, None)
    assert row.result is CANT_TELL


def test_a_public_api_needs_no_runner_inside(aws: StubbedAws) -> None:
    (row,) = reach.check(plan(private_api=False), aws, None)
    assert row.result is OK


def test_an_existing_cluster_that_is_not_there_would_fail(aws: StubbedAws) -> None:
    (row,) = reach.check(plan(makes_cluster=False, cluster="theirs"), aws, None)
    assert row.result is WOULD_FAIL
    assert "theirs" in row.found


@pytest.mark.parametrize(
    ("names", "own"),
    [(["dev-aws", "prod-aws"], "dev-aws"), (["dev-aws2"], None), ([], None)],
)
def test_the_environments_own_cluster_is_the_one_of_its_name(
    aws: StubbedAws, names: list[str], own: str | None
) -> None:
    aws.answer("eks", "list_clusters", {"clusters": names})
    assert reach.own_cluster(plan(), aws) == own


# Reserved capacity


def reservation(**changes: Any) -> dict[str, Any]:
    whole = {
        "CapacityReservationId": "cr-1",
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": "us-east-1a",
        "TotalInstanceCount": 4,
        "State": "active",
        "ReservationType": "capacity-block",
        "StartDate": datetime.datetime(2026, 12, 1, 11, 30, tzinfo=datetime.UTC),
        "EndDate": datetime.datetime(2026, 12, 8, 11, 30, tzinfo=datetime.UTC),
    }
    return {**whole, **changes}


BLOCK = nodes(
    name="h100",
    instance_types=("p5.48xlarge",),
    zones=("us-east-1a",),
    capacity="capacity-block",
    reservation="cr-1",
)


@pytest.mark.parametrize(
    ("changes", "result", "found"),
    [
        ({}, OK, "until 2026-12-08 11:30 UTC"),
        ({"State": "scheduled"}, CANT_TELL, "it is scheduled and starts 2026-12-01 11:30 UTC"),
        ({"State": "expired"}, WOULD_FAIL, "it is expired"),
        (
            {"AvailabilityZone": "us-east-1b"},
            WOULD_FAIL,
            "is in us-east-1b, the pool in us-east-1a",
        ),
        ({"InstanceType": "p5en.48xlarge"}, WOULD_FAIL, "is of p5en.48xlarge"),
        ({"TotalInstanceCount": 2}, WOULD_FAIL, "has 2 instances, the pool may have 4"),
        ({"ReservationType": "default"}, WOULD_FAIL, "is a default one"),
    ],
)
def test_a_capacity_block_fits_or_it_is_said_why_not(
    aws: StubbedAws, changes: dict[str, Any], result: Result, found: str
) -> None:
    answer = {"CapacityReservations": [reservation(**changes)]}
    aws.answer(
        "ec2", "describe_capacity_reservations", answer, {"CapacityReservationIds": ["cr-1"]}
    )
    (row,) = reservations.check(plan(nodes=(BLOCK,)), aws)
    assert row.result is result
    assert found in row.found


def test_a_reservation_that_is_not_there_would_fail(aws: StubbedAws) -> None:
    aws.refuse("ec2", "describe_capacity_reservations", "InvalidCapacityReservationId.NotFound")
    (row,) = reservations.check(plan(nodes=(BLOCK,)), aws)
    assert row.result is WOULD_FAIL
    assert "isn't in this account and region" in row.found


def test_a_pool_on_a_reservation_without_an_id_would_fail(aws: StubbedAws) -> None:
    (row,) = reservations.check(plan(nodes=(nodes(capacity="reservation"),)), aws)
    assert row.result is WOULD_FAIL
