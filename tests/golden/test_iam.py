"""Every policy as AWS gets it, in files that a review can read."""

import json
from collections.abc import Callable

import pytest

from tests.aws_policies import POLICIES
from tests.golden.conftest import RENDERED

IAM = RENDERED / "iam"


@pytest.mark.parametrize("name", POLICIES)
def test_the_policies_are_the_reviewed_ones(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"iam/{name}.json", json.dumps(POLICIES[name](), indent=2) + "\n")


def test_every_golden_policy_belongs_to_something() -> None:
    assert {path.stem for path in IAM.iterdir()} == set(POLICIES)
