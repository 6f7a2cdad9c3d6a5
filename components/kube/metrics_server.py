"""The metrics server: what pods and nodes use of processors and memory."""

from collections.abc import Mapping
from typing import Annotated, Any

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

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
    release,
)
from .addon_pod import AddonPod, https_probe
from .api_service import api_service, delegated_rights, metrics_readers, serve

GROUP = "metrics.k8s.io"
VERSION = "v1beta1"
PORT = 4443
CHART = Chart(
    repository="https://kubernetes-sigs.github.io/metrics-server",
    chart="metrics-server",
    version="3.13.0",
)
_NAME = "metrics-server"
_KUBELET_PORT = 10250
_WATCH: access.Rules = [
    {"api_groups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
    {"api_groups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]},
]


class MetricsServerArgs(Args):
    """How the metrics server runs."""

    source: Annotated[ChartSource | ImageSource | ExistingSource, BY_SOURCE] = CHART
    """Where it comes from; many clusters have one already."""
    namespace: K8sName = "llm-platform-monitoring"
    """Where it runs; it must exist."""
    kubelet_insecure_tls: bool = False
    """Whether kubelets are asked though nobody has signed their certificates."""
    resolution_seconds: int = Field(default=15, ge=10, le=300)
    """How often every node is asked."""
    memory: Quantity = "128Mi"
    """Its memory, when it runs from an image."""


class MetricsServer(pulumi.ComponentResource):
    """Serves the resource metrics API, which processor targets and ``kubectl top`` read.

    Creates, from the chart or from an image, the metrics server; from an image that is a
    Deployment, a Service, the APIService of the resource metrics API, a ServiceAccount with its
    rights, and NetworkPolicies. With ``existing`` it creates nothing.
    """

    ready: list[pulumi.Resource]
    """What must stand before a processor target is read."""

    def __init__(
        self, name: str, args: MetricsServerArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:MetricsServer", name, None, opts)
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
        rights = [
            access.service_account(self._name, _NAME, args.namespace, self._child),
            access.cluster_rules(self._name, _NAME, args.namespace, _WATCH, self._child),
            *delegated_rights(self._name, _NAME, args.namespace, self._child),
            *metrics_readers(self._name, GROUP, self._child),
        ]
        pod = _pod(image, args)
        service = serve(self._name, pod, args.namespace, [*rights, *paths], self)
        return [
            api_service(
                self._name,
                group=GROUP,
                version=VERSION,
                service=_NAME,
                namespace=args.namespace,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[service]),
            )
        ]

    def _paths(self) -> list[pulumi.Resource]:
        pods: k8s.meta.v1.LabelSelectorArgsDict = {
            "match_labels": {"app.kubernetes.io/name": _NAME}
        }
        return [
            network.allow_ingress(
                f"{self._name}-from-api-server",
                name="metrics-server-from-api-server",
                namespace=self._args.namespace,
                pods=pods,
                peers=[],
                ports=[PORT],
                opts=self._child,
            ),
            network.allow_egress(
                f"{self._name}-to-nodes",
                name="metrics-server-to-nodes",
                namespace=self._args.namespace,
                pods=pods,
                rules=[([], [443, 6443, _KUBELET_PORT])],
                opts=self._child,
            ),
        ]


def chart_values(args: MetricsServerArgs) -> Mapping[str, Any]:
    """Return the chart's values."""
    return {
        "containerPort": PORT,
        "args": ["--kubelet-insecure-tls"] if args.kubelet_insecure_tls else [],
        "replicas": 2,
    }


def _pod(image: Image, args: MetricsServerArgs) -> AddonPod:
    arguments = [
        f"--secure-port={PORT}",
        "--cert-dir=/tmp/serving-certificate",
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
        "--kubelet-use-node-status-port",
        f"--metric-resolution={args.resolution_seconds}s",
    ]
    if args.kubelet_insecure_tls:
        arguments.append("--kubelet-insecure-tls")
    return AddonPod(
        name=_NAME,
        image=image,
        args=arguments,
        port=PORT,
        memory=args.memory,
        config_hash=workload.content_hash(arguments),
        # It is ready once it has heard of the nodes twice.
        ready=https_probe("/readyz", PORT, period=3),
        alive=https_probe("/livez", PORT, period=10),
        surge=True,
    )
