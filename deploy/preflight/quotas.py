"""A quota of the account: its limit, and what comes of comparing it."""

from dataclasses import dataclass

from botocore.exceptions import ClientError

from .aws import Aws, code_of
from .report import Row, cant_tell, ok, would_fail


@dataclass(frozen=True)
class Quota:
    """A quota of AWS.

    Args:
        service: Whose.
        code: How AWS calls it.
        name: What it limits.
    """

    service: str
    code: str
    name: str

    @property
    def check(self) -> str:
        """What the report calls the check of it."""
        return f"quota: {self.name}"

    def limit(self, aws: Aws) -> float | None:
        """Return what the account may have; AWS's default where nothing was ever applied.

        Nothing where AWS knows neither.
        """
        client = aws.client("service-quotas")
        for ask in (client.get_service_quota, client.get_aws_default_service_quota):
            try:
                answer = ask(ServiceCode=self.service, QuotaCode=self.code)
            except ClientError as error:
                if code_of(error) != "NoSuchResourceException":
                    raise
            else:
                return float(answer["Quota"]["Value"])
        return None


def compared(
    aws: Aws, quota: Quota, *, used: int, least: int, most: int, unit: str, who: str
) -> Row:
    """Return what comes of a quota.

    Args:
        aws: Who is asked for the limit.
        quota: Which.
        used: What others use of it.
        least: What the environment needs at once.
        most: What it may come to need.
        unit: What is counted, in words.
        who: Who needs it, in words.
    """
    limit = quota.limit(aws)
    if limit is None:
        return cant_tell(
            quota.check,
            f"AWS names no limit for {quota.code} in {aws.region}",
            f"see it in the console: Service Quotas, {quota.service}",
        )
    free = limit - used
    found = f"{limit:g} {unit}, {used} in use by others"
    increase = (
        "ask for more (it takes hours to days): aws service-quotas "
        f"request-service-quota-increase --region {aws.region} --service-code {quota.service} "
        f"--quota-code {quota.code} --desired-value {used + most}"
    )
    if free < least:
        return would_fail(quota.check, f"{found}; {who} needs {least} at once", increase)
    if free < most:
        grown = f"{who} can start, but not grow to {most}"
        return would_fail(quota.check, f"{found}; {grown}", increase)
    return ok(quota.check, f"{found}; {who} may come to {most}")
