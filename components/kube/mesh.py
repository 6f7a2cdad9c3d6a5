"""The mesh: Istio's proxies beside every worker and gateway, for who wants them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field, Tag

from ..contracts import In
from ..domain import labels
from ..domain.args import Args
from ..domain.names import K8sName
from . import network, workload
from .addon import BY_SOURCE, Chart, Existing, merged, release
from .namespace import Namespace, NamespaceArgs

VERSION = "1.30.4"
_COMPONENT = "mesh"
_CONTROL_PORTS = [15010, 15012, 15014, 15017]
_PROXY_TO_CONTROL = 15012


class IstioCharts(Args):
    """Istio's own charts: its definitions, its node agent and its control plane, one version."""

    source: Literal["charts"] = "charts"
    """Says that it is installed from charts."""
    repository: str = Field(
        default="https://istio-release.storage.googleapis.com/charts", pattern=r"^(https|oci)://"
    )
    """Where the charts are."""
    version: str = Field(default=VERSION, pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")
    """Exactly this version."""
    values: Mapping[str, Any] = Field(default_factory=dict)
    """Values over those of the platform, for the control plane; plain, and never secret."""


class ExistingIstio(Existing):
    """An Istio with sidecars that the cluster has already.

    Its ``meshConfig.defaultHttpRetryPolicy.attempts`` must be 0: a proxy that repeats a request
    which a worker has begun runs the inference twice.
    """

    revision: str = Field(default="", pattern=r"^[a-z0-9-]*$")
    """Its revision or tag, where it has one."""


class MeshArgs(Args):
    """Where the mesh comes from, and what belongs to it."""

    source: Annotated[
        Annotated[IstioCharts, Tag("charts")] | Annotated[ExistingIstio, Tag("existing")], BY_SOURCE
    ] = IstioCharts()
    """Istio's charts, or an Istio that is there already."""
    namespace: K8sName = "istio-system"
    """Where the control plane runs."""
    namespaces: tuple[K8sName, ...] = Field(min_length=1)
    """Namespaces whose pods get a proxy: the platform's and the teams'. They must exist; pods that
    run already get theirs when they are next made."""


class Mesh(pulumi.ComponentResource):
    """Puts namespaces into an Istio mesh, and keeps it from repeating and cutting requests.

    Creates, unless the cluster has one, a Namespace with the control plane and the node agent from
    Istio's charts; in each namespace the label that gives pods a proxy, a NetworkPolicy to the
    control plane, and a DestinationRule that sends requests to the worker with the fewest open.
    Pods of Jobs get no proxy.
    """

    ready: list[pulumi.Resource]
    """What pods must wait for that are to have a proxy."""

    def __init__(
        self, name: str, args: MeshArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Mesh", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        source = args.source
        installed = self._install(source) if isinstance(source, IstioCharts) else []
        revision = source.revision if isinstance(source, ExistingIstio) else ""
        self.ready = [
            resource
            for namespace in args.namespaces
            for resource in self._join(namespace, injection_labels(revision), installed)
        ]
        self.register_outputs({})

    def _install(self, source: IstioCharts) -> list[pulumi.Resource]:
        where = self._args.namespace
        scope = Namespace(f"{self._name}-scope", NamespaceArgs(name=where), self._child)
        paths = self._control_paths()
        base = self._chart("base", source, {}, where, [scope.namespace, *paths])
        # The agent sets up pods' networks in place of a privileged container in each of them. It
        # works on the node, which no restricted namespace allows.
        agent = self._chart("cni", source, {}, "kube-system", [base])
        control = self._chart("istiod", source, istiod_values(source.values), where, [agent])
        return [base, agent, control]

    def _chart(
        self,
        chart: str,
        source: IstioCharts,
        values: Mapping[str, Any],
        namespace: K8sName,
        needs: list[pulumi.Resource],
    ) -> k8s.helm.v3.Release:
        return release(
            f"{self._name}-{chart}",
            Chart(repository=source.repository, chart=chart, version=source.version),
            values,
            namespace=namespace,
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
        )

    def _control_paths(self) -> list[pulumi.Resource]:
        return [
            network.allow_ingress(
                f"{self._name}-from-proxies",
                name="from-proxies",
                namespace=self._args.namespace,
                pods={},
                peers=[],
                ports=_CONTROL_PORTS,
                opts=self._child,
            ),
            network.allow_egress(
                f"{self._name}-to-api-server",
                name="to-api-server",
                namespace=self._args.namespace,
                pods={},
                rules=[([], [443, 6443])],
                opts=self._child,
            ),
        ]

    def _join(
        self, namespace: K8sName, inject: Mapping[str, str], installed: list[pulumi.Resource]
    ) -> list[pulumi.Resource]:
        opts = pulumi.ResourceOptions(parent=self, depends_on=installed)
        control: In[str] = self._args.namespace
        return [
            network.allow_egress(
                f"{self._name}-{namespace}-to-control-plane",
                name="mesh-to-control-plane",
                namespace=namespace,
                pods={},
                rules=[([network.namespace_peer(control)], [_PROXY_TO_CONTROL])],
                opts=opts,
            ),
            k8s.apiextensions.CustomResource(
                f"{self._name}-{namespace}-least-requests",
                api_version="networking.istio.io/v1",
                kind="DestinationRule",
                metadata=workload.metadata("least-requests", namespace, component=_COMPONENT),
                spec={
                    "host": f"*.{namespace}.svc.cluster.local",
                    "trafficPolicy": {"loadBalancer": {"simple": "LEAST_REQUEST"}},
                },
                opts=opts,
            ),
            k8s.core.v1.NamespacePatch(
                f"{self._name}-{namespace}-label",
                metadata={
                    "name": namespace,
                    "labels": {labels.PART_OF: labels.PREFIX, **inject},
                },
                opts=opts,
            ),
        ]


def injection_labels(revision: str) -> dict[str, str]:
    """Return the label by which Istio finds a namespace."""
    return {"istio.io/rev": revision} if revision else {"istio-injection": "enabled"}


def istiod_values(over: Mapping[str, Any]) -> dict[str, Any]:
    """Return the control plane's values."""
    own: dict[str, Any] = {
        "pilot": {"cni": {"enabled": True}, "env": {"ENABLE_NATIVE_SIDECARS": "true"}},
        "meshConfig": {
            # The gateway knows which requests may be offered again; a proxy doesn't.
            "defaultHttpRetryPolicy": {"attempts": 0},
            # Prompts are in paths and headers of nobody's log.
            "accessLogFile": "",
        },
        "global": {"proxy": {"seccompProfile": {"type": "RuntimeDefault"}}},
        "sidecarInjectorWebhook": {
            "neverInjectSelector": [
                {
                    "matchExpressions": [
                        {"key": "batch.kubernetes.io/job-name", "operator": "Exists"}
                    ]
                }
            ]
        },
    }
    return merged(own, over)
