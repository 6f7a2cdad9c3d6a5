"""The two environments in AWS as they are committed, built from their own settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stacks import aws, foundation, platform
from stacks.reading import PROJECT, parse
from tests import samples
from tests.harness import Built, build

STACKS = Path(__file__).resolve().parents[1] / "stacks"
CA_FILE = Path(__file__).parent / "rds_like_ca.pem"
ENVIRONMENTS = ("dev-aws", "prod-aws")


@dataclass(frozen=True)
class Environment:
    """Both stacks of an environment, built."""

    name: str
    below: Built
    above: Built


@cache
def environment(name: str) -> Environment:
    """Build both stacks of an environment; once, for they are only read."""
    below = build_foundation(name)
    return Environment(name, below, build_platform(name, below))


def given(stack: str) -> dict[str, Any]:
    """Return what a committed file of settings says."""
    config = yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text())["config"]
    return {key.removeprefix(f"{PROJECT}:"): value for key, value in config.items()}


def needed(stack: str) -> dict[str, Any]:
    """Return what `make up` adds to the settings of a stack."""
    if stack.startswith("foundation."):
        return {"database_ca_file": str(CA_FILE)}
    return {"images": {"services": samples.image("services")}}


def build_foundation(
    environment: str,
    *,
    like: str = "",
    preview: bool = False,
    answers: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Built:
    """Build a foundation; ``like`` another environment, whose settings it has."""
    stack = f"foundation.{like or environment}"
    settings = parse(foundation.SETTINGS, {**given(stack), **needed(stack), **changes}, stack)
    return build(
        lambda: aws.foundation(environment, settings).publish(), preview=preview, answers=answers
    )


def build_platform(
    environment: str, below: Built, *, like: str = "", preview: bool = False, **changes: Any
) -> Built:
    """Build a platform on a foundation."""
    stack = f"platform.{like or environment}"
    settings = parse(platform.SETTINGS, {**given(stack), **needed(stack), **changes}, stack)
    return build(
        lambda: platform.deploy_with(environment, settings, reachable=str).publish(),
        preview=preview,
        foreign={f"organization/{PROJECT}/foundation.{environment}": below.exports},
        secrets=below.secret_exports,
    )
