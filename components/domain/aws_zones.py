"""Availability zones of AWS and the regions that they belong to."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator

_ZONE = re.compile(r"(?P<region>[a-z]{2}(-[a-z]+)+-[0-9])[a-z]")


def region_of(zone: str) -> str:
    """Return the region of a zone: ``us-east-1`` for ``us-east-1a``.

    Raises:
        ValueError: for what isn't a zone; local zones aren't taken, for EKS has no nodes there.
    """
    match = _ZONE.fullmatch(zone)
    if match is None:
        raise ValueError(f"{zone!r} isn't an availability zone, such as us-east-1a")
    return match["region"]


def zones_problem(zones: Sequence[str], region: str | None = None) -> str | None:
    """Say what is wrong with zones that are meant to be of one region, or nothing."""
    if len(set(zones)) < len(zones):
        return f"zones={list(zones)}: each zone at most once"
    regions = {region_of(zone) for zone in zones}
    if region is not None and regions - {region}:
        strangers = [zone for zone in zones if region_of(zone) != region]
        return f"zones={strangers}: not in the region {region!r}"
    if len(regions) > 1:
        return f"zones={list(zones)}: all of one region, not of {' and '.join(sorted(regions))}"
    return None


def _zone(value: str) -> str:
    region_of(value)
    return value


Zone = Annotated[str, AfterValidator(_zone)]
"""An availability zone, such as ``us-east-1a``."""
