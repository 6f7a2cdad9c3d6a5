"""The foundation without a cloud: data services as pods with disks."""

from dataclasses import replace

import pulumi
from pydantic import Field

from ..contracts import In
from ..domain import keys
from ..domain.args import Args
from ..domain.images import ImageRef
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..foundation import (
    Bucket,
    ClusterAccess,
    Database,
    DataPaths,
    Foundation,
    Redis,
    Registry,
)
from ..kube import network
from ..kube.namespace import Namespace, NamespaceArgs
from . import database as postgres
from . import redis, storage
from .contracts import LocalFoundationContract
from .database import LocalDatabase, LocalDatabaseArgs
from .identity import LocalIdentity
from .redis import LocalRedis, LocalRedisArgs
from .storage import LocalStorage, LocalStorageArgs


class DataImages(Args):
    """The images of the data services."""

    postgres: ImageRef
    """Postgres with its entrypoint."""
    redis: ImageRef
    """Redis."""
    objectstore: ImageRef
    """The S3-compatible server."""


class VolumeSizes(Args):
    """The disks of the data services."""

    postgres: Quantity = "2Gi"
    """The database's."""
    redis: Quantity = "1Gi"
    """That of Redis."""
    objectstore: Quantity = "8Gi"
    """That of the weights' bucket."""


class LocalFoundationArgs(Args):
    """What the foundation is made of."""

    kubeconfig: In[str]
    """The whole kubeconfig of the cluster."""
    registry: In[str]
    """What the names of images begin with, such as ``10.88.0.1:5000``."""
    images: DataImages
    """The data services' images."""
    volumes: VolumeSizes = Field(default_factory=VolumeSizes)
    """The data services' disks."""
    storage_class: K8sName | None = None
    """The class of the disks; the cluster's default when left out."""
    namespace: K8sName = "llm-platform-data"
    """The namespace of the data services."""
    platform_namespace: K8sName = "llm-platform"
    """The namespace whose pods may use them."""


class LocalFoundation(pulumi.ComponentResource):
    """Postgres, Redis and a bucket in the cluster, all of them persistent.

    Creates a Namespace, a LocalDatabase, a LocalRedis and a LocalStorage.
    """

    namespace: pulumi.Output[str]
    foundation: Foundation
    """What it gives, for the components that use it."""
    contract: LocalFoundationContract
    """What it gives, for the platform's stack."""

    def __init__(
        self, name: str, args: LocalFoundationArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:LocalFoundation", name, None, opts)
        scope = Namespace(
            f"{name}-data",
            NamespaceArgs(name=args.namespace),
            pulumi.ResourceOptions(parent=self),
        )
        self.namespace = scope.name
        child = pulumi.ResourceOptions(parent=self, deleted_with=scope.namespace)
        database = LocalDatabase(
            f"{name}-postgres",
            LocalDatabaseArgs(
                namespace=scope.name,
                image=args.images.postgres,
                size=args.volumes.postgres,
                storage_class=args.storage_class,
                client_namespace=args.platform_namespace,
            ),
            child,
        )
        cache = LocalRedis(
            f"{name}-redis",
            LocalRedisArgs(
                namespace=scope.name,
                image=args.images.redis,
                size=args.volumes.redis,
                storage_class=args.storage_class,
                client_namespace=args.platform_namespace,
            ),
            child,
        )
        bucket = LocalStorage(
            f"{name}-objectstore",
            LocalStorageArgs(
                namespace=scope.name,
                image=args.images.objectstore,
                size=args.volumes.objectstore,
                storage_class=args.storage_class,
                client_namespace=args.platform_namespace,
            ),
            child,
        )
        self.foundation = Foundation(
            cluster=ClusterAccess(kubeconfig=pulumi.Output.secret(args.kubeconfig)),
            paths=data_paths(self.namespace),
            database=database.database,
            redis=cache.redis,
            redis_scaler=cache.redis_scaler,
            bucket=bucket.bucket,
            weights=bucket.bucket_reader,
            registry=Registry(prefix=pulumi.Output.from_input(args.registry)),
            identity=LocalIdentity(),
        )
        self.contract = _contract(self.foundation, self.namespace, bucket)
        self.register_outputs({"namespace": self.namespace})


def data_paths(namespace: In[str]) -> DataPaths:
    """Return how pods reach the data services in their namespace."""
    data = [network.namespace_peer(namespace)]
    tasks = [(data, [redis.PORT])]
    return DataPaths(
        database=[(data, [postgres.PORT])],
        redis=tasks,
        bucket=[(data, [storage.PORT])],
        weights=[(data, [storage.READER_PORT])],
        tasks=tasks,
    )


def _contract(
    foundation: Foundation, namespace: pulumi.Output[str], storage: LocalStorage
) -> LocalFoundationContract:
    """Return the outputs that say all of it."""
    database, redis = foundation.database, foundation.redis
    owner, reader = storage.credentials, storage.reader_credentials
    return LocalFoundationContract(
        kubeconfig=foundation.cluster.kubeconfig,
        namespace=namespace,
        database_host=database.host,
        database_port=database.port,
        database_name=database.name,
        database_user=database.user,
        database_password=pulumi.Output.from_input(database.password or ""),
        redis_host=redis.host,
        redis_port=redis.port,
        redis_password=redis.password,
        redis_scaler_password=foundation.redis_scaler.password,
        bucket_name=foundation.bucket.name,
        bucket_region=foundation.bucket.region,
        bucket_endpoint=storage.endpoint,
        bucket_address=storage.address,
        bucket_access_key=owner["access_key"],
        bucket_secret_key=owner["secret_key"],
        bucket_reader_endpoint=storage.reader_endpoint,
        bucket_reader_access_key=reader["access_key"],
        bucket_reader_secret_key=reader["secret_key"],
        registry=foundation.registry.prefix,
    )


def foundation_from(contract: LocalFoundationContract) -> Foundation:
    """Return the foundation that a contract tells of."""
    server = Redis(
        host=contract.redis_host, port=contract.redis_port, password=contract.redis_password
    )
    return Foundation(
        cluster=ClusterAccess(kubeconfig=contract.kubeconfig),
        paths=data_paths(contract.namespace),
        database=Database(
            host=contract.database_host,
            port=contract.database_port,
            name=contract.database_name,
            user=contract.database_user,
            password=contract.database_password,
        ),
        redis=server,
        redis_scaler=replace(
            server, user=keys.SCALER_USER, password=contract.redis_scaler_password
        ),
        bucket=Bucket(
            name=contract.bucket_name,
            region=contract.bucket_region,
            endpoint=contract.bucket_endpoint,
            access_key=contract.bucket_access_key,
            secret_key=contract.bucket_secret_key,
            read_only=False,
        ),
        weights=Bucket(
            name=contract.bucket_name,
            region=contract.bucket_region,
            endpoint=contract.bucket_reader_endpoint,
            access_key=contract.bucket_reader_access_key,
            secret_key=contract.bucket_reader_secret_key,
            read_only=True,
        ),
        registry=Registry(prefix=contract.registry),
        identity=LocalIdentity(),
    )
