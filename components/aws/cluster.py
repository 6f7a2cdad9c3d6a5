"""The Kubernetes cluster: EKS of our own, or one that is there."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import pulumi
import pulumi_aws as aws

from ..contracts import In
from ..domain.args import Opaque
from . import policies
from .cluster_args import LOG_TYPES, ClusterArgs, ExistingCluster
from .limits import IAM_ROLE, autonamed
from .node_role import NodeRole, NodeRoleArgs, attach
from .update_checks import refuse_before_update, skipped_minor

_ADMIN_POLICY = "arn:{0}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


@dataclass(frozen=True, kw_only=True)
class NodeCluster(Opaque):
    """What node groups need to know of their cluster."""

    name: pulumi.Output[str]
    version: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    certificate: pulumi.Output[str]
    service_cidr: pulumi.Output[str]
    node_role_arn: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]
    """What must stand before a node starts; on destroy nodes go before it."""

    def after(self, *more: pulumi.Resource) -> Self:
        """Return the same with more that must stand first: the CNI, the way to AWS's services."""
        return replace(self, ready=[*self.ready, *more])


class Cluster(pulumi.ComponentResource):
    """An EKS cluster whose API server is reached from inside of the VPC.

    Creates the cluster with Secrets encrypted by a key of ours, its log group and role, an access
    entry for the deployer and each administrator, and the role of its nodes. There is no
    ``aws-auth`` ConfigMap: access entries are the only way in. With ``existing`` it creates the
    nodes' role only, and looks the rest up.
    """

    cluster_name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    certificate: pulumi.Output[str]
    """The API server's certificate authority, base64."""
    version: pulumi.Output[str]
    security_group_id: pulumi.Output[str]
    """The cluster's security group, which EKS makes: every node and the API server is in it."""
    kubeconfig: pulumi.Output[str]
    """A kubeconfig that asks ``aws eks get-token`` for credentials; secret like any other."""
    node_role_arn: pulumi.Output[str]
    nodes: NodeCluster
    """What node groups need to know of it."""

    def __init__(
        self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Cluster", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        role = NodeRole(
            f"{name}-nodes",
            NodeRoleArgs(
                account=args.account, policy=args.node_policy, boundary_arn=args.boundary_arn
            ),
            self._child,
        )
        self.node_role_arn = role.role_arn
        entries = self._look_up(args.existing) if args.existing else self._make()
        self.kubeconfig = kubeconfig(
            self.cluster_name, self.endpoint, self.certificate, args.account.region
        )
        self.nodes = NodeCluster(
            name=self.cluster_name,
            version=self.version,
            endpoint=self.endpoint,
            certificate=self.certificate,
            service_cidr=self._service_cidr,
            node_role_arn=self.node_role_arn,
            ready=[*role.ready, *entries],
        )
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "endpoint": self.endpoint,
                "certificate": self.certificate,
                "version": self.version,
                "security_group_id": self.security_group_id,
                "kubeconfig": self.kubeconfig,
                "node_role_arn": self.node_role_arn,
            }
        )

    def _look_up(self, existing: ExistingCluster) -> list[pulumi.Resource]:
        found = aws.eks.get_cluster_output(
            name=existing.name,
            region=self._args.account.region,
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        self.cluster_name = pulumi.Output.from_input(existing.name)
        self.endpoint, self.version = found.endpoint, found.version
        self.certificate = found.certificate_authorities.apply(lambda them: them[0].data)
        self.security_group_id = found.vpc_config.apply(lambda it: it.cluster_security_group_id)
        self._service_cidr = found.kubernetes_network_configs.apply(
            lambda them: them[0].service_ipv4_cidr
        )
        return []

    def _make(self) -> list[pulumi.Resource]:
        args = self._args
        cluster_name = args.cluster_name or self._name
        cluster = self._control_plane(cluster_name)
        self.cluster_name, self.version = cluster.name, cluster.version
        self.endpoint = cluster.endpoint
        self.certificate = cluster.certificate_authority.apply(lambda it: it.data or "")
        self.security_group_id = cluster.vpc_config.apply(
            lambda it: it.cluster_security_group_id or ""
        )
        self._service_cidr = pulumi.Output.from_input(args.service_cidr)
        entries = [self._administrator("deployer", args.deployer_arn or "")]
        entries += [self._administrator(f"admin-{_short(arn)}", arn) for arn in args.admins]
        return entries

    def _control_plane(self, cluster_name: str) -> aws.eks.Cluster:
        args = self._args
        role = aws.iam.Role(
            autonamed(self._name, "control-plane", limit=IAM_ROLE),
            assume_role_policy=policies.document(
                [
                    {
                        "Sid": "Eks",
                        "Effect": "Allow",
                        "Principal": {"Service": "eks.amazonaws.com"},
                        "Action": ["sts:AssumeRole"],
                    }
                ]
            ),
            description="The control plane of the cluster",
            permissions_boundary=args.boundary_arn,
            opts=self._child,
        )
        rights = attach(self._name, role, args.account, ["AmazonEKSClusterPolicy"], self._child)
        # Made before EKS would make it, so that logs end some day, and go with the cluster.
        logs = aws.cloudwatch.LogGroup(
            f"{self._name}-logs",
            name=f"/aws/eks/{cluster_name}/cluster",
            retention_in_days=args.log_retention_days,
            opts=self._child,
        )
        encryption: aws.eks.ClusterEncryptionConfigArgsDict | None = None
        if args.key_arn is not None:
            encryption = {"provider": {"key_arn": args.key_arn}, "resources": ["secrets"]}
        return aws.eks.Cluster(
            f"{self._name}-cluster",
            name=cluster_name,
            version=args.version,
            role_arn=role.arn,
            access_config={
                "authentication_mode": "API",
                "bootstrap_cluster_creator_admin_permissions": False,
            },
            bootstrap_self_managed_addons=False,
            deletion_protection=args.deletion_protection,
            enabled_cluster_log_types=list(LOG_TYPES),
            encryption_config=encryption,
            kubernetes_network_config={"service_ipv4_cidr": args.service_cidr},
            # The API's default is the paid one, which goes on when the standard one ends.
            upgrade_policy={"support_type": "STANDARD"},
            vpc_config={
                "subnet_ids": list(args.subnet_ids),
                "endpoint_private_access": True,
                "endpoint_public_access": bool(args.public_access_cidrs),
                "public_access_cidrs": list(args.public_access_cidrs) or None,
            },
            zonal_shift_config={"enabled": True},
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*rights, logs],
                hooks=refuse_before_update(f"{self._name}-version", skipped_minor),
            ),
        )

    def _administrator(self, suffix: str, arn: In[str]) -> pulumi.Resource:
        entry = aws.eks.AccessEntry(
            f"{self._name}-{suffix}",
            cluster_name=self.cluster_name,
            principal_arn=arn,
            type="STANDARD",
            opts=self._child,
        )
        return aws.eks.AccessPolicyAssociation(
            f"{self._name}-{suffix}",
            cluster_name=self.cluster_name,
            principal_arn=arn,
            policy_arn=_ADMIN_POLICY.format(self._args.account.partition),
            access_scope={"type": "cluster"},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[entry]),
        )


def kubeconfig(
    cluster_name: In[str], endpoint: In[str], certificate: In[str], region: str
) -> pulumi.Output[str]:
    """Return a kubeconfig without credentials: the AWS CLI makes a token when one is needed."""
    get_token = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", cluster_name, "--region", region],
        "interactiveMode": "Never",
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "eks",
                "cluster": {"server": endpoint, "certificate-authority-data": certificate},
            }
        ],
        "users": [{"name": "eks", "user": {"exec": get_token}}],
        "contexts": [{"name": "eks", "context": {"cluster": "eks", "user": "eks"}}],
        "current-context": "eks",
    }
    return pulumi.Output.secret(pulumi.Output.json_dumps(config))


def _short(arn: str) -> str:
    """Return a role's name and a little more, for roles of two accounts may share a name."""
    digest = hashlib.sha256(arn.encode()).hexdigest()[:6]
    return f"{arn.rpartition('/')[2]}-{digest}"
