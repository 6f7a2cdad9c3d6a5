"""What people say of an environment in AWS; what belongs together is wired by the foundation."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from ..contracts import In
from ..domain.accelerators import Accelerator
from ..domain.args import Args
from ..domain.aws_zones import Zone, zones_problem
from ..domain.kubernetes_versions import KubernetesVersion
from ..domain.names import K8sName
from . import limits, queues
from .account import AwsAccount
from .bucket import BucketName
from .capacity import Capacity, OnDemand
from .cluster_args import ClusterName, ExistingCluster, RoleArn
from .database import DatabaseSize
from .gpu_pool_args import GPU_DISK, Taint
from .launch_template import Disk
from .network_args import NetworkArgs
from .redis import RedisSize
from .registry import USUAL_MIRRORS, Mirror, RepositoryName

_NAME: TypeAdapter[str] = TypeAdapter(K8sName)


class ClusterWish(Args):
    """The EKS cluster: a new one, or one that is there."""

    version: KubernetesVersion = "1.35"
    """Kubernetes' version; it goes up by one minor at a time."""
    cluster_name: ClusterName | None = None
    """The cluster's name; the environment's when left out."""
    deployer_arn: RoleArn | None = None
    """The role with which this is deployed, which then administers the cluster."""
    admins: tuple[RoleArn, ...] = ()
    """More roles that administer it."""
    public_access_cidrs: tuple[str, ...] = ()
    """Ranges on the internet from which its API can be reached; none when left out."""
    service_cidr: str = "172.20.0.0/16"
    """The range of Services' addresses; it can never change."""
    log_retention_days: int = Field(default=90, ge=1)
    """How long the control plane's logs are kept."""
    existing: ExistingCluster | None = None
    """Use this cluster instead of making one."""


class SystemNodesWish(Args):
    """Nodes without GPUs: operators, gateway, cacher."""

    instance_types: tuple[str, ...] = ("m7i.large",)
    """Types that may be taken."""
    min_nodes: int = Field(default=2, ge=1)
    """Nodes at least."""
    max_nodes: int = Field(default=6, ge=1)
    """Nodes at most."""
    disk: Disk = Field(default_factory=Disk)
    """Their root disks."""
    release_version: str | None = None
    """The AMI's release; the newest when made, if left out."""


class GpuPoolWish(Args):
    """One pool of GPU nodes."""

    accelerator: Accelerator
    """The kind of GPU."""
    instance_types: tuple[str, ...] = ()
    """Types that it may take; the accelerator's default when left out."""
    zones: tuple[Zone, ...] = ()
    """Zones of its nodes; all of the network's when left out."""
    warm_floor: int = Field(default=0, ge=0)
    """Nodes that are kept whatever happens."""
    max_nodes: int = Field(ge=1)
    """The most nodes of each on-demand or spot group."""
    capacity: tuple[Capacity, ...] = Field(default=(OnDemand(),), min_length=1)
    """Where nodes come from, the preferred one first."""
    disk: Disk = GPU_DISK
    """Their root disks."""
    ami_id: str | None = None
    """An image of one's own."""
    release_version: str | None = None
    """The AMI's release; the newest when made, if left out."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """More labels of its nodes."""
    extra_taints: tuple[Taint, ...] = ()
    """More taints of its nodes."""


class DatabaseWish(Args):
    """The Postgres cluster."""

    size: DatabaseSize | Literal["dev", "prod"] | None = None
    """How much it may use; that of the environment when left out."""
    backup_days: int = Field(default=14, ge=1, le=limits.RDS_LONGEST_RETENTION_DAYS)
    """How many days back it can be restored, to any second."""
    restore_from: str | None = None
    """A snapshot that a new one begins with."""


class RedisWish(Args):
    """The Valkey group."""

    size: RedisSize | Literal["dev", "prod"] | None = None
    """How large it is; that of the environment when left out."""
    backup_days: int = Field(default=7, ge=0, le=limits.ELASTICACHE_LONGEST_RETENTION_DAYS)
    """How many daily backups are kept."""


class StorageWish(Args):
    """The buckets."""

    weights_name: BucketName | None = None
    """The name of the weights' bucket; with random digits when left out."""
    results_days: int = Field(default=30, ge=1)
    """How long results and large payloads of tasks stay at most."""
    state_old_versions_days: int = Field(default=90, ge=1)
    """How long earlier states of Pulumi's stacks can be had back."""


class RegistryWish(Args):
    """The image registry."""

    images_kept: int = Field(default=100, ge=1)
    """How many images each repository keeps."""
    repositories: tuple[RepositoryName, ...] = ("services", "llamacpp")
    """What is pushed to it."""
    mirrors: tuple[Mirror, ...] = USUAL_MIRRORS
    """Registries that are copied from; those that need no login when left out."""


class AwsWishes(Args):
    """What people say of an environment."""

    account: AwsAccount
    """Where it is."""
    size: Literal["dev", "prod"] = "prod"
    """``dev`` has the smallest database and Redis in one zone, ``prod`` those that survive the loss
    of a zone."""
    ephemeral: bool = False
    """Whether the environment may be thrown away: nothing is protected, and nothing kept of it."""
    network: NetworkArgs
    """The network: a new one, or one that is there."""
    cluster: ClusterWish = Field(default_factory=ClusterWish)
    """The EKS cluster."""
    system_nodes: SystemNodesWish = Field(default_factory=SystemNodesWish)
    """Nodes without GPUs."""
    gpu_pools: Mapping[K8sName, GpuPoolWish] = Field(default_factory=dict)
    """Pools of GPU nodes by name."""
    database: DatabaseWish = Field(default_factory=DatabaseWish)
    """The Postgres cluster."""
    redis: RedisWish = Field(default_factory=RedisWish)
    """The Valkey group."""
    storage: StorageWish = Field(default_factory=StorageWish)
    """The buckets."""
    registry: RegistryWish = Field(default_factory=RegistryWish)
    """The image registry."""
    boundary_arn: str | None = None
    """A permissions boundary that the account wants on every role; without one, pods' roles get
    that of this environment."""

    @model_validator(mode="after")
    def _deployer_is_known(self) -> Self:
        if self.cluster.existing is None and self.cluster.deployer_arn is None:
            raise ValueError(
                "cluster.deployer_arn is missing: nobody could deploy into the new cluster; write "
                "the ARN of the role that runs pulumi (aws sts get-caller-identity names its "
                "session)"
            )
        return self

    @model_validator(mode="after")
    def _zones_are_the_network_s(self) -> Self:
        known = self.network.zones or tuple(
            self.network.existing.private_subnets if self.network.existing else ()
        )
        problem = zones_problem(known, self.account.region)
        if problem:
            raise ValueError(f"network.{problem}")
        for name, pool in self.gpu_pools.items():
            for zone in pool.zones:
                if zone not in known:
                    raise ValueError(
                        f"gpu_pools.{name}.zones: {zone!r} isn't one of the network's zones "
                        f"({', '.join(known)})"
                    )
        return self


class AwsFoundationArgs(AwsWishes):
    """What the foundation is made of."""

    database_ca: In[str]
    """The certificates, as PEM, that sign those of RDS; Amazon publishes them for each region at
    ``https://truststore.pki.rds.amazonaws.com/<region>/<region>-bundle.pem``."""


def check_name(name: str) -> None:
    """Refuse a name of an environment that leaves no room for what is called after it.

    Raises:
        ValueError: naming what is too long or isn't a name.
    """
    _NAME.validate_python(name)
    queues.check_names(name)
