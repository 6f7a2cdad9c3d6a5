"""The role of nodes: what a machine may do before any pod runs on it."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from ..contracts import In
from ..domain.args import Args
from . import policies
from .account import AwsAccount
from .limits import IAM_ROLE, autonamed

_MANAGED_POLICIES = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
"""To join a cluster, to pull images, and to be reached by Session Manager instead of SSH. Pods'
addresses are the CNI's to manage, which has a role of its own."""


class NodeRoleArgs(Args):
    """What nodes may do."""

    account: AwsAccount
    """Where it is."""
    policy: In[str] | None = None
    """More that they may do, as JSON, such as to fill a registry's copies of other registries."""
    boundary_arn: In[str] | None = None
    """The permissions boundary: the most that the role could ever do."""


class NodeRole(pulumi.ComponentResource):
    """The role of EC2 instances that are nodes.

    Creates an IAM role with AWS's policies for joining a cluster, pulling images and Session
    Manager, and an inline policy where more is asked for. Pods don't get it: the hop limit of a
    node's metadata service is 1.
    """

    role_arn: pulumi.Output[str]
    role_name: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]
    """What must stand before a node starts, and goes after the last one."""

    def __init__(
        self, name: str, args: NodeRoleArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:NodeRole", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = aws.iam.Role(
            autonamed(name, "role", limit=IAM_ROLE),
            assume_role_policy=policies.document(
                [
                    {
                        "Sid": "Instances",
                        "Effect": "Allow",
                        "Principal": {"Service": f"ec2.{args.account.domain}"},
                        "Action": ["sts:AssumeRole"],
                    }
                ]
            ),
            description="Nodes of the cluster",
            permissions_boundary=args.boundary_arn,
            opts=child,
        )
        self.ready = attach(name, role, args.account, _MANAGED_POLICIES, child)
        if args.policy is not None:
            more = aws.iam.RolePolicy(
                f"{name}-policy", role=role.name, policy=args.policy, opts=child
            )
            self.ready = [*self.ready, more]
        self.role_arn, self.role_name = role.arn, role.name
        self.register_outputs({"role_arn": self.role_arn, "role_name": self.role_name})


def attach(
    name: str,
    role: aws.iam.Role,
    account: AwsAccount,
    managed: Sequence[str],
    opts: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    """Give a role some of AWS's own policies, by their names."""
    return [
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy.rpartition('/')[2]}",
            role=role.name,
            policy_arn=f"arn:{account.partition}:iam::aws:policy/{policy}",
            opts=opts,
        )
        for policy in managed
    ]
