"""EC2's quotas: virtual processors that run at once, by family of instance types and by market."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from components.domain.aws_instances import INSTANCES

from .aws import Aws
from .plan import PreflightPlan, WantedNodes
from .quotas import Quota, compared
from .report import Row, cant_tell

Market = Literal["on-demand", "spot"]

# What families count together (EC2's user guide, on-demand instance quotas), and the codes of the
# quotas as `aws service-quotas list-service-quotas --service-code ec2` lists them.
_CODES: tuple[tuple[str, Market, str, str], ...] = (
    (r"(a|c|d|h|im|is|i|m|r|t|z)\d", "on-demand", "L-1216C47A", "On-Demand Standard instances"),
    (r"(a|c|d|h|im|is|i|m|r|t|z)\d", "spot", "L-34B43A08", "Standard Spot Instances"),
    (r"(gr|g|vt)\d", "on-demand", "L-DB2E81BA", "On-Demand G and VT instances"),
    (r"(gr|g|vt)\d", "spot", "L-3819A6DF", "G and VT Spot Instances"),
    (r"p\d", "on-demand", "L-417A185B", "On-Demand P instances"),
    (r"p[234]", "spot", "L-7212CCBC", "P4, P3 and P2 Spot Instances"),
    (r"p5", "spot", "L-C4BD4855", "P5 Spot Instances"),
)
_QUOTAS = tuple((re.compile(it[0]), it[1], Quota("ec2", it[2], it[3])) for it in _CODES)


def quota_of(instance_type: str, market: Market) -> Quota | None:
    """Return the quota that instances of a type count against; nothing where none is known."""
    for families, kind, quota in _QUOTAS:
        if kind == market and families.match(instance_type):
            return quota
    return None


@dataclass
class _Want:
    least: int = 0
    most: int = 0
    groups: tuple[str, ...] = ()


def check(plan: PreflightPlan, aws: Aws, own_cluster: str | None) -> Iterator[Row]:
    """Compare the processors of all groups of nodes with the quotas of their families.

    Args:
        plan: What is wanted.
        aws: Who is asked.
        own_cluster: The environment's cluster where it is there already; what runs for it is part
            of what is wanted, and so isn't others' use.
    """
    wants: dict[Quota, _Want] = {}
    for nodes in plan.nodes:
        # A capacity block was bought together with the right to run it.
        if nodes.capacity == "capacity-block":
            continue
        quota, least, most = _wanted(nodes)
        if quota is None:
            yield cant_tell(
                f"vCPU quota of {nodes.name}",
                f"which one {' or '.join(nodes.instance_types)} counts against isn't known here",
                "see it in the console: Service Quotas, Amazon EC2",
            )
            continue
        want = wants.setdefault(quota, _Want())
        want.least, want.most = want.least + least, want.most + most
        want.groups = (*want.groups, nodes.name)
    used = _in_use(aws, own_cluster) if wants else {}
    for quota, want in wants.items():
        yield compared(
            aws,
            quota,
            used=used.get(quota, 0),
            least=want.least,
            most=want.most,
            unit="vCPUs",
            who=" + ".join(want.groups),
        )


def _wanted(nodes: WantedNodes) -> tuple[Quota | None, int, int]:
    """The quota, and the processors of the fewest and of the most nodes."""
    market: Market = "spot" if nodes.capacity == "spot" else "on-demand"
    known = [INSTANCES[name] for name in nodes.instance_types if name in INSTANCES]
    if not known:
        return None, 0, 0
    largest = max(instance.vcpus for instance in known)
    quota = quota_of(known[0].type, market)
    return quota, nodes.least * known[0].vcpus, nodes.most_vcpus or nodes.most * largest


def _in_use(aws: Aws, own_cluster: str | None) -> dict[Quota, int]:
    used: dict[Quota, int] = {}
    states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    for page in aws.pages("ec2", "describe_instances", Filters=states):
        for instance in (it for group in page["Reservations"] for it in group["Instances"]):
            quota = _counted_against(instance, own_cluster)
            if quota:
                used[quota] = used.get(quota, 0) + _processors(instance)
    return used


def _counted_against(instance: Mapping[str, Any], own_cluster: str | None) -> Quota | None:
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
    if own_cluster and tags.get("eks:cluster-name") == own_cluster:
        return None
    lifecycle = instance.get("InstanceLifecycle")
    if lifecycle == "capacity-block":
        return None
    return quota_of(instance["InstanceType"], "spot" if lifecycle == "spot" else "on-demand")


def _processors(instance: Mapping[str, Any]) -> int:
    options = instance.get("CpuOptions", {})
    if "CoreCount" in options:
        return int(options["CoreCount"]) * int(options.get("ThreadsPerCore", 1))
    known = INSTANCES.get(instance["InstanceType"])
    return known.vcpus if known else 0
