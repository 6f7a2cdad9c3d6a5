"""Capacity that was reserved or bought: that it is there, fits, and is in the right zone."""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from .aws import Aws, code_of
from .plan import PreflightPlan, WantedNodes
from .report import Row, cant_tell, ok, would_fail

_LATER = {"scheduled", "payment-pending", "pending", "assessing", "delayed"}
_UNKNOWN = {"InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"}


def check(plan: PreflightPlan, aws: Aws) -> Iterator[Row]:
    """Look at each reservation that a group of nodes uses."""
    for nodes in plan.nodes:
        if nodes.reservation:
            yield _reserved(nodes, aws, nodes.reservation)
        elif nodes.capacity in {"reservation", "capacity-block"}:
            yield would_fail(
                f"capacity of {nodes.name}",
                f"it is a {nodes.capacity}, but the settings name none",
                "write the reservation's id (cr-…) into the pool's capacity",
            )


def _reserved(nodes: WantedNodes, aws: Aws, reservation: str) -> Row:
    title = f"capacity of {nodes.name}"
    try:
        answer = aws.client("ec2").describe_capacity_reservations(
            CapacityReservationIds=[reservation]
        )
    except ClientError as error:
        if code_of(error) not in _UNKNOWN:
            raise
        answer = {}
    found = answer.get("CapacityReservations", [])
    if not found:
        return would_fail(
            title,
            f"{reservation} isn't in this account and region",
            "correct the id, or share the reservation with this account",
        )
    wrong = _mismatch(nodes, found[0])
    if wrong:
        return would_fail(title, f"{reservation} {wrong}", "correct the pool, or the reservation")
    return _state(title, reservation, found[0])


def _mismatch(nodes: WantedNodes, it: Mapping[str, Any]) -> str:
    if it["InstanceType"] not in nodes.instance_types:
        return f"is of {it['InstanceType']}, the pool wants {' or '.join(nodes.instance_types)}"
    if it["AvailabilityZone"] not in nodes.zones:
        return f"is in {it['AvailabilityZone']}, the pool in {', '.join(nodes.zones)}"
    is_block = it.get("ReservationType") == "capacity-block"
    if is_block != (nodes.capacity == "capacity-block"):
        return f"is a {it.get('ReservationType', 'default')} one, the pool wants {nodes.capacity}"
    if it["TotalInstanceCount"] < nodes.most:
        return f"has {it['TotalInstanceCount']} instances, the pool may have {nodes.most}"
    return ""


def _state(title: str, reservation: str, it: Mapping[str, Any]) -> Row:
    count, zone = it["TotalInstanceCount"], it["AvailabilityZone"]
    ends = f", until {it['EndDate']:%Y-%m-%d %H:%M} UTC" if it.get("EndDate") else ""
    found = f"{reservation}: {count} of {it['InstanceType']} in {zone}{ends}"
    if it["State"] == "active":
        return ok(title, found)
    if it["State"] in _LATER:
        starts = f" and starts {it['StartDate']:%Y-%m-%d %H:%M} UTC" if it.get("StartDate") else ""
        return cant_tell(title, f"{found}; it is {it['State']}{starts}", "no nodes before that")
    return would_fail(title, f"{found}; it is {it['State']}", "reserve anew, or take it out")
