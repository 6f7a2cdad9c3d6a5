"""What every cloud gives, and what a workload may touch of it.

A grant is a value: "may read this bucket". Binding grants to a workload gives it the permission
and the wiring (where it is, how to get in) at once, so that it never has one without the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

import pulumi
import pulumi_kubernetes as k8s

from .contracts import In
from .domain.args import Opaque
from .kube.network import Egress


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
    password: pulumi.Output[str] | None = None
    """Left out where ``secret_arn`` names what holds it."""
    secret_arn: pulumi.Output[str] | None = None
    """The secret of AWS Secrets Manager that services read the password from when they connect, so
    that it may change and lies in no state."""
    secret_key_arn: pulumi.Output[str] | None = None
    """The key that the secret is encrypted with."""
    ca: pulumi.Output[str] | None = None
    """Certificates, as PEM, of who signs the server's; connections are encrypted and the server's
    name is checked where it is given."""

    @property
    def url(self) -> pulumi.Output[str]:
        """The whole of it as one URL, secret where it holds a password."""
        if self.password is None:
            return pulumi.Output.format(
                "postgresql://{0}@{1}:{2}/{3}",
                self.user, self.host, self.port.apply(int), self.name,
            )  # fmt: skip
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
    tls: bool = False
    """Whether connections are encrypted."""
    clustered: bool = False
    """Whether its keys are spread over several servers."""

    @property
    def url(self) -> pulumi.Output[str]:
        """The whole of it as one secret URL."""
        return pulumi.Output.format(
            f"{'rediss' if self.tls else 'redis'}://{{0}}:{{1}}@{{2}}:{{3}}/0",
            self.user, self.password, self.host, self.port.apply(int),
        )  # fmt: skip

    @property
    def address(self) -> pulumi.Output[str]:
        """Where it is, as ``host:port``; not secret."""
        return pulumi.Output.format("{0}:{1}", self.host, self.port.apply(int))


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A bucket that speaks S3, and one kind of access to it."""

    name: pulumi.Output[str]
    region: pulumi.Output[str]
    read_only: bool
    """Whether this access can only read."""
    endpoint: pulumi.Output[str] | None = None
    """Where it is; Amazon's own address of the region when left out."""
    access_key: pulumi.Output[str] | None = None
    """Left out, with ``secret_key``, where a workload's identity says what it may do."""
    secret_key: pulumi.Output[str] | None = None
    key_arn: pulumi.Output[str] | None = None
    """The key that its objects are encrypted with, where that is one of ours."""


@dataclass(frozen=True, kw_only=True)
class SqsQueues:
    """Queues of Amazon SQS: one, or all whose names begin alike."""

    arn: In[str]
    """Its ARN, or a pattern that ends with ``*``."""
    key_arn: pulumi.Output[str] | None = None
    """The key that messages are encrypted with, where that is one of ours."""


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
    SEND = "send"
    CLEAR = "clear"
    COUNT = "count"


@dataclass(frozen=True, kw_only=True)
class Grant:
    """That a workload may use one thing of the foundation, and how."""

    resource: Database | Redis | Bucket | SqsQueues
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
    def consume_queue(cls, queue: Redis | SqsQueues) -> "Grant":
        """May take tasks from the queues that this opens, and settle them."""
        return cls(resource=queue, permission=Permission.CONSUME)

    @classmethod
    def send_queue(cls, queue: SqsQueues) -> "Grant":
        """May put tasks on the queues, count them, and see and put back their dead letters."""
        return cls(resource=queue, permission=Permission.SEND)

    @classmethod
    def count_queue(cls, queue: SqsQueues) -> "Grant":
        """May ask how many tasks wait or run."""
        return cls(resource=queue, permission=Permission.COUNT)

    @classmethod
    def read_bucket(cls, bucket: Bucket) -> "Grant":
        """May list and read the bucket's objects."""
        return cls(resource=bucket, permission=Permission.READ)

    @classmethod
    def write_bucket(cls, bucket: Bucket) -> "Grant":
        """May list, read and write the bucket's objects."""
        return cls(resource=bucket, permission=Permission.WRITE)

    @classmethod
    def clear_bucket(cls, bucket: Bucket) -> "Grant":
        """May list and delete the bucket's objects."""
        return cls(resource=bucket, permission=Permission.CLEAR)


@dataclass(frozen=True, kw_only=True)
class Binding:
    """What a container gets so that it can use what its workload was granted."""

    env: Sequence[k8s.core.v1.EnvVarArgsDict]
    """Environment variables; secret ones refer to a Secret."""
    config_hash: In[str]
    """Changes when what the variables hold changes, so that pods roll; not secret itself."""
    needs: Sequence[pulumi.Resource]
    """What must exist before the container starts."""
    volumes: Sequence[k8s.core.v1.VolumeArgsDict] = ()
    """Volumes of the pod."""
    mounts: Sequence[k8s.core.v1.VolumeMountArgsDict] = ()
    """Where the container finds them."""
    service_account: str | None = None
    """The service account that the pod has to run as, where that isn't the workload's own."""
    pod_annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    """Annotations of the pod."""


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
        lease_seconds: int = 60,
        max_deliveries: int = 5,
        expires_seconds: int = 86_400,
    ) -> Queue:
        """Return the queue of an endpoint, with what has to be created for it.

        Args:
            endpoint: Its name.
            team: Whose it is.
            namespace: Where its workers run.
            cacher_url: Who knows how many tasks are outstanding, where the broker itself doesn't.
            opts: Options of the resources that it takes, their parent above all.
            lease_seconds: How long a task stays with its worker unless that extends it.
            max_deliveries: How often a task is handed to workers.
            expires_seconds: How long a task may wait.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class DataPaths(Opaque):
    """How pods reach the data services: for each, whom and on which ports."""

    database: Sequence[Egress]
    redis: Sequence[Egress]
    bucket: Sequence[Egress]
    """The bucket that the platform writes to."""
    weights: Sequence[Egress]
    tasks: Sequence[Egress]
    """The queues of asynchronous endpoints."""


@dataclass(frozen=True, kw_only=True)
class Foundation(Opaque):
    """What every cloud's foundation gives; nothing above asks which cloud it is."""

    cluster: ClusterAccess
    paths: DataPaths
    """How pods reach the data services."""
    database: Database
    redis: Redis
    redis_scaler: Redis
    """The same Redis, with credentials that tell how long activation lists are and nothing else."""
    broker: BrokerKind = "redis"
    """What carries the tasks of asynchronous endpoints."""
    task_queues: SqsQueues | None = None
    """Every team's queues, where they aren't in Redis."""
    service_settings: Mapping[str, In[str]] = field(default_factory=dict[str, In[str]])
    """Environment variables of the platform's services that this cloud makes necessary."""
    bucket: Bucket
    """Where the platform keeps results and large payloads."""
    weights: Bucket
    """Where weights are read from; nothing can be written there."""
    registry: Registry
    identity: Identity

    def on_queues(self, grant: Callable[[SqsQueues], Grant]) -> Sequence[Grant]:
        """Return a grant on every team's queues, where they aren't in Redis."""
        return [grant(self.task_queues)] if self.task_queues else []
