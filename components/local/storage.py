"""A bucket in the cluster: an S3-compatible server over a disk, with a second, read-only door."""

from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from ..domain.images import ImageRef
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..foundation import Bucket
from ..kube import network, workload
from ..kube.generated_secret import GeneratedSecret, GeneratedSecretArgs
from . import stateful

PORT = 7070
READER_PORT = 7071
REGION = "us-east-1"
_OWNER, _READER = "bucket-owner", "bucket-reader"


class LocalStorageArgs(Args):
    """How the bucket's server runs."""

    namespace: In[str]
    """Where it runs."""
    image: ImageRef
    """An image with ``/versitygw``."""
    bucket: K8sName = "weights"
    """The bucket's name; who first publishes to it creates it."""
    size: Quantity = "8Gi"
    """Its disk."""
    memory: Quantity = "256Mi"
    """The memory of each of the two doors."""
    storage_class: K8sName | None = None
    """The class of its disk; the cluster's default when left out."""
    client_namespace: In[str] = Field(default="llm-platform")
    """The namespace whose pods may write."""


class LocalStorage(pulumi.ComponentResource):
    """An S3-compatible bucket whose disk outlives its pod.

    Creates two GeneratedSecrets with credentials, a StatefulSet with two servers over the same
    disk, a Service and NetworkPolicies. Port 7070 takes the owner's credentials; port 7071 takes
    the reader's and refuses every write, so that a team's workers can load weights and change none.
    """

    endpoint: pulumi.Output[str]
    bucket: Bucket
    """With the owner's credentials."""
    bucket_reader: Bucket
    """With the reader's."""
    address: pulumi.Output[str]
    """The owner's endpoint for programs on a node."""
    reader_endpoint: pulumi.Output[str]
    credentials: Mapping[str, pulumi.Output[str]]
    """The owner's ``access_key`` and ``secret_key``."""
    reader_credentials: Mapping[str, pulumi.Output[str]]

    def __init__(
        self, name: str, args: LocalStorageArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:LocalStorage", name, None, opts)
        owner, reader = (
            GeneratedSecret(
                f"{name}-{who}",
                GeneratedSecretArgs(
                    namespace=args.namespace, name=who, keys=("access_key", "secret_key")
                ),
                pulumi.ResourceOptions(parent=self),
            )
            for who in (_OWNER, _READER)
        )
        service = stateful.deploy(
            name,
            # The servers take their credentials at their start.
            _stateful(args, workload.output_hash(*owner.values.values(), *reader.values.values())),
            parent=self,
            depends_on=[owner, reader],
        )
        host = stateful.host(service)
        self.endpoint = pulumi.Output.format("http://{0}:{1}", host, PORT)
        self.address = service.spec.apply(lambda spec: f"http://{spec.cluster_ip}:{PORT}")
        self.bucket = _bucket(args, owner, self.endpoint, read_only=False)
        self.reader_endpoint = pulumi.Output.format("http://{0}:{1}", host, READER_PORT)
        self.bucket_reader = _bucket(args, reader, self.reader_endpoint, read_only=True)
        self.credentials, self.reader_credentials = owner.values, reader.values
        self.register_outputs(
            {
                "endpoint": self.endpoint,
                "reader_endpoint": self.reader_endpoint,
                "address": self.address,
            }
        )


def _bucket(
    args: LocalStorageArgs,
    credentials: GeneratedSecret,
    endpoint: pulumi.Output[str],
    *,
    read_only: bool,
) -> Bucket:
    return Bucket(
        name=pulumi.Output.from_input(args.bucket),
        region=pulumi.Output.from_input(REGION),
        endpoint=endpoint,
        access_key=credentials.values["access_key"],
        secret_key=credentials.values["secret_key"],
        read_only=read_only,
    )


def _stateful(args: LocalStorageArgs, config_hash: In[str]) -> stateful.Stateful:
    return stateful.Stateful(
        name="objectstore",
        namespace=args.namespace,
        containers=[
            _door(args, name="owner", port=PORT, credentials=_OWNER),
            _door(args, name="reader", port=READER_PORT, credentials=_READER, read_only=True),
        ],
        volumes=[workload.TMP.volume()],
        ports=[PORT, READER_PORT],
        size=args.size,
        storage_class=args.storage_class,
        config_hash=config_hash,
        clients=[
            ([network.namespace_peer(args.client_namespace)], [PORT, READER_PORT]),
            ([network.team_peer()], [READER_PORT]),
        ],
    )


def _door(
    args: LocalStorageArgs, *, name: str, port: int, credentials: str, read_only: bool = False
) -> k8s.core.v1.ContainerArgsDict:
    flags = ["--port", f"0.0.0.0:{port}", "--region", REGION, "--health", "/healthz", "--quiet"]
    healthy = workload.http_probe("/healthz", port)
    return {
        "name": name,
        "image": args.image,
        "command": [
            "/versitygw",
            *flags,
            *(["--readonly"] if read_only else []),
            "posix",
            "/data",
        ],
        "env": [
            _credential("ROOT_ACCESS_KEY", credentials, "access_key"),
            _credential("ROOT_SECRET_KEY", credentials, "secret_key"),
        ],
        "ports": [{"name": name, "container_port": port}],
        "resources": workload.resources(cpu="50m", memory=args.memory),
        "security_context": workload.container_security(),
        "readiness_probe": healthy,
        "liveness_probe": workload.http_probe("/healthz", port, period=10, failures=6),
        "volume_mounts": [stateful.DATA.mount(), workload.TMP.mount()],
    }


def _credential(variable: str, secret: str, key: str) -> k8s.core.v1.EnvVarArgsDict:
    return {"name": variable, "value_from": {"secret_key_ref": {"name": secret, "key": key}}}
