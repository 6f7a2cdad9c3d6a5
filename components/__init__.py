"""A self-hosted LLM serving platform as Pulumi components.

The public names are imported when they are first used, so that the pure part (``domain``) can be
imported where Pulumi isn't installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .aws.account import AwsAccount
    from .aws.boundary import Boundary, BoundaryArgs
    from .aws.bucket import PrivateBucket, PrivateBucketArgs
    from .aws.capacity import CapacityBlock, OnDemand, Reservation, Spot
    from .aws.cluster import Cluster, NodeCluster
    from .aws.cluster_addons import (
        ClusterAddons,
        ClusterAddonsArgs,
        EksAddon,
        PodPolicy,
    )
    from .aws.cluster_args import ClusterArgs, ExistingCluster
    from .aws.cluster_autoscaler import ClusterAutoscaler, ClusterAutoscalerArgs
    from .aws.contracts import AwsFoundationContract, AwsTeamContract
    from .aws.database import AwsDatabase, AwsDatabaseArgs, DatabaseSize
    from .aws.disks import EncryptedDisks, EncryptedDisksArgs
    from .aws.doors import Clients
    from .aws.endpoints import VpcEndpoints, VpcEndpointsArgs
    from .aws.foundation import AwsFoundation
    from .aws.foundation_args import (
        AwsFoundationArgs,
        ClusterWish,
        DatabaseWish,
        GpuPoolWish,
        RedisWish,
        RegistryWish,
        StorageWish,
        SystemNodesWish,
    )
    from .aws.fsx import Lustre, LustreArgs
    from .aws.gpu_nodes import GpuPool
    from .aws.gpu_pool_args import GpuPoolArgs, Taint
    from .aws.karpenter import Karpenter, KarpenterArgs
    from .aws.karpenter_access import KarpenterAccess, KarpenterAccessArgs
    from .aws.keys import AwsKeys, AwsKeysArgs
    from .aws.launch_template import Disk
    from .aws.load_balancer import GatewayDoor, GatewayDoorArgs
    from .aws.load_balancer_controller import LoadBalancerController, LoadBalancerControllerArgs
    from .aws.network import Network
    from .aws.network_args import ExistingNetwork, Nat, NetworkArgs
    from .aws.node_role import NodeRole, NodeRoleArgs
    from .aws.overflow import OverflowPool
    from .aws.platform import AwsPlatform
    from .aws.pod_role import PodRole, PodRoleArgs
    from .aws.redis import AwsRedis, AwsRedisArgs, RedisSize
    from .aws.registry import AwsRegistry, AwsRegistryArgs, Mirror, Upstream
    from .aws.storage import AwsStorage, AwsStorageArgs
    from .aws.stored_secret import StoredSecret, StoredSecretArgs
    from .aws.system_nodes import SystemNodes, SystemNodesArgs
    from .aws.team import AwsTeam, AwsTeamArgs
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
    from .kube.device_plugin import DevicePlugin, DevicePluginArgs, GpuMetrics, GpuMetricsArgs
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
    "AwsAccount": ".aws.account",
    "AwsDatabase": ".aws.database",
    "AwsDatabaseArgs": ".aws.database",
    "AwsFoundation": ".aws.foundation",
    "AwsFoundationArgs": ".aws.foundation_args",
    "AwsFoundationContract": ".aws.contracts",
    "AwsKeys": ".aws.keys",
    "AwsKeysArgs": ".aws.keys",
    "AwsPlatform": ".aws.platform",
    "AwsRedis": ".aws.redis",
    "AwsRedisArgs": ".aws.redis",
    "AwsRegistry": ".aws.registry",
    "AwsRegistryArgs": ".aws.registry",
    "AwsStorage": ".aws.storage",
    "AwsStorageArgs": ".aws.storage",
    "AwsTeam": ".aws.team",
    "AwsTeamArgs": ".aws.team",
    "AwsTeamContract": ".aws.contracts",
    "Boundary": ".aws.boundary",
    "BoundaryArgs": ".aws.boundary",
    "Cacher": ".serving.cacher",
    "CacherArgs": ".serving.cacher",
    "Callback": ".domain.hooks",
    "CapacityBlock": ".aws.capacity",
    "Chart": ".kube.addon",
    "Clients": ".aws.doors",
    "CloudWatch": ".domain.scaling_source",
    "Cluster": ".aws.cluster",
    "ClusterAddons": ".aws.cluster_addons",
    "ClusterAddonsArgs": ".aws.cluster_addons",
    "ClusterArgs": ".aws.cluster_args",
    "ClusterAutoscaler": ".aws.cluster_autoscaler",
    "ClusterAutoscalerArgs": ".aws.cluster_autoscaler",
    "ClusterWish": ".aws.foundation_args",
    "Contract": ".contracts",
    "DataImages": ".local.foundation",
    "DatabaseSize": ".aws.database",
    "DatabaseWish": ".aws.foundation_args",
    "DevicePlugin": ".kube.device_plugin",
    "DevicePluginArgs": ".kube.device_plugin",
    "Disk": ".aws.launch_template",
    "EksAddon": ".aws.cluster_addons",
    "EncryptedDisks": ".aws.disks",
    "EncryptedDisksArgs": ".aws.disks",
    "EndpointType": ".domain.registration",
    "Existing": ".kube.addon",
    "ExistingCluster": ".aws.cluster_args",
    "ExistingIstio": ".kube.mesh",
    "ExistingNetwork": ".aws.network_args",
    "ExistingPrometheus": ".kube.prometheus",
    "Foundation": ".foundation",
    "FoundationContract": ".contracts",
    "Gateway": ".serving.gateway",
    "GatewayArgs": ".serving.gateway",
    "GatewayDoor": ".aws.load_balancer",
    "GatewayDoorArgs": ".aws.load_balancer",
    "GeneratedSecret": ".kube.generated_secret",
    "GeneratedSecretArgs": ".kube.generated_secret",
    "GpuMetrics": ".kube.device_plugin",
    "GpuMetricsArgs": ".kube.device_plugin",
    "GpuPool": ".aws.gpu_nodes",
    "GpuPoolArgs": ".aws.gpu_pool_args",
    "GpuPoolWish": ".aws.foundation_args",
    "Grant": ".foundation",
    "Hooks": ".domain.hooks",
    "Image": ".kube.addon",
    "In": ".contracts",
    "IstioCharts": ".kube.mesh",
    "Karpenter": ".aws.karpenter",
    "KarpenterAccess": ".aws.karpenter_access",
    "KarpenterAccessArgs": ".aws.karpenter_access",
    "KarpenterArgs": ".aws.karpenter",
    "Keda": ".kube.keda",
    "KedaArgs": ".kube.keda",
    "KedaManifests": ".kube.keda_manifests",
    "LlamaCpp": ".serving.runtimes",
    "LoadBalancerController": ".aws.load_balancer_controller",
    "LoadBalancerControllerArgs": ".aws.load_balancer_controller",
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
    "Lustre": ".aws.fsx",
    "LustreArgs": ".aws.fsx",
    "ManagedPrometheus": ".domain.scaling_source",
    "Mesh": ".kube.mesh",
    "MeshArgs": ".kube.mesh",
    "MeshKind": ".domain.recording",
    "MetricsServer": ".kube.metrics_server",
    "MetricsServerArgs": ".kube.metrics_server",
    "Mirror": ".aws.registry",
    "ModelEndpoint": ".serving.endpoint",
    "ModelEndpointArgs": ".serving.endpoint",
    "Namespace": ".kube.namespace",
    "NamespaceArgs": ".kube.namespace",
    "Nat": ".aws.network_args",
    "Network": ".aws.network",
    "NetworkArgs": ".aws.network_args",
    "NodeCluster": ".aws.cluster",
    "NodeRole": ".aws.node_role",
    "NodeRoleArgs": ".aws.node_role",
    "OnDemand": ".aws.capacity",
    "OverflowPool": ".aws.overflow",
    "PlatformContract": ".contracts",
    "PodPolicy": ".aws.cluster_addons",
    "PodRole": ".aws.pod_role",
    "PodRoleArgs": ".aws.pod_role",
    "PrivateBucket": ".aws.bucket",
    "PrivateBucketArgs": ".aws.bucket",
    "Prometheus": ".kube.prometheus",
    "PrometheusAdapter": ".kube.prometheus_adapter",
    "PrometheusAdapterArgs": ".kube.prometheus_adapter",
    "PrometheusArgs": ".kube.prometheus",
    "RedisSize": ".aws.redis",
    "RedisWish": ".aws.foundation_args",
    "RegistryWish": ".aws.foundation_args",
    "Reservation": ".aws.capacity",
    "Resources": ".serving.endpoint",
    "RunnableImage": ".serving.runtimes",
    "Scaling": ".domain.scaling",
    "Spot": ".aws.capacity",
    "StorageWish": ".aws.foundation_args",
    "StoredSecret": ".aws.stored_secret",
    "StoredSecretArgs": ".aws.stored_secret",
    "SystemNodes": ".aws.system_nodes",
    "SystemNodesArgs": ".aws.system_nodes",
    "SystemNodesWish": ".aws.foundation_args",
    "Taint": ".aws.gpu_pool_args",
    "Tasks": ".serving.endpoint",
    "Team": ".kube.team",
    "TeamArgs": ".kube.team",
    "TeamContract": ".contracts",
    "Upstream": ".aws.registry",
    "Validation": ".domain.hooks",
    "Vllm": ".serving.vllm",
    "VolumeSizes": ".local.foundation",
    "VpcEndpoints": ".aws.endpoints",
    "VpcEndpointsArgs": ".aws.endpoints",
    "Weights": ".domain.weights",
    "load_kubeconfig": ".local.cluster",
}

__all__ = [
    "Accelerator",
    "Access",
    "AwsAccount",
    "AwsDatabase",
    "AwsDatabaseArgs",
    "AwsFoundation",
    "AwsFoundationArgs",
    "AwsFoundationContract",
    "AwsKeys",
    "AwsKeysArgs",
    "AwsPlatform",
    "AwsRedis",
    "AwsRedisArgs",
    "AwsRegistry",
    "AwsRegistryArgs",
    "AwsStorage",
    "AwsStorageArgs",
    "AwsTeam",
    "AwsTeamArgs",
    "AwsTeamContract",
    "Boundary",
    "BoundaryArgs",
    "Cacher",
    "CacherArgs",
    "Callback",
    "CapacityBlock",
    "Chart",
    "Clients",
    "CloudWatch",
    "Cluster",
    "ClusterAddons",
    "ClusterAddonsArgs",
    "ClusterArgs",
    "ClusterAutoscaler",
    "ClusterAutoscalerArgs",
    "ClusterWish",
    "Contract",
    "DataImages",
    "DatabaseSize",
    "DatabaseWish",
    "DevicePlugin",
    "DevicePluginArgs",
    "Disk",
    "EksAddon",
    "EncryptedDisks",
    "EncryptedDisksArgs",
    "EndpointType",
    "Existing",
    "ExistingCluster",
    "ExistingIstio",
    "ExistingNetwork",
    "ExistingPrometheus",
    "Foundation",
    "FoundationContract",
    "Gateway",
    "GatewayArgs",
    "GatewayDoor",
    "GatewayDoorArgs",
    "GeneratedSecret",
    "GeneratedSecretArgs",
    "GpuMetrics",
    "GpuMetricsArgs",
    "GpuPool",
    "GpuPoolArgs",
    "GpuPoolWish",
    "Grant",
    "Hooks",
    "Image",
    "In",
    "IstioCharts",
    "Karpenter",
    "KarpenterAccess",
    "KarpenterAccessArgs",
    "KarpenterArgs",
    "Keda",
    "KedaArgs",
    "KedaManifests",
    "LlamaCpp",
    "LoadBalancerController",
    "LoadBalancerControllerArgs",
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
    "Lustre",
    "LustreArgs",
    "ManagedPrometheus",
    "Mesh",
    "MeshArgs",
    "MeshKind",
    "MetricsServer",
    "MetricsServerArgs",
    "Mirror",
    "ModelEndpoint",
    "ModelEndpointArgs",
    "Namespace",
    "NamespaceArgs",
    "Nat",
    "Network",
    "NetworkArgs",
    "NodeCluster",
    "NodeRole",
    "NodeRoleArgs",
    "OnDemand",
    "OverflowPool",
    "PlatformContract",
    "PodPolicy",
    "PodRole",
    "PodRoleArgs",
    "PrivateBucket",
    "PrivateBucketArgs",
    "Prometheus",
    "PrometheusAdapter",
    "PrometheusAdapterArgs",
    "PrometheusArgs",
    "RedisSize",
    "RedisWish",
    "RegistryWish",
    "Reservation",
    "Resources",
    "RunnableImage",
    "Scaling",
    "Spot",
    "StorageWish",
    "StoredSecret",
    "StoredSecretArgs",
    "SystemNodes",
    "SystemNodesArgs",
    "SystemNodesWish",
    "Taint",
    "Tasks",
    "Team",
    "TeamArgs",
    "TeamContract",
    "Upstream",
    "Validation",
    "Vllm",
    "VolumeSizes",
    "VpcEndpoints",
    "VpcEndpointsArgs",
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
