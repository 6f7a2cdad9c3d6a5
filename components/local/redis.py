"""Redis in the cluster."""

from dataclasses import replace

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

from ..contracts import In
from ..domain import keys
from ..domain.args import Args
from ..domain.images import ImageRef
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..foundation import Redis
from ..kube import network, workload
from ..kube.generated_secret import GeneratedSecret, GeneratedSecretArgs
from . import stateful

PORT = 6379
_CONFIG_PATH = "/etc/redis"
_CONFIG = f"""\
port 6379
dir /data
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
requirepass {{0}}
user {keys.SCALER_USER} on >{{1}} {keys.SCALER_RIGHTS}
"""


class LocalRedisArgs(Args):
    """How Redis runs."""

    namespace: In[str]
    """Where it runs."""
    image: ImageRef
    """An image with ``redis-server``."""
    size: Quantity = "1Gi"
    """Its disk."""
    memory: Quantity = "128Mi"
    """Its memory."""
    storage_class: K8sName | None = None
    """The class of its disk; the cluster's default when left out."""
    client_namespace: In[str] = Field(default="llm-platform")
    """The namespace whose pods may connect; those of teams may too, as users of their own."""
    scaler_namespace: In[str] = Field(default="keda")
    """The namespace whose pods may connect as the autoscaler."""


class LocalRedis(pulumi.ComponentResource):
    """A Redis server that writes everything to a disk which outlives its pod.

    Creates two GeneratedSecrets with passwords, a Secret with the configuration, a StatefulSet, a
    Service and NetworkPolicies. The second password is of the user ``scaler``, who may ask how long
    activation lists are and nothing else; the cacher makes a user for each team.
    """

    host: pulumi.Output[str]
    redis: Redis
    """How to connect, for grants."""
    redis_scaler: Redis
    """How the autoscaler connects."""

    def __init__(
        self, name: str, args: LocalRedisArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:LocalRedis", name, None, opts)
        password = GeneratedSecret(
            f"{name}-password",
            GeneratedSecretArgs(namespace=args.namespace, name="redis-password"),
            pulumi.ResourceOptions(parent=self),
        )
        scaler_password = GeneratedSecret(
            f"{name}-scaler-password",
            GeneratedSecretArgs(namespace=args.namespace, name="redis-scaler-password"),
            pulumi.ResourceOptions(parent=self),
        )
        text = pulumi.Output.format(
            _CONFIG, password.values["password"], scaler_password.values["password"]
        )
        config = k8s.core.v1.Secret(
            f"{name}-config",
            metadata=workload.metadata("redis-config", args.namespace, component="data"),
            string_data={"redis.conf": text},
            opts=pulumi.ResourceOptions(
                parent=self, additional_secret_outputs=["data", "stringData"]
            ),
        )
        service = stateful.deploy(
            name, _stateful(args, workload.output_hash(text)), parent=self, depends_on=[config]
        )
        self.host = stateful.host(service)
        self.redis = Redis(
            host=self.host,
            port=pulumi.Output.from_input(PORT),
            password=password.values["password"],
        )
        self.redis_scaler = replace(
            self.redis, user=keys.SCALER_USER, password=scaler_password.values["password"]
        )
        self.register_outputs({"host": self.host})


def _stateful(args: LocalRedisArgs, config_hash: In[str]) -> stateful.Stateful:
    volumes: list[k8s.core.v1.VolumeArgsDict] = [
        {"name": "config", "secret": {"secret_name": "redis-config", "default_mode": 0o440}},
        workload.TMP.volume(),
    ]
    return stateful.Stateful(
        name="redis",
        namespace=args.namespace,
        containers=[_container(args)],
        volumes=volumes,
        ports=[PORT],
        size=args.size,
        storage_class=args.storage_class,
        config_hash=config_hash,
        clients=[
            ([network.namespace_peer(args.client_namespace)], [PORT]),
            ([network.namespace_peer(args.scaler_namespace), network.team_peer()], [PORT]),
        ],
    )


def _container(args: LocalRedisArgs) -> k8s.core.v1.ContainerArgsDict:
    # Redis has no health page; whether it takes connections needs no password.
    connects: k8s.core.v1.ProbeArgsDict = {
        "tcp_socket": {"port": PORT},
        "period_seconds": 5,
        "failure_threshold": 6,
    }
    return {
        "name": "redis",
        "image": args.image,
        "command": ["redis-server", f"{_CONFIG_PATH}/redis.conf"],
        "ports": [{"name": "redis", "container_port": PORT}],
        "resources": workload.resources(cpu="50m", memory=args.memory),
        "security_context": workload.container_security(),
        "readiness_probe": connects,
        "liveness_probe": connects,
        "volume_mounts": [
            stateful.DATA.mount(),
            workload.TMP.mount(),
            {"name": "config", "mount_path": _CONFIG_PATH, "read_only": True},
        ],
    }
