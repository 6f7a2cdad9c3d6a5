"""The operators that only a cluster in AWS needs."""

from collections.abc import Mapping, Sequence

import pulumi

from components.aws import cluster_autoscaler, karpenter, load_balancer_controller, policies, rights
from components.aws.cluster_autoscaler import ClusterAutoscaler, ClusterAutoscalerArgs
from components.aws.contracts import AwsFoundationContract
from components.aws.disks import EncryptedDisks, EncryptedDisksArgs
from components.aws.karpenter import Karpenter, KarpenterArgs
from components.aws.karpenter_access import KarpenterAccess, KarpenterAccessArgs
from components.aws.load_balancer_controller import (
    LoadBalancerController,
    LoadBalancerControllerArgs,
)
from components.aws.pod_role import PodRole, PodRoleArgs
from components.aws.queues import of_all
from components.kube import device_plugin, keda
from components.kube.device_plugin import (
    DevicePlugin,
    DevicePluginArgs,
    GpuMetrics,
    GpuMetricsArgs,
)

from .aws_settings import AwsPlatformSettings, source


def install(
    name: str,
    settings: AwsPlatformSettings,
    contract: AwsFoundationContract,
    *,
    environment: str,
    subnets: Mapping[str, pulumi.Output[str]],
    opts: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    """Create the operators, and the role by which KEDA reads queues.

    Args:
        name: What the names of the resources begin with.
        settings: Where they come from, and what nodes Karpenter makes.
        contract: The foundation.
        environment: What the names of the environment's queues begin with.
        subnets: The subnets of GPU nodes, by zone.
        opts: The access to the cluster and to the account.

    Returns:
        What must stand before add-ons and workloads.
    """
    wished, account = settings.operators, settings.account
    doors = LoadBalancerController(
        f"{name}-load-balancers",
        LoadBalancerControllerArgs(
            source=source(wished.load_balancer_controller, load_balancer_controller.CHART),
            account=account,
            cluster_name=contract.cluster_name,
            vpc_id=contract.vpc_id,
            boundary_arn=settings.operators_boundary_arn,
        ),
        opts,
    )
    plugin = DevicePlugin(
        f"{name}-device-plugin",
        DevicePluginArgs(source=source(wished.device_plugin, device_plugin.PLUGIN_CHART)),
        opts,
    )
    GpuMetrics(
        f"{name}-gpu-metrics",
        GpuMetricsArgs(source=source(wished.gpu_metrics, device_plugin.EXPORTER_CHART)),
        opts,
    )
    sizes = _node_groups(name, settings, contract, opts)
    EncryptedDisks(f"{name}-disks", EncryptedDisksArgs(), opts)
    queues = _keda_role(name, settings, contract, environment, opts)
    overflow = _overflow(name, settings, contract, subnets, opts) if settings.overflow else []
    return [*doors.ready, *plugin.ready, *sizes, *queues, *overflow]


def _node_groups(
    name: str,
    settings: AwsPlatformSettings,
    contract: AwsFoundationContract,
    opts: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    role = cluster_autoscaler.autoscaler_role(
        f"{name}-autoscaler-role",
        settings.account,
        settings.cluster_name,
        boundary_arn=settings.operators_boundary_arn,
        opts=opts,
    )
    autoscaler = ClusterAutoscaler(
        f"{name}-autoscaler",
        ClusterAutoscalerArgs(
            source=source(settings.operators.cluster_autoscaler, cluster_autoscaler.CHART),
            cluster_name=settings.cluster_name,
            region=settings.account.region,
            version=settings.kubernetes_version,
            priorities=contract.group_priorities,
            isolated=settings.isolated,
        ),
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=role.ready)),
    )
    return autoscaler.ready


def _keda_role(
    name: str,
    settings: AwsPlatformSettings,
    contract: AwsFoundationContract,
    environment: str,
    opts: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    """Let KEDA ask how long the environment's queues are, and for metrics where they are used."""
    account = settings.account
    statements = [*rights.count_queues(account, of_all(account, environment))]
    if settings.cloudwatch:
        statements += rights.read_metrics()
    role = PodRole(
        f"{name}-keda-role",
        PodRoleArgs(
            account=account,
            cluster_name=contract.cluster_name,
            namespace=keda.NAMESPACE,
            service_account=keda.OPERATOR_ACCOUNT,
            policy=policies.document(statements),
            boundary_arn=contract.boundary_arn,
        ),
        opts,
    )
    return role.ready


def _overflow(
    name: str,
    settings: AwsPlatformSettings,
    contract: AwsFoundationContract,
    subnets: Mapping[str, pulumi.Output[str]],
    opts: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    access = KarpenterAccess(
        f"{name}-karpenter-access",
        KarpenterAccessArgs(
            account=settings.account,
            cluster_name=settings.cluster_name,
            node_policy=contract.mirror_prefix.apply(
                lambda prefix: policies.document(rights.pull_through(settings.account, prefix))
            ),
            boundary_arn=settings.operators_boundary_arn,
        ),
        opts,
    )
    overflow = Karpenter(
        f"{name}-karpenter",
        KarpenterArgs(
            source=source(settings.operators.karpenter, karpenter.CHART),
            cluster_name=settings.cluster_name,
            queue_name=access.queue_name,
            instance_profile=access.instance_profile,
            security_group_id=contract.cluster_security_group,
            subnets=subnets,
            pools=settings.overflow,
            isolated=settings.isolated,
        ),
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=access.ready)),
    )
    return overflow.ready
