"""What the settings of an ``aws`` environment may say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, Tag, model_validator

from components.aws.account import AwsAccount
from components.aws.cluster_args import ClusterName
from components.aws.foundation_args import AwsWishes
from components.aws.load_balancer import DOMAIN, ClientRange
from components.aws.overflow import OverflowPool
from components.domain.args import Args
from components.domain.aws_zones import Zone
from components.domain.kubernetes_versions import KubernetesVersion
from components.domain.names import K8sName
from components.kube.addon import Chart, Existing

from .addon_settings import AlreadyThere, FromChart, one_of
from .settings import GatewaySettings, PlatformSettings


class Tags(Args):
    """Tags that everything of the environment has, for whoever pays for it."""

    owner: str = Field(min_length=1, max_length=256)
    """Who answers for it."""
    cost_center: str = Field(min_length=1, max_length=256)
    """Where its bill goes to."""
    more: Mapping[str, str] = Field(default_factory=dict)
    """Others."""

    def of(self, environment: str) -> dict[str, str]:
        """Return all of them for an environment."""
        return {
            "llm-platform:environment": environment,
            "llm-platform:owner": self.owner,
            "llm-platform:cost-center": self.cost_center,
            **self.more,
        }


class AwsFoundationSettings(AwsWishes):
    """Settings of a ``foundation`` stack whose cloud is ``aws``."""

    cloud: Literal["aws"]
    """Says so."""
    name: K8sName | None = None
    """What the names of its queues, images and secrets begin with; the environment when left out.
    Two platforms in one account and region need two."""
    tags: Tags
    """Tags of everything."""
    database_ca_file: Path
    """The file with the certificates that sign those of RDS; ``make up`` fetches it."""


class AwsGatewaySettings(GatewaySettings):
    """How the gateway runs and is reached."""

    domain: str = Field(pattern=DOMAIN, max_length=253)
    """What clients call it, such as ``llm.example.com``."""
    zone_id: str | None = None
    """The Route 53 zone that the name and the proof of its certificate are written into."""
    certificate_arn: str | None = None
    """A certificate of ACM for it; made in the zone when left out."""
    public: bool = False
    """Whether it can be reached from the internet."""
    clients: tuple[ClientRange, ...] = Field(min_length=1)
    """Ranges of addresses that may come in."""


ChartOrExisting = Annotated[
    Annotated[FromChart, Tag("chart")] | Annotated[AlreadyThere, Tag("existing")],
    one_of("chart", "existing"),
]


class AwsOperators(Args):
    """Where the operators come from that only AWS needs."""

    load_balancer_controller: ChartOrExisting = Field(default_factory=FromChart)
    """Keeps the gateway's addresses in its target group."""
    cluster_autoscaler: ChartOrExisting = Field(default_factory=FromChart)
    """Keeps the size of node groups to what pods ask for."""
    device_plugin: ChartOrExisting = Field(default_factory=FromChart)
    """Offers GPUs to pods."""
    gpu_metrics: ChartOrExisting = Field(default_factory=FromChart)
    """Measures GPUs."""
    karpenter: ChartOrExisting = Field(default_factory=FromChart)
    """Makes nodes above the floors; installed only where there is ``overflow``."""


class AwsPlatformSettings(PlatformSettings):
    """Settings of a ``platform`` stack whose cloud is ``aws``."""

    cloud: Literal["aws"]
    """Says so."""
    account: AwsAccount
    """Where it is."""
    name: K8sName | None = None
    """The foundation's ``name``."""
    cluster_name: ClusterName
    """The cluster's name, which the rights of its operators are made of: what ``pulumi stack output
    cluster_name`` of the foundation says."""
    tags: Tags
    """Tags of everything."""
    # Frozen, so it may be narrower than the base's.
    gateway: AwsGatewaySettings  # pyright: ignore[reportIncompatibleVariableOverride,reportGeneralTypeIssues]
    """How the gateway runs and is reached."""
    operators: AwsOperators = Field(default_factory=AwsOperators)
    """Where AWS's own operators come from."""
    overflow: tuple[OverflowPool, ...] = ()
    """Nodes that Karpenter makes above the floors of the foundation's pools."""
    zones: tuple[Zone, ...] = ()
    """The foundation's zones, of which ``overflow`` makes nodes."""
    isolated: bool = False
    """Whether the network has no way out to the internet (``nat: none``)."""
    cloudwatch: bool = False
    """Whether the gateway publishes endpoints' concurrency in CloudWatch, and KEDA may read it, for
    endpoints that scale on it."""
    kubernetes_version: KubernetesVersion = "1.35"
    """The cluster's version, which the cluster autoscaler's own must be."""
    operators_boundary_arn: str | None = None
    """A permissions boundary that the account wants on the operators' roles; the environment's own
    is for pods that use its data, and allows less than operators do."""
    ephemeral: bool = False
    """Whether the environment may be thrown away."""

    @model_validator(mode="after")
    def _overflow_has_zones(self) -> Self:
        if self.overflow and not self.zones:
            raise ValueError("zones is missing: name the foundation's zones, for overflow's nodes")
        return self


def source(addon: FromChart | AlreadyThere, chart: Chart) -> Chart | Existing:
    """Return an operator's source as its component takes it."""
    return addon.of(chart) if isinstance(addon, FromChart) else Existing()
