"""Redis: ElastiCache with Valkey, one shard, so that every key is on the same server."""

import secrets
from dataclasses import dataclass, replace
from typing import Literal

import pulumi
import pulumi_aws as aws
from pydantic import Field

from ..contracts import In
from ..domain import keys
from ..domain.args import Args
from ..domain.names import safe_name
from ..foundation import Redis
from . import doors, limits
from .protection import kept
from .stored_secret import StoredSecret, StoredSecretArgs

PORT = 6379
PLATFORM_USER = "platform"
_ENGINE = "valkey"
_DEFAULT_USER = "default"

PLATFORM_RIGHTS = "~llm-platform:* resetchannels &llm-platform:* +@all -@admin -@dangerous"
"""What the platform's services may do: anything to their own keys and channels, and nothing to the
server. Written in the order in which the server itself shows it, so that it is no difference."""

_BYTES = 32


class RedisSize(Args):
    """How large Redis is."""

    node_type: str = Field(pattern=r"^cache\.[a-z0-9]+\.[a-z0-9]+$")
    """The node's type, such as ``cache.t4g.small``."""
    nodes: int = Field(ge=1, le=6)
    """Nodes: one that is written to, and copies; with two or more, in zones of their own, a copy
    takes over when it is lost."""


SIZES = {
    "dev": RedisSize(node_type="cache.t4g.micro", nodes=1),
    "prod": RedisSize(node_type="cache.m7g.large", nodes=2),
}
"""Our choices: what is in it is small, so that a node's network counts, and not its memory."""


class AwsRedisArgs(Args):
    """How Redis runs, and who may connect."""

    size: RedisSize | Literal["dev", "prod"] = "prod"
    """``dev`` (one ``cache.t4g.micro``), ``prod`` (two ``cache.m7g.large`` in two zones), or a size
    of its own."""
    vpc_id: In[str]
    """The VPC."""
    subnet_ids: tuple[In[str], ...] = Field(min_length=2)
    """Private subnets in at least two zones."""
    clients: doors.Clients
    """Who may connect."""
    key_arn: In[str]
    """The KMS key of the data, the backups, and the passwords."""
    engine_version: str = Field(default="8.2", pattern=r"^[789]\.[0-9]+$")
    """Valkey's version that a new group begins with."""
    minor_upgrades: bool = True
    """Whether AWS installs minor versions by itself; then a newer version than ours is no
    difference."""
    backup_days: int = Field(default=7, ge=0, le=limits.ELASTICACHE_LONGEST_RETENTION_DAYS)
    """How many daily backups are kept."""
    ephemeral: bool = False
    """Whether the environment may be thrown away: no protection, and no backup at the end."""

    @property
    def chosen_size(self) -> RedisSize:
        """The size, a named one looked up."""
        return SIZES[self.size] if isinstance(self.size, str) else self.size

    @property
    def major_version(self) -> str:
        """The engine's major version."""
        return self.engine_version.partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class _User:
    name: str
    access: str
    password: pulumi.Output[str]


