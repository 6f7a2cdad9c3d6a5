"""Prometheus: what endpoints scale on is measured and reckoned here."""

from typing import Annotated, Self

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field, Tag, model_validator

from ..contracts import In
from ..domain.args import Args
from ..domain.metrics import SCRAPE_SECONDS, windows_for
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..domain.recording import MeshKind, rule_groups
from . import access, network, scrape, workload
from .addon import BY_SOURCE, Existing, Image, ImageSource, as_yaml
from .addon_pod import COMPONENT, AddonPod, deployment_spec, service_spec

PORT = 9090
_NAME = "prometheus"
_CONFIG_PATH = "/etc/prometheus"
_RULES_FILE = "rules.yml"
_DATA = "/data"
_LOOKBACK_SCRAPES = 6
_WATCH: access.Rules = [
    {"api_groups": [""], "resources": ["pods", "namespaces"], "verbs": ["get", "list", "watch"]}
]


class ExistingPrometheus(Existing):
    """A Prometheus, or what speaks its API, that asks the platform's pods and has its rules."""

    url: In[str]
    """Where it answers queries."""


class PrometheusArgs(Args):
    """How Prometheus runs, and how often it looks."""

    source: Annotated[ImageSource | Annotated[ExistingPrometheus, Tag("existing")], BY_SOURCE]
    """An image with ``prometheus``, or one that is there already."""
    namespace: In[str]
    """Where it runs."""
    platform_namespace: K8sName = "llm-platform"
    """Where the gateway and the cacher run."""
    client_namespaces: tuple[In[str], ...] = ("keda", "llm-platform")
    """Whose pods may ask it, besides those of its own namespace."""
    mesh: MeshKind = MeshKind.NONE
    """Where concurrency is measured: at the forwarders, or at the mesh's proxies."""
    scrape_interval_seconds: int = Field(default=SCRAPE_SECONDS, ge=1, le=300)
    """How often every pod is asked."""
    windows: tuple[int, ...] | None = Field(default=None, min_length=1)
    """Seconds over which concurrency is averaged; each holds at least four scrapes. When left out,
    those of 20, 60, 120 and 300 that do."""
    retention: str = Field(default="2h", pattern=r"^[1-9][0-9]*[hdw]$")
    """How long samples are kept. Scaling looks back minutes."""
    volume: Quantity | None = None
    """A disk that outlives the pod; samples end with the pod when left out."""
    storage_class: K8sName | None = None
    """The class of the disk; the cluster's default when left out."""
    memory: Quantity = "512Mi"
    """Its memory."""

    @model_validator(mode="after")
    def _windows_hold_scrapes(self) -> Self:
        windows_for(self.scrape_interval_seconds, self.windows)
        return self


