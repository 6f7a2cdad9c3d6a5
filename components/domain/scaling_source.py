"""Where the number that an endpoint scales on is read from."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from .args import Args
from .names import K8sName

AWS_AUTHENTICATION = "llm-platform-aws"
"""The ClusterTriggerAuthentication with which KEDA asks AWS, unless said otherwise."""

CLOUDWATCH_NAMESPACE = "LlmPlatform"
"""The namespace that the gateway publishes to, unless said otherwise."""

CLOUDWATCH_METRIC = "RequestConcurrency"
"""What the gateway publishes for each endpoint: its open and held requests."""

CLOUDWATCH_DIMENSIONS = ("Namespace", "Endpoint")
"""What tells endpoints apart there: the team's namespace, and the endpoint's name."""

_FINE_PERIODS = (1, 5, 10, 30)
_MINUTE = 60


def _region(value: str) -> str:
    if not value.replace("-", "").isalnum() or "-" not in value:
        raise ValueError(f"{value!r} isn't a region: write it as AWS does, such as eu-west-1")
    return value


def _https(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError(
            f"{value!r} isn't the address of a workspace: write the query address without "
            "/api/v1/query, https://aps-workspaces.<region>.amazonaws.com/workspaces/<id>"
        )
    return value.rstrip("/")


Region = Annotated[str, AfterValidator(_region)]
"""A region of AWS."""


class Prometheus(Args):
    """The platform's own Prometheus: averages over ``window_seconds``, from every worker."""

    kind: Literal["prometheus"] = "prometheus"
    """Says which it is."""


class CloudWatch(Args):
    """Amazon CloudWatch, where the gateway publishes every endpoint's open requests.

    For a platform that keeps its metrics in CloudWatch. Slower than Prometheus: it holds one value
    per minute, and the newest is up to two minutes old.
    """

    kind: Literal["cloudwatch"] = "cloudwatch"
    """Says which it is."""
    region: Region
    """The region that the gateway publishes to."""
    namespace: str = Field(default=CLOUDWATCH_NAMESPACE, min_length=1, max_length=255)
    """CloudWatch's namespace."""
    period_seconds: int = Field(default=_MINUTE, ge=1, le=3600)
    """What one value covers. Its default in KEDA is 300, with which a burst is seen when it is
    over."""
    collection_seconds: int = Field(default=2 * _MINUTE, ge=1, le=86_400)
    """How far back a value may lie: at least two periods, since the newest comes late."""
    delay_seconds: int = Field(default=0, ge=0, le=3600)
    """How much of the newest is left out, where it is published late."""
    authentication: K8sName = AWS_AUTHENTICATION
    """A ClusterTriggerAuthentication whose pod identity names a role that may read metrics."""

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        period = self.period_seconds
        if period not in _FINE_PERIODS and period % _MINUTE:
            raise ValueError(
                f"period_seconds={period} isn't a period of CloudWatch: use 1, 5, 10, 30 or a "
                "multiple of 60"
            )
        if self.collection_seconds < 2 * period or self.collection_seconds % period:
            raise ValueError(
                f"collection_seconds={self.collection_seconds} must be a multiple of "
                f"period_seconds={period}, and two of them at least"
            )
        return self


class ManagedPrometheus(Args):
    """Amazon Managed Service for Prometheus, which the platform's Prometheus writes to."""

    kind: Literal["managed-prometheus"] = "managed-prometheus"
    """Says which it is."""
    url: Annotated[str, AfterValidator(_https)]
    """The workspace's address, ``https://aps-workspaces.<region>.amazonaws.com/workspaces/<id>``."""
    region: Region
    """The workspace's region."""
    authentication: K8sName = AWS_AUTHENTICATION
    """A ClusterTriggerAuthentication whose pod identity names a role that may query it."""


Source = Prometheus | CloudWatch | ManagedPrometheus
"""Where the number that an endpoint scales on is read from."""
