"""One valid instance of everything that people write for AWS' cluster side."""

from collections.abc import Callable
from typing import Any

import pulumi

from components.aws.account import AwsAccount
from components.aws.cluster import Cluster, NodeCluster
from components.aws.cluster_addons import BEFORE_NODES, ClusterAddons, ClusterAddonsArgs
from components.aws.cluster_args import ClusterArgs
from components.aws.cluster_autoscaler import ClusterAutoscaler, ClusterAutoscalerArgs
from components.aws.disks import EncryptedDisks, EncryptedDisksArgs
from components.aws.endpoints import VpcEndpoints, VpcEndpointsArgs
from components.aws.gpu_nodes import GpuPool
from components.aws.gpu_pool_args import GpuPoolArgs
from components.aws.karpenter import Karpenter, KarpenterArgs
from components.aws.karpenter_access import KarpenterAccess, KarpenterAccessArgs
from components.aws.network import Network
from components.aws.network_args import NetworkArgs
from components.aws.node_role import NodeRole, NodeRoleArgs
from components.aws.overflow import OverflowPool
from components.aws.system_nodes import SystemNodes, SystemNodesArgs
from components.domain.accelerators import Accelerator
from components.kube.device_plugin import (
    DevicePlugin,
    DevicePluginArgs,
    GpuMetrics,
    GpuMetricsArgs,
)
from tests.aws_outputs import ACCOUNT, CERTIFICATE, REGION, arn
from tests.samples import known

ZONES = (f"{REGION}a", f"{REGION}b")
DEPLOYER = f"arn:aws:iam::{ACCOUNT}:role/deployer"
SUBNETS = {zone: f"subnet-gpu-{zone[-1]}" for zone in ZONES}


def account() -> AwsAccount:
    return AwsAccount(id=ACCOUNT, region=REGION)


def network_args(**changes: Any) -> NetworkArgs:
    return NetworkArgs(**{"zones": ZONES, **changes})


def cluster_args(**changes: Any) -> ClusterArgs:
    fields: dict[str, Any] = {
        "account": account(),
        "subnet_ids": ("subnet-a", "subnet-b"),
        "deployer_arn": DEPLOYER,
        "admins": (f"arn:aws:iam::{ACCOUNT}:role/platform/admin",),
        "key_arn": arn("kms", "key/cluster"),
    }
    return ClusterArgs(**{**fields, **changes})


def node_cluster(**changes: Any) -> NodeCluster:
    fields: dict[str, Any] = {
        "name": known("prod-aws"),
        "version": known("1.35"),
        "endpoint": known("https://ABC.gr7.eu-west-1.eks.amazonaws.com"),
        "certificate": known(CERTIFICATE),
        "service_cidr": known("172.20.0.0/16"),
        "node_role_arn": known(f"arn:aws:iam::{ACCOUNT}:role/nodes"),
        "ready": [],
    }
    return NodeCluster(**{**fields, **changes})


def system_args(**changes: Any) -> SystemNodesArgs:
    fields: dict[str, Any] = {"cluster": node_cluster(), "subnet_ids": ("subnet-a", "subnet-b")}
    return SystemNodesArgs(**{**fields, **changes})


def pool_args(**changes: Any) -> GpuPoolArgs:
    fields: dict[str, Any] = {
        "cluster": node_cluster(),
        "subnets": SUBNETS,
        "accelerator": Accelerator.L40S,
        "max_nodes": 4,
    }
    return GpuPoolArgs(**{**fields, **changes})


def addons_args(**changes: Any) -> ClusterAddonsArgs:
    fields: dict[str, Any] = {
        "account": account(),
        "cluster_name": "prod-aws",
        "addons": BEFORE_NODES,
    }
    return ClusterAddonsArgs(**{**fields, **changes})


def overflow_pool(**changes: Any) -> OverflowPool:
    fields: dict[str, Any] = {"name": "overflow-l40s", "accelerator": "l40s", "max_gpus": 8}
    return OverflowPool(**{**fields, **changes})


def karpenter_args(**changes: Any) -> KarpenterArgs:
    fields: dict[str, Any] = {
        "cluster_name": "prod-aws",
        "queue_name": "prod-aws-karpenter-interruptions-1a2b3c4",
        "instance_profile": "prod-aws-karpenter-nodes-1a2b3c4",
        "security_group_id": "sg-cluster",
        "subnets": SUBNETS,
        "pools": (overflow_pool(),),
    }
    return KarpenterArgs(**{**fields, **changes})


def autoscaler_args(**changes: Any) -> ClusterAutoscalerArgs:
    fields: dict[str, Any] = {"cluster_name": "prod-aws", "region": REGION}
    return ClusterAutoscalerArgs(**{**fields, **changes})


def endpoints_args(**changes: Any) -> VpcEndpointsArgs:
    fields: dict[str, Any] = {
        "vpc_id": "vpc-1",
        "cidr": "10.64.0.0/16",
        "region": REGION,
        "subnet_ids": ("subnet-a", "subnet-b"),
        "route_table_ids": ("rtb-a", "rtb-b"),
    }
    return VpcEndpointsArgs(**{**fields, **changes})


COMPONENTS: dict[str, Callable[[str], pulumi.ComponentResource]] = {
    "Network": lambda name: Network(name, network_args()),
    "VpcEndpoints": lambda name: VpcEndpoints(name, endpoints_args()),
    "Cluster": lambda name: Cluster(name, cluster_args()),
    "ClusterAddons": lambda name: ClusterAddons(name, addons_args()),
    "NodeRole": lambda name: NodeRole(name, NodeRoleArgs(account=account())),
    "SystemNodes": lambda name: SystemNodes(name, system_args()),
    "GpuPool": lambda name: GpuPool(name, pool_args(warm_floor=1)),
    "KarpenterAccess": lambda name: KarpenterAccess(
        name, KarpenterAccessArgs(account=account(), cluster_name=known("prod-aws"))
    ),
    "Karpenter": lambda name: Karpenter(name, karpenter_args()),
    "ClusterAutoscaler": lambda name: ClusterAutoscaler(name, autoscaler_args()),
    "EncryptedDisks": lambda name: EncryptedDisks(name, EncryptedDisksArgs()),
    "DevicePlugin": lambda name: DevicePlugin(name, DevicePluginArgs()),
    "GpuMetrics": lambda name: GpuMetrics(name, GpuMetricsArgs()),
}
"""Every component of the cluster side, made in the way that most use it."""
