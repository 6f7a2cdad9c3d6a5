"""The account and region that an environment lives in, and how things in it are called."""

import re
from typing import Annotated

import pulumi
from pydantic import AfterValidator

from ..contracts import In
from ..domain.args import Args
from ..domain.scaling_source import Region

_ACCOUNT = re.compile(r"[0-9]{12}")
_OTHER_PARTITIONS = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}


def _account(value: str) -> str:
    if not _ACCOUNT.fullmatch(value):
        raise ValueError(
            f"{value!r} isn't an account's number: write its 12 digits as a text, "
            "such as '123456789012'"
        )
    return value


AccountId = Annotated[str, AfterValidator(_account)]
"""An AWS account's number, as a text: it may begin with a zero."""


class AwsAccount(Args):
    """Where an environment lives: plain, so that every ARN is known in the first preview."""

    id: AccountId
    """The account's number."""
    region: Region
    """The region."""

    @property
    def partition(self) -> str:
        """The part of AWS that the region belongs to, which ARNs begin with."""
        for beginning, partition in _OTHER_PARTITIONS.items():
            if self.region.startswith(beginning):
                return partition
        return "aws"

    @property
    def domain(self) -> str:
        """What the names of its services' addresses end with."""
        return "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of something of a service in this region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.id}:{resource}"

    def global_arn(self, service: str, resource: str) -> str:
        """Return the ARN of something that belongs to no region, such as a role."""
        return f"arn:{self.partition}:{service}::{self.id}:{resource}"

    def service(self, name: str) -> str:
        """Return the name of a service in this region, as KMS's ``kms:ViaService`` spells it."""
        return f"{name}.{self.region}.{self.domain}"


def region_of(arn: In[str]) -> pulumi.Output[str]:
    """Return the region that an ARN names."""
    return pulumi.Output.from_input(arn).apply(lambda it: it.split(":")[3])
