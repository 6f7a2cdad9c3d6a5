"""The cluster autoscaler: keeps the size of node groups to what pods ask for."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import pulumi
import yaml
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from ..domain.kubernetes_versions import KubernetesVersion
from ..kube.addon import BY_SOURCE, Chart, ChartSource, Existing, ExistingSource, release
from . import policies
from .account import AwsAccount
from .pod_role import PodRole, PodRoleArgs
from .policies import Conditions, Statements, allow

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "cluster-autoscaler"
CHART = Chart(
    repository="https://kubernetes.github.io/autoscaler",
    chart="cluster-autoscaler",
    version="9.56.0",
)
LOWEST_PRIORITY = -10
"""Pods below this priority make no nodes; balloons are exactly at it, so that they do."""
_FIRST, _STEP, _LAST = 100, 10, 1


class ClusterAutoscalerArgs(Args):
    """How it runs, and what it prefers."""

    source: Annotated[ChartSource | ExistingSource, BY_SOURCE] = CHART
    """Where it comes from."""
    cluster_name: In[str]
    """The EKS cluster, whose node groups it finds by their tags."""
    region: In[str]
    """Its region."""
    version: KubernetesVersion = "1.35"
    """The cluster's version of Kubernetes, which the autoscaler's own must be."""
    priorities: In[str] | None = None
    """Which groups grow first, as ``priorities_of`` writes it; all alike when left out."""
    idle_minutes: int = Field(default=10, ge=1)
    """How long a node isn't needed before it goes."""
    isolated: bool = False
    """Whether the VPC has no way out: then it can't ask what instance types have."""


class ClusterAutoscaler(pulumi.ComponentResource):
    """Grows and shrinks node groups between their least and their most.

    Creates the autoscaler from its chart; with ``existing`` nothing. It tries the sources of a pool
    in order. Its role is made by ``autoscaler_role``. Nodes that Karpenter makes aren't its own.
    """

    ready: Sequence[pulumi.Resource]
    """What must stand before pods may count on more nodes."""

    def __init__(
        self, name: str, args: ClusterAutoscalerArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:ClusterAutoscaler", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.ready = []
        if not isinstance(args.source, Existing):
            values = chart_values(args)
            self.ready = [release(name, args.source, values, namespace=NAMESPACE, opts=child)]
        self.register_outputs({})


def chart_values(args: ClusterAutoscalerArgs) -> Mapping[str, Any]:
    """Return the chart's values."""
    return {
        "fullnameOverride": "cluster-autoscaler",
        "cloudProvider": "aws",
        "awsRegion": args.region,
        "autoDiscovery": {"clusterName": args.cluster_name},
        "image": {"tag": f"v{args.version}.0"},
        "replicaCount": 2,
        "priorityClassName": "system-cluster-critical",
        "rbac": {"serviceAccount": {"create": True, "name": SERVICE_ACCOUNT}},
        "expanderPriorities": args.priorities or priorities_of(()),
        "extraArgs": {
            "expander": "priority,least-waste",
            "expendable-pods-priority-cutoff": LOWEST_PRIORITY,
            "scale-down-unneeded-time": f"{args.idle_minutes}m",
            # A floor that was raised is filled, whether pods ask for it or not.
            "enforce-node-group-min-size": True,
            # Workers keep weights and caches on their node; that is no reason to keep the node.
            "skip-nodes-with-local-storage": False,
            "aws-use-static-instance-list": args.isolated,
        },
        "resources": {
            "requests": {"cpu": "100m", "memory": "300Mi"},
            "limits": {"memory": "600Mi"},
        },
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containerSecurityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }


def priorities_of(preferences: Sequence[tuple[str, ...]]) -> str:
    """Return what the priority expander reads: numbers, and patterns of names of groups.

    Args:
        preferences: For each GPU pool, patterns of its Auto Scaling groups' names, the preferred
            one first (``capacity.group_patterns``).

    As text, for its keys must be numbers, which they wouldn't be any more on their way here.
    """
    by_number: dict[int, list[str]] = {}
    for patterns in preferences:
        for place, pattern in enumerate(patterns):
            by_number.setdefault(max(_FIRST - _STEP * place, _LAST + 1), []).append(pattern)
    # Whatever nobody named, the system nodes for one, may grow too.
    by_number[_LAST] = [".*"]
    return str(cast("Any", yaml).safe_dump(by_number, sort_keys=True))


def autoscaler_rights(account: AwsAccount, cluster: str) -> Statements:
    """May look at Auto Scaling groups, and change the size of those of one cluster.

    Look-ups of Auto Scaling and EC2 know no resources; they are kept to the region (its README for
    AWS, "Permissions").
    """
    here: Conditions = {"StringEquals": {"aws:RequestedRegion": account.region}}
    owned: Conditions = {
        "StringEquals": {
            f"aws:ResourceTag/k8s.io/cluster-autoscaler/{cluster}": "owned",
            "aws:ResourceTag/k8s.io/cluster-autoscaler/enabled": "true",
        }
    }
    return [
        allow(
            "LookAround",
            [
                "autoscaling:DescribeAutoScalingGroups",
                "autoscaling:DescribeAutoScalingInstances",
                "autoscaling:DescribeLaunchConfigurations",
                "autoscaling:DescribeScalingActivities",
                "autoscaling:DescribeTags",
                "ec2:DescribeImages",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeLaunchTemplateVersions",
                "ec2:GetInstanceTypesFromInstanceRequirements",
            ],
            ["*"],
            here,
        ),
        allow(
            "LookAtNodeGroups",
            ["eks:DescribeNodegroup"],
            [account.arn("eks", f"nodegroup/{cluster}/*")],
        ),
        allow(
            "ChangeOwn",
            ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"],
            [account.arn("autoscaling", "autoScalingGroup:*")],
            owned,
        ),
    ]


def autoscaler_role(
    name: str,
    account: AwsAccount,
    cluster_name: In[str],
    *,
    boundary_arn: In[str] | None = None,
    opts: pulumi.ResourceOptions,
) -> PodRole:
    """Create the role that the autoscaler's pods have, by EKS Pod Identity."""
    policy = pulumi.Output.from_input(cluster_name).apply(
        lambda cluster: policies.document(autoscaler_rights(account, cluster))
    )
    return PodRole(
        name,
        PodRoleArgs(
            account=account,
            cluster_name=cluster_name,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            policy=policy,
            boundary_arn=boundary_arn,
        ),
        opts,
    )
