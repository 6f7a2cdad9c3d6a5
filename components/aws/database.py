"""Postgres: an Aurora cluster that follows the load."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

import pulumi
import pulumi_aws as aws
from pydantic import AfterValidator, Field, model_validator

from ..contracts import In
from ..domain.args import Args
from ..foundation import Database
from ..kube import workload
from . import doors, limits
from .protection import kept

PORT = 5432
_NAME = "platform"
_ENGINE = "aurora-postgresql"
_LARGEST_ACU = 256


def _half_steps(value: float) -> float:
    if value * 2 != int(value * 2):
        raise ValueError(f"{value} isn't a step of Aurora's capacity: use halves, such as 0.5 or 8")
    return value


Acu = Annotated[float, Field(ge=0, le=_LARGEST_ACU), AfterValidator(_half_steps)]
"""Aurora's unit of capacity: about 2 GiB of memory with its share of processors and network."""


class DatabaseSize(Args):
    """How much the database may use."""

    min_acu: Acu
    """What each instance has at least. The gateways ask every few seconds, so that 0, with which an
    unused instance pauses, saves nothing while they run."""
    max_acu: Acu
    """What each instance has at most."""
    instances: int = Field(ge=1, le=16)
    """Instances; with two or more, in zones of their own, one takes over when another is lost."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_acu < max(1, self.min_acu):
            raise ValueError(
                f"max_acu={self.max_acu} is below min_acu={self.min_acu}, or below 1, which Aurora "
                "asks for at least"
            )
        return self


SIZES = {
    "dev": DatabaseSize(min_acu=0.5, max_acu=4, instances=1),
    "prod": DatabaseSize(min_acu=1, max_acu=16, instances=2),
}
"""Our choices: the platform's tables are small; what grows is the number of connections."""


class AwsDatabaseArgs(Args):
    """How the database runs, who may connect, and how long its past is kept."""

    size: DatabaseSize | Literal["dev", "prod"] = "prod"
    """``dev`` (one instance, 0.5 to 4 ACU), ``prod`` (two, 1 to 16 ACU), or a size of its own."""
    vpc_id: In[str]
    """The VPC."""
    subnet_ids: tuple[In[str], ...] = Field(min_length=2)
    """Private subnets in at least two zones."""
    clients: doors.Clients
    """Who may connect."""
    key_arn: In[str]
    """The KMS key of the data, the backups, and the password."""
    ca: In[str]
    """The certificates, as PEM, that sign those of RDS; Amazon publishes them for each region at
    https://truststore.pki.rds.amazonaws.com/<region>/<region>-bundle.pem."""
    engine_version: str = Field(default="17.7", pattern=r"^[0-9]{2}\.[0-9]+$")
    """Aurora's version that a new cluster begins with. 17.7 has long-term support (Aurora's release
    calendar, read 2026-11)."""
    minor_upgrades: bool = True
    """Whether AWS installs minor versions by itself; then a newer version than ours is no
    difference. Without it ``engine_version`` counts, also for the step to a major version."""
    iam_login: bool = True
    """Whether database users may log in with a token of their role instead of a password."""
    backup_days: int = Field(default=14, ge=1, le=limits.RDS_LONGEST_RETENTION_DAYS)
    """How many days back the database can be restored, to any second."""
    restore_from: str | None = None
    """A snapshot that a new cluster begins with. Leave it in the settings afterwards: without it
    the cluster would have to be made anew, which its protection refuses."""
    ephemeral: bool = False
    """Whether the environment may be thrown away: no protection, and no snapshot at the end."""

    @property
    def chosen_size(self) -> DatabaseSize:
        """The size, a named one looked up."""
        return SIZES[self.size] if isinstance(self.size, str) else self.size

    @property
    def major_version(self) -> str:
        """The engine's major version."""
        return self.engine_version.partition(".")[0]


