"""Whose credentials they are, and whether they belong to the right account."""

from collections.abc import Iterator

from .aws import Aws
from .plan import PreflightPlan
from .report import Row, ok, would_fail

CHECK = "credentials"


def check(plan: PreflightPlan, aws: Aws) -> Iterator[Row]:
    """Ask who we are; everybody may ask that."""
    caller = aws.client("sts").get_caller_identity()
    found = f"{caller['Arn']} in account {caller['Account']}"
    if plan.account_id and caller["Account"] != plan.account_id:
        yield would_fail(
            CHECK,
            f"{found}, but the settings want account {plan.account_id}",
            "use another profile (AWS_PROFILE), or correct account_id in the settings",
        )
    else:
        yield ok(CHECK, found)
