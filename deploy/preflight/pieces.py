"""Quotas of what is counted in pieces: clusters, networks, gateways, addresses, endpoints."""

from collections.abc import Iterator

from .aws import Aws
from .plan import PreflightPlan
from .quotas import Quota, compared
from .report import Row

CLUSTERS = Quota("eks", "L-1194D53C", "EKS clusters")
NETWORKS = Quota("vpc", "L-F678F1CE", "VPCs")
NAT_GATEWAYS = Quota("vpc", "L-FE5A380F", "NAT gateways in a zone")
ADDRESSES = Quota("ec2", "L-0263D0A3", "Elastic IPs")
ENDPOINTS = Quota("vpc", "L-29B6F2EB", "interface endpoints in a VPC")


def check(plan: PreflightPlan, aws: Aws, own_cluster: str | None) -> Iterator[Row]:
    """Compare what a first `up` makes with what the account may still have.

    Args:
        plan: What is wanted.
        aws: Who is asked.
        own_cluster: The environment's cluster where it is there already; then so is the rest, and
            there is nothing to compare.
    """
    if own_cluster:
        return
    if plan.makes_cluster:
        number = sum(len(page["clusters"]) for page in aws.pages("eks", "list_clusters"))
        yield _one_more(plan, aws, CLUSTERS, number, 1)
    if not plan.makes_network:
        return
    number = sum(len(page["Vpcs"]) for page in aws.pages("ec2", "describe_vpcs"))
    yield _one_more(plan, aws, NETWORKS, number, 1)
    if plan.nat_gateways:
        number = len(aws.client("ec2").describe_addresses()["Addresses"])
        yield _one_more(plan, aws, ADDRESSES, number, plan.nat_gateways)
        yield _one_more(plan, aws, NAT_GATEWAYS, _fullest_zone(plan, aws), 1)
    if plan.endpoints:
        yield _one_more(plan, aws, ENDPOINTS, 0, plan.endpoints)


def _one_more(plan: PreflightPlan, aws: Aws, quota: Quota, used: int, wanted: int) -> Row:
    return compared(
        aws,
        quota,
        used=used,
        least=wanted,
        most=wanted,
        unit="allowed",
        who=plan.environment,
    )


def _fullest_zone(plan: PreflightPlan, aws: Aws) -> int:
    """How many NAT gateways are in that zone of the network which has most of them."""
    subnets = {
        subnet["SubnetId"]: subnet["AvailabilityZone"]
        for page in aws.pages("ec2", "describe_subnets")
        for subnet in page["Subnets"]
    }
    states = [{"Name": "state", "Values": ["pending", "available"]}]
    zones = [
        subnets.get(gateway["SubnetId"])
        for page in aws.pages("ec2", "describe_nat_gateways", Filters=states)
        for gateway in page["NatGateways"]
    ]
    return max((zones.count(zone) for zone in plan.zones), default=0)