class AwsDatabase(pulumi.ComponentResource):
    """An Aurora Postgres cluster, encrypted, private, and reached by TLS only.

    Creates the cluster and its instances, a subnet group, a parameter group that refuses plain
    connections, and a security group. RDS itself makes the password, keeps it in Secrets Manager
    and renews it every seven days (Aurora user guide, read 2026-11), so that it is in no state: who
    connects reads it first. Unless the environment is ephemeral, the cluster can neither be deleted
    nor replaced, and its end leaves a snapshot and the automated backups.
    """

    host: pulumi.Output[str]
    secret_arn: pulumi.Output[str]
    """The secret with ``username`` and ``password``."""
    resource_id: pulumi.Output[str]
    """What rights to log in without a password name it by."""
    database: Database
    """How to connect, for grants."""

    def __init__(
        self, name: str, args: AwsDatabaseArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:AwsDatabase", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        cluster = self._cluster()
        for number in range(args.chosen_size.instances):
            self._instance(cluster, number)
        self.host = cluster.endpoint
        self.secret_arn = cluster.master_user_secrets.apply(_secret_of)
        self.resource_id = cluster.cluster_resource_id
        self.database = Database(
            host=self.host,
            port=cluster.port,
            name=pulumi.Output.from_input(_NAME),
            user=pulumi.Output.from_input(_NAME),
            secret_arn=self.secret_arn,
            secret_key_arn=pulumi.Output.from_input(args.key_arn),
            ca=pulumi.Output.from_input(args.ca),
        )
        self.register_outputs(
            {
                "host": self.host,
                "secret_arn": self.secret_arn,
                "resource_id": self.resource_id,
            }
        )

    def _cluster(self) -> aws.rds.Cluster:
        name, args = self._name, self._args
        subnets = aws.rds.SubnetGroup(
            f"{name}-subnets", subnet_ids=list(args.subnet_ids), opts=self._child
        )
        parameters = aws.rds.ClusterParameterGroup(
            f"{name}-parameters-{args.major_version}",
            family=f"{_ENGINE}{args.major_version}",
            description="TLS only",
            parameters=[{"name": "rds.force_ssl", "value": "1", "apply_method": "immediate"}],
            opts=self._child,
        )
        group = doors.admit(
            f"{name}-door",
            vpc_id=args.vpc_id,
            clients=args.clients,
            ports=[(PORT, PORT)],
            description="Postgres of the platform",
            opts=self._child,
        )
        return aws.rds.Cluster(
            limits.autonamed(name, limit=limits.RDS_IDENTIFIER),
            engine=_ENGINE,
            engine_mode="provisioned",
            engine_version=args.engine_version,
            engine_lifecycle_support="open-source-rds-extended-support-disabled",
            auto_minor_version_upgrade=args.minor_upgrades,
            allow_major_version_upgrade=not args.minor_upgrades,
            serverlessv2_scaling_configuration={
                "min_capacity": args.chosen_size.min_acu,
                "max_capacity": args.chosen_size.max_acu,
            },
            database_name=_NAME,
            master_username=_NAME,
            manage_master_user_password=True,
            master_user_secret_kms_key_id=args.key_arn,
            iam_database_authentication_enabled=args.iam_login,
            storage_encrypted=True,
            kms_key_id=args.key_arn,
            port=PORT,
            db_subnet_group_name=subnets.name,
            db_cluster_parameter_group_name=parameters.name,
            vpc_security_group_ids=[group.id],
            backup_retention_period=args.backup_days,
            copy_tags_to_snapshot=True,
            # Kept for as long as they would have been: what an accident leaves of the past.
            delete_automated_backups=args.ephemeral,
            deletion_protection=not args.ephemeral,
            skip_final_snapshot=args.ephemeral,
            final_snapshot_identifier=self._last_snapshot(subnets),
            snapshot_identifier=args.restore_from,
            apply_immediately=args.ephemeral,
            opts=kept(
                self,
                ephemeral=args.ephemeral,
                ignore_changes=["engineVersion"] if args.minor_upgrades else [],
            ),
        )

    def _last_snapshot(self, subnets: aws.rds.SubnetGroup) -> pulumi.Output[str] | None:
        """Return what the snapshot at the cluster's end is called; RDS refuses a name it has.

        The subnet group's name has random digits of this environment, and another cluster is only
        made from another snapshot.
        """
        if self._args.ephemeral:
            return None
        origin = self._args.restore_from
        parts = ("last",) if origin is None else ("last", workload.content_hash(origin))
        return pulumi.Output.format("{0}-{1}", subnets.name, "-".join(parts))

    def _instance(self, cluster: aws.rds.Cluster, number: int) -> None:
        aws.rds.ClusterInstance(
            limits.autonamed(self._name, str(number), limit=limits.RDS_IDENTIFIER),
            cluster_identifier=cluster.id,
            engine=aws.rds.EngineType.AURORA_POSTGRESQL,
            instance_class="db.serverless",
            ca_cert_identifier="rds-ca-rsa2048-g1",
            publicly_accessible=False,
            # The first is the writer, and those with the lowest tier take over first.
            promotion_tier=min(number, 1),
            auto_minor_version_upgrade=self._args.minor_upgrades,
            apply_immediately=self._args.ephemeral,
            opts=self._child,
        )


def _secret_of(found: Sequence[aws.rds.outputs.ClusterMasterUserSecret]) -> str:
    """Return the ARN of the secret that RDS has made.

    Raises:
        pulumi.RunError: when there is none, as of a cluster that was changed by hand.
    """
    arn = found[0].secret_arn if found else None
    if arn is None:
        raise pulumi.RunError(
            "the database's cluster has no password that RDS manages: somebody has switched "
            "`manage_master_user_password` off; run `pulumi up --refresh` to switch it on again"
        )
    return arn
