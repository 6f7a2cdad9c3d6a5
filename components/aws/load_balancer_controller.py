"""The AWS Load Balancer Controller, for keeping the addresses of pods in target groups."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pulumi

from ..contracts import In
from ..domain.args import Args
from ..kube.addon import BY_SOURCE, Chart, ChartSource, Existing, ExistingSource, release
from . import policies
from .account import AwsAccount
from .pod_role import PodRole, PodRoleArgs
from .policies import Conditions, Statements, allow

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "aws-load-balancer-controller"
CHART = Chart(
    repository="https://aws.github.io/eks-charts",
    chart="aws-load-balancer-controller",
    version="3.4.0",
)


class LoadBalancerControllerArgs(Args):
    """How it runs."""

    source: Annotated[ChartSource | ExistingSource, BY_SOURCE] = CHART
    """Where it comes from."""
    account: AwsAccount
    """Where it is."""
    cluster_name: In[str]
    """The EKS cluster."""
    vpc_id: In[str]
    """The cluster's VPC; nodes' metadata, where it would look otherwise, is closed to pods."""
    boundary_arn: In[str] | None = None
    """The permissions boundary of its role."""


class LoadBalancerController(pulumi.ComponentResource):
    """Puts the addresses of pods into target groups, as TargetGroupBindings say.

    Creates its role and, from its chart, the controller; with ``existing`` nothing. It makes no
    load balancer: what makes one of a Service or an Ingress is switched off, and its role couldn't.
    """

    ready: Sequence[pulumi.Resource]
    """What a TargetGroupBinding must wait for; on destroy it goes before."""

    def __init__(
        self,
        name: str,
        args: LoadBalancerControllerArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("llm-platform:index:LoadBalancerController", name, None, opts)
        self.ready = []
        if not isinstance(args.source, Existing):
            role = PodRole(
                f"{name}-role",
                PodRoleArgs(
                    account=args.account,
                    cluster_name=args.cluster_name,
                    namespace=NAMESPACE,
                    service_account=SERVICE_ACCOUNT,
                    policy=policies.document(controller_rights(args.account)),
                    boundary_arn=args.boundary_arn,
                ),
                pulumi.ResourceOptions(parent=self),
            )
            after_role = pulumi.ResourceOptions(parent=self, depends_on=role.ready)
            values = chart_values(args)
            self.ready = [release(name, args.source, values, namespace=NAMESPACE, opts=after_role)]
        self.register_outputs({})


def chart_values(args: LoadBalancerControllerArgs) -> Mapping[str, Any]:
    """Return the chart's values."""
    return {
        "clusterName": args.cluster_name,
        "region": args.account.region,
        "vpcId": args.vpc_id,
        "serviceAccount": {"create": True, "name": SERVICE_ACCOUNT},
        "enableServiceMutatorWebhook": False,
        "createIngressClassResource": False,
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        "enableBackendSecurityGroup": False,
        "podDisruptionBudget": {"maxUnavailable": 1},
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
    }


def controller_rights(account: AwsAccount) -> Statements:
    """May look around, and put addresses into target groups of this account and region.

    Look-ups of EC2 and Elastic Load Balancing know no resources (Service Authorization Reference,
    read 2026-11); they are kept to the region.
    """
    here: Conditions = {"StringEquals": {"aws:RequestedRegion": account.region}}
    return [
        allow(
            "LookAround",
            [
                "ec2:DescribeAvailabilityZones",
                "ec2:DescribeInstances",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeVpcs",
                "elasticloadbalancing:DescribeLoadBalancers",
                "elasticloadbalancing:DescribeTags",
                "elasticloadbalancing:DescribeTargetGroupAttributes",
                "elasticloadbalancing:DescribeTargetGroups",
                "elasticloadbalancing:DescribeTargetHealth",
            ],
            ["*"],
            here,
        ),
        allow(
            "FillTargetGroups",
            [
                "elasticloadbalancing:DeregisterTargets",
                "elasticloadbalancing:RegisterTargets",
            ],
            [account.arn("elasticloadbalancing", "targetgroup/*")],
        ),
    ]
