"""Versions of Kubernetes: a cloud's control plane goes up one minor at a time, and never down."""

import re
from typing import Annotated

from pydantic import AfterValidator

_VERSION = re.compile(r"1\.(?P<minor>[0-9]+)")


def minor_of(version: str) -> int:
    """Return the minor: 35 for ``1.35``.

    Raises:
        ValueError: naming what was given.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} isn't a Kubernetes version: write major and minor, as 1.35")
    return int(match["minor"])


def upgrade_problem(old: str, new: str) -> str | None:
    """Say why a cluster can't go from one version to another in one step, or nothing."""
    before, after = minor_of(old), minor_of(new)
    if after < before:
        return f"version={new!r}: the cluster has {old}, and a control plane can't go back"
    if after > before + 1:
        return (
            f"version={new!r}: the cluster has {old}, and no minor may be skipped; "
            f"go to 1.{before + 1} first, nodes included"
        )
    return None


def _version(value: str) -> str:
    minor_of(value)
    return value


KubernetesVersion = Annotated[str, AfterValidator(_version)]
"""A version of Kubernetes as clouds offer it: major and minor, such as ``1.35``."""
