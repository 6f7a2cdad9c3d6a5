"""Postgres in the cluster."""

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from ..domain.images import ImageRef
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..foundation import Database
from ..kube import network, workload
from ..kube.generated_secret import GeneratedSecret, GeneratedSecretArgs
from . import stateful

PORT = 5432
_NAME = "platform"
_PASSWORD_PATH = "/etc/llm-platform/password"  # noqa: S105 - the path of a file


class LocalDatabaseArgs(Args):
    """How the database runs."""

    namespace: In[str]
    """Where it runs."""
    image: ImageRef
    """An image with Postgres and its entrypoint."""
    size: Quantity = "2Gi"
    """Its disk."""
    memory: Quantity = "512Mi"
    """Its memory."""
    storage_class: K8sName | None = None
    """The class of its disk; the cluster's default when left out."""
    client_namespace: In[str] = Field(default="llm-platform")
    """The namespace whose pods may connect."""


class LocalDatabase(pulumi.ComponentResource):
    """A Postgres server whose disk outlives its pod.

    Creates a GeneratedSecret with the password, a StatefulSet, a Service and a NetworkPolicy.
    """

    host: pulumi.Output[str]
    database: Database
    """How to connect, for grants."""

    def __init__(
        self, name: str, args: LocalDatabaseArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:LocalDatabase", name, None, opts)
        password = GeneratedSecret(
            f"{name}-password",
            GeneratedSecretArgs(namespace=args.namespace, name="postgres-password"),
            pulumi.ResourceOptions(parent=self),
        )
        service = stateful.deploy(
            name,
            # The server takes the password at its start.
            _stateful(args, workload.output_hash(*password.values.values())),
            parent=self,
            depends_on=[password],
        )
        self.host = stateful.host(service)
        self.database = Database(
            host=self.host,
            port=pulumi.Output.from_input(PORT),
            name=pulumi.Output.from_input(_NAME),
            user=pulumi.Output.from_input(_NAME),
            password=password.values["password"],
        )
        self.register_outputs({"host": self.host})


def _stateful(args: LocalDatabaseArgs, config_hash: In[str]) -> stateful.Stateful:
    container = _container(args)
    volumes: list[k8s.core.v1.VolumeArgsDict] = [
        {
            "name": "password",
            "secret": {"secret_name": "postgres-password", "default_mode": 0o440},
        },
        workload.TMP.volume(),
        {"name": "dshm", "empty_dir": {"medium": "Memory", "size_limit": "64Mi"}},
    ]
    return stateful.Stateful(
        name="postgres",
        namespace=args.namespace,
        containers=[container],
        volumes=volumes,
        ports=[PORT],
        size=args.size,
        storage_class=args.storage_class,
        config_hash=config_hash,
        clients=[([network.namespace_peer(args.client_namespace)], [PORT])],
    )


def _container(args: LocalDatabaseArgs) -> k8s.core.v1.ContainerArgsDict:
    ready = ["/usr/lib/postgresql/15/bin/pg_isready", "-h", "127.0.0.1", "-U", _NAME]
    return {
        "name": "postgres",
        "image": args.image,
        "command": ["/bin/sh", "/usr/local/bin/postgres-entrypoint"],
        "env": workload.env(
            POSTGRES_PASSWORD_FILE=f"{_PASSWORD_PATH}/password", PGDATA="/data/pgdata"
        ),
        "ports": [{"name": "postgres", "container_port": PORT}],
        "resources": workload.resources(cpu="50m", memory=args.memory),
        "security_context": workload.container_security(),
        "startup_probe": workload.exec_probe(ready, period=2, failures=60),
        "readiness_probe": workload.exec_probe(ready, period=5, failures=3),
        "liveness_probe": workload.exec_probe(ready, period=10, failures=6),
        "volume_mounts": [
            stateful.DATA.mount(),
            workload.TMP.mount(),
            {"name": "password", "mount_path": _PASSWORD_PATH, "read_only": True},
            {"name": "dshm", "mount_path": "/dev/shm"},  # noqa: S108 - its own volume
        ],
    }
