"""The Prometheus adapter: hands an endpoint's concurrency to Kubernetes' own autoscaler."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

from ..contracts import In
from ..domain import metrics
from ..domain.args import Args
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from . import access, network, workload
from .addon import (
    BY_SOURCE,
    Chart,
    ChartSource,
    Existing,
    ExistingSource,
    Image,
    ImageSource,
    as_yaml,
    release,
)
from .addon_pod import COMPONENT, AddonPod, https_probe
from .api_service import api_service, delegated_rights, metrics_readers, serve

GROUP = "custom.metrics.k8s.io"
VERSIONS = ("v1beta1", "v1beta2")
PORT = 6443
CHART = Chart(
    repository="https://prometheus-community.github.io/helm-charts",
    chart="prometheus-adapter",
    version="4.11.0",
)
_NAME = "prometheus-adapter"
_CONFIG_PATH = "/etc/adapter"
_WATCH: access.Rules = [
    {"api_groups": [""], "resources": ["namespaces", "services"], "verbs": ["get", "list", "watch"]}
]


class PrometheusAdapterArgs(Args):
    """How the adapter runs, and whom it asks."""

    source: Annotated[ChartSource | ImageSource | ExistingSource, BY_SOURCE] = CHART
    """Where it comes from. One that exists already must have the rules of ``adapter_rules``."""
    namespace: K8sName = "llm-platform-monitoring"
    """Where it runs; it must exist."""
    prometheus_url: str = Field(
        default="http://prometheus.llm-platform-monitoring.svc:9090", pattern=r"^https?://[^/?#]+$"
    )
    """Where Prometheus answers queries."""
    relist_seconds: int = Field(default=15, ge=5, le=300)
    """How often it looks for metrics that are new."""
    memory: Quantity = "128Mi"
    """Its memory, when it runs from an image."""


class PrometheusAdapter(pulumi.ComponentResource):
    """Serves the custom metrics API: concurrency by endpoint, and that of the gateway.

    Creates, from the chart or from an image, the adapter with the platform's rules and no others;
    from an image that is a ConfigMap, a Deployment, a Service, the two APIServices of the custom
    metrics API, a ServiceAccount with its rights, and NetworkPolicies. With ``existing`` it creates
    nothing.
    """

    ready: list[pulumi.Resource]
    """What must stand before an autoscaler finds its metric."""

    def __init__(
        self, name: str, args: PrometheusAdapterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:PrometheusAdapter", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.ready = [] if isinstance(args.source, Existing) else self._install(args.source)
        self.register_outputs({})

    def _install(self, source: Chart | Image) -> list[pulumi.Resource]:
        paths = self._paths()
        if isinstance(source, Image):
            return self._run(source, paths)
        chart = release(
            self._name,
            source,
            chart_values(self._args),
            namespace=self._args.namespace,
            opts=pulumi.ResourceOptions(parent=self, depends_on=paths),
        )
        return [chart]

    def _run(self, image: Image, paths: list[pulumi.Resource]) -> list[pulumi.Resource]:
        args = self._args
        text = as_yaml(adapter_rules())
        config = k8s.core.v1.ConfigMap(
            f"{self._name}-config",
            metadata=workload.metadata(
                "prometheus-adapter-config", args.namespace, component=COMPONENT
            ),
            data={"config.yaml": text},
            opts=self._child,
        )
        rights = [
            access.service_account(self._name, _NAME, args.namespace, self._child),
            access.cluster_rules(self._name, _NAME, args.namespace, _WATCH, self._child),
            *delegated_rights(self._name, _NAME, args.namespace, self._child),
            *metrics_readers(self._name, GROUP, self._child),
        ]
        pod = _pod(image, args, workload.content_hash(text))
        service = serve(self._name, pod, args.namespace, [config, *rights, *paths], self)
        return [
            api_service(
                self._name,
                group=GROUP,
                version=version,
                service=_NAME,
                namespace=args.namespace,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[service]),
            )
            for version in VERSIONS
        ]

    def _paths(self) -> list[pulumi.Resource]:
        pods: k8s.meta.v1.LabelSelectorArgsDict = {
            "match_labels": {"app.kubernetes.io/name": _NAME}
        }
        where: In[str] = self._args.namespace
        address = urlsplit(self._args.prometheus_url)
        port = address.port or (443 if address.scheme == "https" else 80)
        return [
            network.allow_ingress(
                f"{self._name}-from-api-server",
                name="prometheus-adapter-from-api-server",
                namespace=where,
                pods=pods,
                peers=[],
                ports=[PORT],
                opts=self._child,
            ),
            network.allow_egress(
                f"{self._name}-to-what-it-asks",
                name="prometheus-adapter-to-what-it-asks",
                namespace=where,
                pods=pods,
                rules=[([], sorted({port, 443, 6443}))],
                opts=self._child,
            ),
        ]


def adapter_rules() -> dict[str, Any]:
    """Return the adapter's configuration: custom metrics only, the platform's and no others.

    External metrics are KEDA's, and those of pods and nodes the metrics server's.
    """
    return {
        "rules": [
            _rule(metrics.CONCURRENCY, metrics.ENDPOINT_LABEL, metrics.CUSTOM_METRIC),
            _rule(
                metrics.GATEWAY_CONCURRENCY, metrics.SERVICE_LABEL, metrics.GATEWAY_CUSTOM_METRIC
            ),
        ]
    }


def _rule(series: str, label: str, name: str) -> dict[str, Any]:
    return {
        "seriesQuery": f'{{__name__="{series}"}}',
        "resources": {
            "overrides": {
                metrics.NAMESPACE_LABEL: {"resource": "namespace"},
                label: {"resource": "service"},
            }
        },
        "name": {"matches": ".*", "as": name},
        # One series answers; were it several (a window was not chosen), never their sum.
        "metricsQuery": "max(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
    }


def chart_values(args: PrometheusAdapterArgs) -> Mapping[str, Any]:
    """Return the chart's values: the same rules as from an image."""
    address = urlsplit(args.prometheus_url)
    default_port = 443 if address.scheme == "https" else 80
    return {
        "prometheus": {
            "url": f"{address.scheme}://{address.hostname}",
            "port": address.port or default_port,
        },
        "listenPort": PORT,
        "metricsRelistInterval": f"{args.relist_seconds}s",
        "replicas": 2,
        "rules": {
            "default": False,
            "custom": adapter_rules()["rules"],
            "external": [],
            "resource": {},
        },
    }


def _pod(image: Image, args: PrometheusAdapterArgs, config_hash: str) -> AddonPod:
    return AddonPod(
        name=_NAME,
        image=image,
        args=[
            f"--config={_CONFIG_PATH}/config.yaml",
            f"--prometheus-url={args.prometheus_url}",
            f"--secure-port={PORT}",
            "--cert-dir=/tmp/serving-certificate",
            f"--metrics-relist-interval={args.relist_seconds}s",
            # A metric that pauses stays listed, so that its reader hears "no value" and holds.
            f"--metrics-max-age={max(600, args.relist_seconds)}s",
        ],
        port=PORT,
        memory=args.memory,
        config_hash=config_hash,
        ready=https_probe("/readyz", PORT, period=3),
        alive=https_probe("/livez", PORT, period=10),
        volumes=[{"name": "config", "config_map": {"name": "prometheus-adapter-config"}}],
        mounts=[{"name": "config", "mount_path": _CONFIG_PATH, "read_only": True}],
        surge=True,
    )
