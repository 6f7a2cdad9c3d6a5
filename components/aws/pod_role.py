"""A role that pods with one service account have, by EKS Pod Identity."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from ..contracts import In
from ..domain.args import Args
from ..domain.names import K8sName
from . import policies
from .account import AwsAccount
from .limits import IAM_ROLE, autonamed


class PodRoleArgs(Args):
    """Who has the role, and what it may do."""

    account: AwsAccount
    """Where it is."""
    cluster_name: In[str]
    """The EKS cluster; its ``eks-pod-identity-agent`` add-on hands out the credentials."""
    namespace: In[str]
    """The namespace of the pods."""
    service_account: K8sName
    """The pods' service account."""
    policy: In[str]
    """What the role may do: a policy as JSON, such as ``policies.document`` returns."""
    boundary_arn: In[str] | None = None
    """The permissions boundary: the most that the role could ever do."""


class PodRole(pulumi.ComponentResource):
    """A role for pods with one service account in one namespace of one cluster, and nobody else.

    Creates an IAM role whose trust policy names all three, its inline policy, and the pod identity
    association. Pods that started before it have no credentials until they start again.
    """

    role_arn: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]
    """What must stand before the pods start."""

    def __init__(
        self, name: str, args: PodRoleArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:PodRole", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        trust = policies.trust_pods(
            args.account, args.cluster_name, args.namespace, args.service_account
        )
        role = aws.iam.Role(
            autonamed(name, "role", limit=IAM_ROLE),
            assume_role_policy=policies.document(trust),
            description=f"Pods of the service account {args.service_account}",
            permissions_boundary=args.boundary_arn,
            opts=child,
        )
        policy = aws.iam.RolePolicy(
            f"{name}-policy", role=role.name, policy=args.policy, opts=child
        )
        association = aws.eks.PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.cluster_name,
            namespace=args.namespace,
            service_account=args.service_account,
            role_arn=role.arn,
            opts=child,
        )
        self.role_arn = role.arn
        self.ready = [policy, association]
        self.register_outputs({"role_arn": self.role_arn})
