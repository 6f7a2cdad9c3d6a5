"""The cluster's add-ons: what measures endpoints, and what scales them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from components import Namespace, NamespaceArgs
from components.domain.recording import MeshKind
from components.foundation import Foundation
from components.kube import keda, metrics_server, prometheus_adapter
from components.kube.keda import Keda, KedaArgs
from components.kube.mesh import Mesh, MeshArgs
from components.kube.metrics_server import MetricsServer, MetricsServerArgs
from components.kube.prometheus import Prometheus, PrometheusArgs
from components.kube.prometheus_adapter import PrometheusAdapter, PrometheusAdapterArgs

from .addon_settings import source_of
from .cloud import Cloud
from .settings import PlatformSettings

MONITORING = "llm-platform-monitoring"
PROMETHEUS_URL = f"http://prometheus.{MONITORING}.svc:9090"


@dataclass(frozen=True, kw_only=True)
class Addons:
    """What the add-ons give."""

    prometheus_url: pulumi.Output[str]
    """Where Prometheus answers queries."""
    keda: Sequence[pulumi.Resource]
    """What must stand before a ScaledObject is made, and go after the last one."""
    autoscaling: Sequence[pulumi.Resource]
    """What must stand before any autoscaler finds what it asks for; KEDA is part of it."""


def install(
    environment: str,
    settings: PlatformSettings,
    cloud: Cloud,
    foundation: Foundation,
    opts: pulumi.ResourceOptions,
) -> Addons:
    """Create the add-ons, those that the cluster hasn't already.

    Args:
        environment: What the names of the resources begin with.
        settings: Where they come from.
        cloud: Whose queues and metrics KEDA may ask, where it has an identity there.
        foundation: Whose Redis KEDA asks.
        opts: The access to the cluster.
    """
    scope = Namespace(f"{environment}-monitoring", NamespaceArgs(name=MONITORING), opts)
    after_scope = pulumi.ResourceOptions.merge(
        opts, pulumi.ResourceOptions(depends_on=[scope.namespace])
    )
    operator = Keda(
        f"{environment}-keda",
        KedaArgs(
            source=settings.addons.keda_source(),
            redis_password=foundation.redis_scaler.password,
            paths=foundation.paths,
            pod_identity=cloud.pod_identity,
            monitoring_namespace=scope.name,
        ),
        opts,
    )
    prometheus = Prometheus(
        f"{environment}-prometheus",
        PrometheusArgs(
            source=settings.addons.prometheus_source(),
            namespace=scope.name,
            client_namespaces=(keda.NAMESPACE,),
            mesh=MeshKind(settings.mesh),
        ),
        opts,
    )
    processors = MetricsServer(
        f"{environment}-metrics-server",
        MetricsServerArgs(
            source=source_of(
                settings.addons.metrics_server, metrics_server.CHART, "/metrics-server"
            ),
            namespace=MONITORING,
            kubelet_insecure_tls=settings.addons.kubelet_insecure_tls,
        ),
        after_scope,
    )
    return Addons(
        prometheus_url=prometheus.url,
        keda=operator.ready,
        autoscaling=[
            *operator.ready,
            *processors.ready,
            *_adapter(environment, settings, after_scope),
        ],
    )


def _adapter(
    environment: str, settings: PlatformSettings, opts: pulumi.ResourceOptions
) -> Sequence[pulumi.Resource]:
    """Create the adapter, unless KEDA reads what it would hand on."""
    if settings.metrics == "keda":
        return []
    adapter = PrometheusAdapter(
        f"{environment}-prometheus-adapter",
        PrometheusAdapterArgs(
            source=source_of(
                settings.addons.prometheus_adapter, prometheus_adapter.CHART, "/adapter"
            ),
            namespace=MONITORING,
            prometheus_url=settings.addons.prometheus_url(PROMETHEUS_URL),
        ),
        opts,
    )
    return adapter.ready


def join_mesh(
    environment: str,
    settings: PlatformSettings,
    scopes: Mapping[str, k8s.core.v1.Namespace],
    opts: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    """Put namespaces into the mesh, where the settings want one.

    Args:
        environment: What the names of the resources begin with.
        settings: Whether, and which.
        scopes: The namespaces by their names.
        opts: The access to the cluster.

    Returns:
        What pods must wait for that are to have a proxy.
    """
    if settings.mesh == "none":
        return []
    mesh = Mesh(
        f"{environment}-mesh",
        MeshArgs(source=settings.addons.istio_source(), namespaces=tuple(scopes)),
        pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(depends_on=list(scopes.values()))
        ),
    )
    return mesh.ready
