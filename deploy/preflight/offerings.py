"""Whether the zones are there, and whether they have the instance types."""

from collections.abc import Iterator, Mapping, Set

from .aws import Aws
from .plan import PreflightPlan, WantedNodes
from .report import Row, ok, would_fail

# EKS's network requirements: its control plane can't be in these, so neither can its subnets.
_WITHOUT_EKS = {"use1-az3", "usw1-az2", "cac1-az3"}
_MOST_TYPES_ASKED = 100


def check_zones(plan: PreflightPlan, aws: Aws) -> Iterator[Row]:
    """Compare the network's zones with those of the region."""
    answer = aws.client("ec2").describe_availability_zones(AllAvailabilityZones=False)
    zones = {zone["ZoneName"]: zone for zone in answer["AvailabilityZones"]}
    known = ", ".join(sorted(zones))
    for name in plan.zones:
        zone, title = zones.get(name), f"zone {name}"
        if zone is None:
            yield would_fail(title, f"{plan.region} has no such zone", f"choose among {known}")
        elif zone.get("ZoneId") in _WITHOUT_EKS and plan.makes_cluster:
            found = f"EKS can't be in {zone['ZoneId']}, which this is in your account"
            yield would_fail(title, found, f"choose others among {known}")
        elif zone.get("State") != "available":
            yield would_fail(title, f"it is {zone.get('State')}", "choose another, or wait")
        else:
            yield ok(title, str(zone.get("ZoneId", "")))


def check_types(plan: PreflightPlan, aws: Aws) -> Iterator[Row]:
    """Ask which zones have the types that groups of nodes want."""
    types = sorted({name for nodes in plan.nodes for name in nodes.instance_types})
    offered: dict[str, set[str]] = {}
    for start in range(0, len(types), _MOST_TYPES_ASKED):
        pages = aws.pages(
            "ec2",
            "describe_instance_type_offerings",
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": types[start : start + _MOST_TYPES_ASKED]}],
        )
        for page in pages:
            for offer in page["InstanceTypeOfferings"]:
                offered.setdefault(offer["Location"], set()).add(offer["InstanceType"])
    for nodes in plan.nodes:
        yield _offered(nodes, plan.region, offered)


def _offered(nodes: WantedNodes, region: str, offered: Mapping[str, Set[str]]) -> Row:
    check = f"instances of {nodes.name}"
    wanted = set(nodes.instance_types)
    without = [zone for zone in nodes.zones if not wanted & offered.get(zone, set())]
    types = " or ".join(nodes.instance_types)
    if not without:
        return ok(check, f"{types} in {', '.join(nodes.zones)}")
    elsewhere = sorted(zone for zone, types_there in offered.items() if wanted & types_there)
    if not elsewhere:
        return would_fail(
            check,
            f"{region} has no {types}",
            "choose another instance type or region for this pool",
        )
    return would_fail(
        check,
        f"no {types} in {', '.join(without)}",
        f"set the pool's zones among {', '.join(elsewhere)}, or add an instance type",
    )
