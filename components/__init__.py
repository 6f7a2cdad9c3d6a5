"""A self-hosted LLM serving platform as Pulumi components.

The public names are imported when they are first used, so that the pure part (``domain``) can be
imported where Pulumi isn't installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contracts import Contract, FoundationContract, In, PlatformContract, TeamContract
    from .domain.accelerators import Accelerator
    from .domain.hooks import Callback, Hooks, Logging, Validation
    from .domain.recording import MeshKind
    from .domain.registration import Access, EndpointType
    from .domain.scaling import Scaling
    from .domain.scaling_source import CloudWatch, ManagedPrometheus
    from .domain.weights import Weights
    from .foundation import Foundation, Grant
    from .kube.addon import Chart, Existing, Image
    from .kube.generated_secret import GeneratedSecret, GeneratedSecretArgs
    from .kube.keda import Keda, KedaArgs
    from .kube.keda_manifests import KedaManifests
    from .kube.mesh import ExistingIstio, IstioCharts, Mesh, MeshArgs
    from .kube.metrics_server import MetricsServer, MetricsServerArgs
    from .kube.namespace import Namespace, NamespaceArgs
    from .kube.prometheus import ExistingPrometheus, Prometheus, PrometheusArgs
    from .kube.prometheus_adapter import PrometheusAdapter, PrometheusAdapterArgs
    from .kube.team import Team, TeamArgs
    from .local.cluster import load_kubeconfig
    from .local.contracts import LocalFoundationContract, LocalTeamContract
    from .local.database import LocalDatabase, LocalDatabaseArgs
    from .local.foundation import DataImages, LocalFoundation, LocalFoundationArgs, VolumeSizes
    from .local.platform import LocalPlatform
    from .local.redis import LocalRedis, LocalRedisArgs
    from .local.storage import LocalStorage, LocalStorageArgs
    from .serving.cacher import Cacher, CacherArgs
    from .serving.endpoint import ModelEndpoint, ModelEndpointArgs, Resources, Tasks
    from .serving.gateway import Gateway, GatewayArgs
    from .serving.runtimes import LlamaCpp, RunnableImage
    from .serving.vllm import Vllm

_HOMES = {
    "Accelerator": ".domain.accelerators",
    "Access": ".domain.registration",
    "Cacher": ".serving.cacher",
    "CacherArgs": ".serving.cacher",
    "Callback": ".domain.hooks",
    "Chart": ".kube.addon",
    "CloudWatch": ".domain.scaling_source",
    "Contract": ".contracts",
    "DataImages": ".local.foundation",
    "EndpointType": ".domain.registration",
    "Existing": ".kube.addon",
    "ExistingIstio": ".kube.mesh",
    "ExistingPrometheus": ".kube.prometheus",
    "Foundation": ".foundation",
    "FoundationContract": ".contracts",
    "Gateway": ".serving.gateway",
    "GatewayArgs": ".serving.gateway",
    "GeneratedSecret": ".kube.generated_secret",
    "GeneratedSecretArgs": ".kube.generated_secret",
    "Grant": ".foundation",
    "Hooks": ".domain.hooks",
    "Image": ".kube.addon",
    "In": ".contracts",
    "IstioCharts": ".kube.mesh",
    "Keda": ".kube.keda",
    "KedaArgs": ".kube.keda",
    "KedaManifests": ".kube.keda_manifests",
    "LlamaCpp": ".serving.runtimes",
    "LocalDatabase": ".local.database",
    "LocalDatabaseArgs": ".local.database",
    "LocalFoundation": ".local.foundation",
    "LocalFoundationArgs": ".local.foundation",
    "LocalFoundationContract": ".local.contracts",
    "LocalPlatform": ".local.platform",
    "LocalRedis": ".local.redis",
    "LocalRedisArgs": ".local.redis",
    "LocalStorage": ".local.storage",
    "LocalStorageArgs": ".local.storage",
    "LocalTeamContract": ".local.contracts",
    "Logging": ".domain.hooks",
    "ManagedPrometheus": ".domain.scaling_source",
    "Mesh": ".kube.mesh",
    "MeshArgs": ".kube.mesh",
    "MeshKind": ".domain.recording",
    "MetricsServer": ".kube.metrics_server",
    "MetricsServerArgs": ".kube.metrics_server",
    "ModelEndpoint": ".serving.endpoint",
    "ModelEndpointArgs": ".serving.endpoint",
    "Namespace": ".kube.namespace",
    "NamespaceArgs": ".kube.namespace",
    "PlatformContract": ".contracts",
    "Prometheus": ".kube.prometheus",
    "PrometheusAdapter": ".kube.prometheus_adapter",
    "PrometheusAdapterArgs": ".kube.prometheus_adapter",
    "PrometheusArgs": ".kube.prometheus",
    "Resources": ".serving.endpoint",
    "RunnableImage": ".serving.runtimes",
    "Scaling": ".domain.scaling",
    "Tasks": ".serving.endpoint",
    "Team": ".kube.team",
    "TeamArgs": ".kube.team",
    "TeamContract": ".contracts",
    "Validation": ".domain.hooks",
    "Vllm": ".serving.vllm",
    "VolumeSizes": ".local.foundation",
    "Weights": ".domain.weights",
    "load_kubeconfig": ".local.cluster",
}

__all__ = [
    "Accelerator",
    "Access",
    "Cacher",
    "CacherArgs",
    "Callback",
    "Chart",
    "CloudWatch",
    "Contract",
    "DataImages",
    "EndpointType",
    "Existing",
    "ExistingIstio",
    "ExistingPrometheus",
    "Foundation",
    "FoundationContract",
    "Gateway",
    "GatewayArgs",
    "GeneratedSecret",
    "GeneratedSecretArgs",
    "Grant",
    "Hooks",
    "Image",
    "In",
    "IstioCharts",
    "Keda",
    "KedaArgs",
    "KedaManifests",
    "LlamaCpp",
    "LocalDatabase",
    "LocalDatabaseArgs",
    "LocalFoundation",
    "LocalFoundationArgs",
    "LocalFoundationContract",
    "LocalPlatform",
    "LocalRedis",
    "LocalRedisArgs",
    "LocalStorage",
    "LocalStorageArgs",
    "LocalTeamContract",
    "Logging",
    "ManagedPrometheus",
    "Mesh",
    "MeshArgs",
    "MeshKind",
    "MetricsServer",
    "MetricsServerArgs",
    "ModelEndpoint",
    "ModelEndpointArgs",
    "Namespace",
    "NamespaceArgs",
    "PlatformContract",
    "Prometheus",
    "PrometheusAdapter",
    "PrometheusAdapterArgs",
    "PrometheusArgs",
    "Resources",
    "RunnableImage",
    "Scaling",
    "Tasks",
    "Team",
    "TeamArgs",
    "TeamContract",
    "Validation",
    "Vllm",
    "VolumeSizes",
    "Weights",
    "load_kubeconfig",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home, __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
