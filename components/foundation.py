"""What every cloud gives, and what a workload may touch of it.

A grant is a value: "may read this bucket". Binding grants to a workload gives it the permission
and the wiring (where it is, how to get in) at once, so that it never has one without the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

import pulumi
import pulumi_kubernetes as k8s

from .contracts import In
from .domain.args import Opaque


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """How to reach the cluster."""

    kubeconfig: pulumi.Output[str]
    """A whole kubeconfig; secret."""


@dataclass(frozen=True, kw_only=True)
class Database:
    """A Postgres database."""

    host: pulumi.Output[str]
    port: pulumi.Output[int]
    name: pulumi.Output[str]
    user: pulumi.Output[str]
    password: pulumi.Output[str]

    @property
    def url(self) -> pulumi.Output[str]:
        """The whole of it as one secret URL."""
        return pulumi.Output.format(
            "postgresql://{0}:{1}@{2}:{3}/{4}",
            self.user, self.password, self.host, self.port.apply(int), self.name,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Redis:
    """A Redis server."""

    host: pulumi.Output[str]
    port: pulumi.Output[int]
    password: pulumi.Output[str]
    user: str = "default"
    """Whose password it is; what this user may do is the server's to say."""
    clustered: bool = False
    """Whether its keys are spread over several servers."""

    @property
    def url(self) -> pulumi.Output[str]:
        """The whole of it as one secret URL."""
        return pulumi.Output.format(
            "redis://{0}:{1}@{2}:{3}/0", self.user, self.password, self.host, self.port.apply(int)
        )

    @property
    def address(self) -> pulumi.Output[str]:
        """Where it is, as ``host:port``; not secret."""
        return pulumi.Output.format("{0}:{1}", self.host, self.port.apply(int))


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A bucket that speaks S3, with the credentials of one kind of access to it."""

    name: pulumi.Output[str]
    region: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    access_key: pulumi.Output[str]
    secret_key: pulumi.Output[str]
    read_only: bool
    """Whether these credentials can only read."""


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Where images are pushed to and pulled from."""

    prefix: pulumi.Output[str]


class Permission(StrEnum):
    """What a grant allows."""

    READ = "read"
    WRITE = "write"
    USE = "use"
    CONSUME = "consume"


@dataclass(frozen=True, kw_only=True)
class Grant:
    """That a workload may use one thing of the foundation, and how."""

    resource: Database | Redis | Bucket
    permission: Permission

    @classmethod
    def use_database(cls, database: Database) -> "Grant":
        """May read and write the database."""
        return cls(resource=database, permission=Permission.USE)

    @classmethod
    def use_redis(cls, redis: Redis) -> "Grant":
        """May read and write Redis."""
        return cls(resource=redis, permission=Permission.USE)

    @classmethod
    def consume_queue(cls, queue: Redis) -> "Grant":
        """May take tasks from the queues that these credentials open, and settle them."""
        return cls(resource=queue, permission=Permission.CONSUME)

    @classmethod
    def read_bucket(cls, bucket: Bucket) -> "Grant":
        """May list and read the bucket's objects."""
        return cls(resource=bucket, permission=Permission.READ)

    @classmethod
    def write_bucket(cls, bucket: Bucket) -> "Grant":
        """May list, read and write the bucket's objects."""
        return cls(resource=bucket, permission=Permission.WRITE)


@dataclass(frozen=True, kw_only=True)
class Binding:
    """What a container gets so that it can use what its workload was granted."""

    env: Sequence[k8s.core.v1.EnvVarArgsDict]
    """Environment variables; secret ones refer to a Secret."""
    config_hash: pulumi.Output[str]
    """Changes when what the variables hold changes, so that pods roll; not secret itself."""
    needs: Sequence[pulumi.Resource]
    """What must exist before the container starts."""


class Identity(Protocol):
    """Gives a workload the permissions of its grants and nothing more."""

    def bind(
        self,
        name: str,
        *,
        workload_name: str,
        namespace: In[str],
        grants: Sequence[Grant],
        opts: pulumi.ResourceOptions,
        container: str = "",
    ) -> Binding:
        """Bind ``grants`` to a workload.

        Args:
            name: What the names of the resources that this makes begin with.
            workload_name: The workload, which has a service account of the same name.
            namespace: Where it runs.
            grants: What it may touch.
            opts: Options of the resources, their parent above all.
            container: The only one of its containers that gets them, where that is so: its secrets
                are kept apart from those of the others.
        """
        ...


BrokerKind = Literal["redis", "sqs", "servicebus"]
"""What carries the tasks of asynchronous endpoints."""


@dataclass(frozen=True, kw_only=True)
class KedaTrigger:
    """What tells KEDA how much there is to do."""

    type: str
    """KEDA's name of the trigger."""
    metadata: Mapping[str, In[str]]
    """KEDA's settings of it, all but the number that one worker is meant to have."""
    target_field: str = "targetValue"
    """KEDA's name of that number, which differs between triggers."""
    authentication: str | None = None
    """The object that holds its credentials; none where it needs none."""
    authentication_kind: Literal["ClusterTriggerAuthentication", "TriggerAuthentication"] = (
        "ClusterTriggerAuthentication"
    )

    def aimed_at(self, per_worker: int) -> Mapping[str, In[str]]:
        """Return the whole metadata for so many tasks per worker."""
        return {**self.metadata, self.target_field: str(per_worker)}


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The queue of one asynchronous endpoint, as its workers and its autoscaler see it."""

    grants: Sequence[Grant]
    """What a worker needs to take tasks from it."""
    settings: Mapping[str, In[str]]
    """Environment variables of the worker that say where it is; nothing secret."""
    trigger: KedaTrigger
    """What tells how many tasks wait or run."""


class Broker(Protocol):
    """Carries tasks to the workers of one team's asynchronous endpoints."""

    @property
    def kind(self) -> BrokerKind:
        """What it is."""
        ...

    def queue(
        self,
        endpoint: str,
        *,
        team: str,
        namespace: In[str],
        cacher_url: In[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> Queue:
        """Return the queue of an endpoint, with what has to be created for it.

        Args:
            endpoint: Its name.
            team: Whose it is.
            namespace: Where its workers run.
            cacher_url: Who knows how many tasks are outstanding, where the broker itself doesn't.
            opts: Options of the resources that it takes, their parent above all.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Foundation(Opaque):
    """What every cloud's foundation gives; nothing above asks which cloud it is."""

    cluster: ClusterAccess
    namespace: pulumi.Output[str]
    database: Database
    redis: Redis
    redis_scaler: Redis
    """The same Redis, with credentials that tell how long activation lists are and nothing else."""
    broker: BrokerKind = "redis"
    """What carries the tasks of asynchronous endpoints."""
    bucket: Bucket
    """With the credentials of its owner."""
    bucket_reader: Bucket
    """The same bucket, with credentials that can only read."""
    registry: Registry
    identity: Identity
