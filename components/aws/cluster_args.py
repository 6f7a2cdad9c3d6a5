"""What an EKS cluster is made of, or which one is used that is there."""

import re
from ipaddress import IPv4Network
from typing import Annotated, Self

import pulumi
from pydantic import AfterValidator, Field, model_validator

from ..contracts import In
from ..domain.args import Args
from ..domain.kubernetes_versions import KubernetesVersion
from .account import AwsAccount
from .limits import EKS_CLUSTER

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
"""All that a control plane can log."""
_NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]*")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/.+")
_SHORTEST_PUBLIC_PREFIX = 8


def _cluster_name(value: str) -> str:
    if len(value) > EKS_CLUSTER or not _NAME.fullmatch(value):
        raise ValueError(
            f"{value!r} isn't a cluster's name: letters, digits, '-' and '_', "
            f"at most {EKS_CLUSTER} of them"
        )
    return value


def _role_arn(value: str) -> str:
    if not _ROLE.fullmatch(value):
        hint = " (a session's ARN; write its role's)" if ":assumed-role/" in value else ""
        raise ValueError(
            f"{value!r} isn't a role's ARN{hint}: write arn:aws:iam::<account>:role/<name>"
        )
    return value


def _public_range(value: str) -> str:
    network = IPv4Network(value)
    if network.prefixlen < _SHORTEST_PUBLIC_PREFIX:
        raise ValueError(f"{value!r} is nearly the whole internet: name who may reach the API")
    return value


RoleArn = Annotated[str, AfterValidator(_role_arn)]
"""A role's ARN, with its path if it has one."""
ClusterName = Annotated[str, AfterValidator(_cluster_name)]
"""A name that EKS takes for a cluster."""


class ExistingCluster(Args):
    """An EKS cluster that is there already.

    It needs authentication mode API (or API and ConfigMap), an access entry of whoever deploys, and
    the add-ons ``vpc-cni`` with network policies, ``kube-proxy``, ``coredns`` and
    ``eks-pod-identity-agent``.
    """

    name: ClusterName
    """Its name."""


class ClusterArgs(Args):
    """A new EKS cluster, or the one that is there."""

    account: AwsAccount
    """Where it is."""
    cluster_name: ClusterName | None = None
    """Its name, which people and log groups know; the component's when left out."""
    version: KubernetesVersion = "1.35"
    """Kubernetes' version. It goes up by one minor at a time; nodes follow the control plane."""
    subnet_ids: tuple[In[str], ...] = ()
    """Private subnets in at least two zones, in which the API server has its addresses."""
    service_cidr: str = "172.20.0.0/16"
    """The range of Services' addresses, outside of the VPC's; it can never change."""
    deployer_arn: In[str] | None = None
    """The role with which this is deployed; it gets the cluster's administration, for whoever makes
    a cluster doesn't have it by that alone."""
    admins: tuple[RoleArn, ...] = ()
    """More roles that administer it."""
    public_access_cidrs: tuple[Annotated[str, AfterValidator(_public_range)], ...] = ()
    """Ranges on the internet from which the API server can be reached; none when left out. From
    inside of the VPC it always can."""
    key_arn: In[str] | None = None
    """The KMS key that encrypts Secrets once more. Without this key the cluster is of no use."""
    deletion_protection: bool = True
    """Whether the cluster refuses to be deleted."""
    log_retention_days: int = Field(default=90, ge=1)
    """How long the control plane's logs are kept."""
    node_policy: In[str] | None = None
    """More that nodes may do, as JSON."""
    boundary_arn: In[str] | None = None
    """The permissions boundary of the roles that are made."""
    existing: ExistingCluster | None = None
    """Use this cluster; of the other fields only ``account``, ``node_policy`` and ``boundary_arn``
    count then."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if len(set(self.admins)) < len(self.admins):
            raise ValueError(f"admins={list(self.admins)}: each role at most once")
        if self.existing is not None:
            return self
        if len(self.subnet_ids) < 2:
            raise ValueError("subnet_ids: name subnets in at least two zones, for EKS needs two")
        if self.deployer_arn is None:
            raise ValueError(
                "deployer_arn is missing: nobody could deploy into the cluster; write the ARN of "
                "the role that runs pulumi (aws sts get-caller-identity names its session)"
            )
        if not isinstance(self.deployer_arn, pulumi.Output):
            _role_arn(self.deployer_arn)
            if self.deployer_arn in self.admins:
                raise ValueError(f"admins={list(self.admins)}: deployer_arn is one already")
        return self