class Prometheus(pulumi.ComponentResource):
    """Asks gateways, cacher and workers, and reckons each endpoint's concurrency, whole or not.

    Creates a ConfigMap with what to ask and the recording rules, a Deployment of one, a Service, a
    ServiceAccount that may watch pods, NetworkPolicies, and a PersistentVolumeClaim where a volume
    is wanted. With ``existing`` it creates nothing.
    """

    url: pulumi.Output[str]
    """Where it answers queries, for programs in the cluster."""

    def __init__(
        self, name: str, args: PrometheusArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Prometheus", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        if isinstance(args.source, Image):
            self.url = self._run(args.source)
        else:
            self.url = pulumi.Output.from_input(args.source.url)
        self.register_outputs({"url": self.url})

    def _run(self, image: Image) -> pulumi.Output[str]:
        args = self._args
        files = config_files(args)
        config = k8s.core.v1.ConfigMap(
            f"{self._name}-config",
            metadata=workload.metadata("prometheus-config", args.namespace, component=COMPONENT),
            data=files,
            opts=self._child,
        )
        account = access.service_account(self._name, _NAME, args.namespace, self._child)
        rights = access.cluster_rules(self._name, _NAME, args.namespace, _WATCH, self._child)
        pod = _pod(image, args, workload.content_hash(files))
        needs: list[pulumi.Resource] = [config, account, rights, *self._paths(pod), *self._disk()]
        k8s.apps.v1.Deployment(
            f"{self._name}-deployment",
            metadata=workload.metadata(_NAME, args.namespace, component=COMPONENT),
            spec=deployment_spec(pod),
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
        )
        service = k8s.core.v1.Service(
            f"{self._name}-service",
            metadata={
                **workload.metadata(_NAME, args.namespace, component=COMPONENT),
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec=service_spec(pod.selector, port=PORT, target=PORT),
            opts=self._child,
        )
        return service.metadata.apply(lambda it: f"http://{it.name}.{it.namespace}.svc:{PORT}")

    def _disk(self) -> list[pulumi.Resource]:
        if self._args.volume is None:
            return []
        spec: k8s.core.v1.PersistentVolumeClaimSpecArgsDict = {
            "access_modes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": self._args.volume}},
        }
        if self._args.storage_class:
            spec["storage_class_name"] = self._args.storage_class
        claim = k8s.core.v1.PersistentVolumeClaim(
            f"{self._name}-disk",
            metadata={
                **workload.metadata(_NAME, self._args.namespace, component=COMPONENT),
                # It is bound when the pod is, which waits for it here.
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec=spec,
            opts=self._child,
        )
        return [claim]

    def _paths(self, pod: AddonPod) -> list[pulumi.Resource]:
        args = self._args
        clients = [network.namespace_peer(args.namespace)]
        clients += [network.namespace_peer(name) for name in args.client_namespaces]
        worker_ports = [scrape.WORKER_PORT]
        if args.mesh is MeshKind.ISTIO:
            worker_ports.append(scrape.PROXY_PORT)
        return [
            network.allow_ingress(
                f"{self._name}-from-who-asks",
                name="prometheus-from-who-asks",
                namespace=args.namespace,
                pods={"match_labels": pod.selector},
                peers=clients,
                ports=[PORT],
                opts=self._child,
            ),
            network.allow_egress(
                f"{self._name}-to-what-it-asks",
                name="prometheus-to-what-it-asks",
                namespace=args.namespace,
                pods={"match_labels": pod.selector},
                rules=[
                    (
                        [network.namespace_peer(args.platform_namespace)],
                        list(scrape.PLATFORM_PORTS),
                    ),
                    ([network.team_peer()], worker_ports),
                    ([], [443, 6443]),
                ],
                opts=self._child,
            ),
        ]


def config_files(args: PrometheusArgs) -> dict[str, str]:
    """Return Prometheus' configuration, by file: what it asks, and what it reckons."""
    config = scrape.config(
        platform_namespace=args.platform_namespace,
        mesh=args.mesh,
        scrape_seconds=args.scrape_interval_seconds,
        rules_path=f"{_CONFIG_PATH}/{_RULES_FILE}",
    )
    rules = rule_groups(
        mesh=args.mesh,
        scrape_seconds=args.scrape_interval_seconds,
        windows=windows_for(args.scrape_interval_seconds, args.windows),
    )
    return {
        "prometheus.yml": as_yaml(config),
        _RULES_FILE: as_yaml(rules),
    }


def _pod(image: Image, args: PrometheusArgs, config_hash: str) -> AddonPod:
    lookback = _LOOKBACK_SCRAPES * args.scrape_interval_seconds
    data: k8s.core.v1.VolumeArgsDict = {"name": "data", "empty_dir": {"size_limit": "2Gi"}}
    if args.volume is not None:
        data = {"name": "data", "persistent_volume_claim": {"claim_name": _NAME}}
    return AddonPod(
        name=_NAME,
        image=image,
        args=[
            f"--config.file={_CONFIG_PATH}/prometheus.yml",
            f"--storage.tsdb.path={_DATA}",
            f"--storage.tsdb.retention.time={args.retention}",
            f"--web.listen-address=:{PORT}",
            # A sample from before a restart says nothing of now.
            f"--query.lookback-delta={lookback}s",
        ],
        port=PORT,
        memory=args.memory,
        config_hash=config_hash,
        ready=workload.http_probe("/-/ready", PORT, period=3, failures=10),
        alive=workload.http_probe("/-/healthy", PORT, period=10, failures=6, timeout=5),
        volumes=[data, {"name": "config", "config_map": {"name": "prometheus-config"}}],
        mounts=[
            {"name": "data", "mount_path": _DATA},
            {"name": "config", "mount_path": _CONFIG_PATH, "read_only": True},
        ],
        grace_seconds=60,
    )
