"""Addresses of what moto has nothing behind: those that the test names, or moto's own."""

import os
from collections.abc import Callable
from typing import Any

from .base import Context

BY_PULUMI = {"description": "Managed by Pulumi"}


def address(variable: str, default: Callable[[Context], Any]) -> Callable[[Context], Any]:
    """Return the host that a test named, or moto's."""
    return lambda c: os.environ.get(variable, "").rpartition(":")[0] or default(c)


def port(variable: str, default: int) -> Callable[[Context], Any]:
    """Return the port that a test named, or the one that was wished."""
    return lambda c: (
        int(os.environ.get(variable, "").rpartition(":")[2] or 0)
        or (c.facts.get("port") or default)
    )
