"""What Karpenter's controller may do: start and end instances of one cluster, and no others.

The statements are those of Karpenter's own reference (website/content/en/docs/getting-started,
cloudformation.yaml, 1.14), without the rights to make instance profiles: ours is made beforehand.
"""

from ..contracts import In
from .account import AwsAccount
from .policies import Conditions, Statements, allow

_MADE = (
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
)
_STARTED_FROM = ("security-group", "subnet", "capacity-reservation")
_START = ("ec2:RunInstances", "ec2:CreateFleet")
_LOOK = (
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
)


def instances(account: AwsAccount, cluster: str) -> Statements:
    """May start, tag and end what carries the cluster's tag, and nothing else."""

    def ec2(*kinds: str) -> list[str]:
        return [account.arn("ec2", f"{kind}/*") for kind in kinds]

    public = [
        f"arn:{account.partition}:ec2:{account.region}::{kind}/*" for kind in ("image", "snapshot")
    ]
    asked = _asked_for(cluster)
    owned: Conditions = {
        "StringEquals": {f"aws:ResourceTag/kubernetes.io/cluster/{cluster}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }
    while_making: Conditions = {
        **asked,
        "StringEquals": {
            **asked["StringEquals"],
            "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
        },
    }
    afterwards: Conditions = {
        **owned,
        "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": cluster},
        "ForAllValues:StringEquals": {
            "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
        },
    }
    return [
        allow("StartFrom", _START, [*public, *ec2(*_STARTED_FROM)]),
        allow("StartFromOwnTemplates", _START, ec2("launch-template"), owned),
        allow("StartOwn", [*_START, "ec2:CreateLaunchTemplate"], ec2(*_MADE), asked),
        allow("TagOwnWhileMaking", ["ec2:CreateTags"], ec2(*_MADE), while_making),
        allow("TagOwn", ["ec2:CreateTags"], ec2("instance"), afterwards),
        allow(
            "EndOwn",
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            ec2("instance", "launch-template"),
            owned,
        ),
    ]


def _asked_for(cluster: str) -> Conditions:
    return {
        "StringEquals": {
            f"aws:RequestTag/kubernetes.io/cluster/{cluster}": "owned",
            "aws:RequestTag/eks:eks-cluster-name": cluster,
        },
        "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
    }


def look_ups(account: AwsAccount, cluster: str) -> Statements:
    """May look at what there is to choose from.

    EC2's and the price list's look-ups know no resources; the first are kept to the region.
    """
    here: Conditions = {"StringEquals": {"aws:RequestedRegion": account.region}}
    parameters = f"arn:{account.partition}:ssm:{account.region}::parameter/aws/service/*"
    return [
        allow("LookAround", _LOOK, ["*"], here),
        allow("LookAtImages", ["ssm:GetParameter"], [parameters]),
        allow("LookAtPrices", ["pricing:GetProducts"], ["*"]),
        allow("LookAtCluster", ["eks:DescribeCluster"], [account.arn("eks", f"cluster/{cluster}")]),
    ]


def profile(account: AwsAccount, role_arn: In[str], profile_arn: In[str]) -> Statements:
    """May give instances the nodes' role, by the one profile that has it."""
    return [
        allow(
            "PassTheNodesRole",
            ["iam:PassRole"],
            [role_arn],
            {"StringEquals": {"iam:PassedToService": f"ec2.{account.domain}"}},
        ),
        allow("LookAtTheProfile", ["iam:GetInstanceProfile"], [profile_arn]),
        # It looks for profiles that it made and forgot; a list knows no resources.
        allow("ListProfiles", ["iam:ListInstanceProfiles"], ["*"]),
    ]


def interruptions(queue_arn: In[str]) -> Statements:
    """May read what the queue says of instances that will end."""
    actions = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"]
    return [allow("ReadInterruptions", actions, [queue_arn])]