class AwsRedis(pulumi.ComponentResource):
    """A Valkey replication group, encrypted, private, reached by TLS only, by two users.

    Creates the replication group with its parameter, subnet and security groups; the user
    ``platform``, who may use the platform's keys, the user ``scaler``, who may ask how long
    activation lists are and nothing else, and the user ``default`` switched off; a secret with the
    passwords. Nothing is ever thrown out of memory: a full server refuses writes, so that it is
    seen. Cluster mode is off, since a task moves between keys in one step.
    """

    host: pulumi.Output[str]
    secret_arn: pulumi.Output[str]
    """The secret with the passwords of ``platform`` and ``scaler``."""
    redis: Redis
    """How the platform connects, for grants."""
    redis_scaler: Redis
    """How the autoscaler connects."""

    def __init__(
        self, name: str, args: AwsRedisArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:AwsRedis", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        passwords = StoredSecret(
            f"{name}-passwords",
            StoredSecretArgs(
                description="Passwords of the platform's Redis",
                keys=(PLATFORM_USER, keys.SCALER_USER),
                key_arn=args.key_arn,
                ephemeral=args.ephemeral,
            ),
            self._child,
        )
        group = self._group(self._users(passwords))
        self.host = group.primary_endpoint_address
        self.secret_arn = passwords.arn
        self.redis = Redis(
            host=self.host,
            port=pulumi.Output.from_input(PORT),
            password=passwords.values[PLATFORM_USER],
            user=PLATFORM_USER,
            tls=True,
        )
        self.redis_scaler = replace(
            self.redis, user=keys.SCALER_USER, password=passwords.values[keys.SCALER_USER]
        )
        self.register_outputs({"host": self.host, "secret_arn": self.secret_arn})

    def _users(self, passwords: StoredSecret) -> aws.elasticache.UserGroup:
        """Create the users; a group of Valkey's users has only such as have a password."""
        made = [
            self._user(
                _User(
                    name=PLATFORM_USER,
                    access=f"on {PLATFORM_RIGHTS}",
                    password=passwords.values[PLATFORM_USER],
                )
            ),
            self._user(
                _User(
                    name=keys.SCALER_USER,
                    access=f"on {keys.SCALER_RIGHTS}",
                    password=passwords.values[keys.SCALER_USER],
                )
            ),
            # Whoever names no user would be this one. Nobody ever needs its password.
            self._user(
                _User(
                    name=_DEFAULT_USER,
                    access="off resetchannels -@all",
                    password=pulumi.Output.secret(secrets.token_urlsafe(_BYTES)),
                ),
                ignore_changes=["authenticationMode"],
            ),
        ]
        return aws.elasticache.UserGroup(
            f"{self._name}-users",
            user_group_id=safe_name(self._name, "users", limit=limits.ELASTICACHE_ID),
            engine=_ENGINE,
            user_ids=[user.user_id for user in made],
            opts=self._child,
        )

    def _user(self, user: _User, ignore_changes: list[str] | None = None) -> aws.elasticache.User:
        return aws.elasticache.User(
            f"{self._name}-{user.name}",
            user_id=safe_name(self._name, user.name, limit=limits.ELASTICACHE_ID),
            user_name=user.name,
            engine=_ENGINE,
            access_string=user.access,
            authentication_mode={"type": "password", "passwords": [user.password]},
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=ignore_changes),
        )

    def _group(self, users: aws.elasticache.UserGroup) -> aws.elasticache.ReplicationGroup:
        name, args = self._name, self._args
        size = args.chosen_size
        subnets = aws.elasticache.SubnetGroup(
            f"{name}-subnets", subnet_ids=list(args.subnet_ids), opts=self._child
        )
        parameters = aws.elasticache.ParameterGroup(
            f"{name}-parameters-{args.major_version}",
            family=f"{_ENGINE}{args.major_version}",
            parameters=[{"name": "maxmemory-policy", "value": "noeviction"}],
            opts=self._child,
        )
        door = doors.admit(
            f"{name}-door",
            vpc_id=args.vpc_id,
            clients=args.clients,
            ports=[(PORT, PORT)],
            description="Redis of the platform",
            opts=self._child,
        )
        return aws.elasticache.ReplicationGroup(
            limits.autonamed(name, limit=limits.ELASTICACHE_ID),
            description=f"Redis of {name}",
            engine=_ENGINE,
            engine_version=args.engine_version,
            auto_minor_version_upgrade=args.minor_upgrades,
            node_type=size.node_type,
            num_cache_clusters=size.nodes,
            automatic_failover_enabled=size.nodes > 1,
            multi_az_enabled=size.nodes > 1,
            port=PORT,
            parameter_group_name=parameters.name,
            subnet_group_name=subnets.name,
            security_group_ids=[door.id],
            user_group_ids=[users.id],
            transit_encryption_enabled=True,
            transit_encryption_mode="required",
            at_rest_encryption_enabled=True,
            kms_key_id=args.key_arn,
            snapshot_retention_limit=args.backup_days,
            # With the subnet group's random digits: ElastiCache refuses a name that it has.
            final_snapshot_identifier=(
                None if args.ephemeral else pulumi.Output.format("{0}-last", subnets.name)
            ),
            apply_immediately=args.ephemeral,
            opts=kept(
                self,
                ephemeral=args.ephemeral,
                ignore_changes=["engineVersion"] if args.minor_upgrades else [],
            ),
        )
