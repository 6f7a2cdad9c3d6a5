"""EKS's own add-ons, in two rounds: what nodes need to become ready, and what needs nodes."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pulumi
import pulumi_aws as aws
from pydantic import AfterValidator, Field

from ..contracts import In
from ..domain.args import Args
from ..domain.names import K8sName
from . import policies
from .account import AwsAccount
from .limits import IAM_ROLE, autonamed
from .node_role import attach

_NAMESPACE = "kube-system"


class PodPolicy(Args):
    """Which of AWS's policies an add-on's pods have, by EKS Pod Identity."""

    service_account: K8sName
    """The pods' service account."""
    policy: str
    """AWS's name of the policy, with its path."""


class EksAddon(Args):
    """One add-on."""

    name: K8sName
    """EKS's name of it."""
    version: str | None = Field(default=None, pattern=r"^v[0-9].*-eksbuild\.[0-9]+$")
    """Exactly this version; EKS' default for the cluster's version when it is made, if left out,
    and after that the one that it has."""
    configuration: Mapping[str, Any] = Field(default_factory=dict)
    """Its settings, as ``aws eks describe-addon-configuration`` lists them."""
    pods: PodPolicy | None = None
    """What its pods may do in AWS."""


VPC_CNI = EksAddon(
    name="vpc-cni",
    configuration={
        # Without this NetworkPolicies are taken and do nothing.
        "enableNetworkPolicy": "true",
        # Addresses come by sixteens: as many pods as a node may have, with fewer calls to EC2.
        "env": {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"},
    },
    pods=PodPolicy(service_account="aws-node", policy="AmazonEKS_CNI_Policy"),
)
"""Pods' addresses, and NetworkPolicies."""
KUBE_PROXY = EksAddon(name="kube-proxy")
POD_IDENTITY_AGENT = EksAddon(name="eks-pod-identity-agent")
"""Hands AWS credentials to pods."""
COREDNS = EksAddon(name="coredns")
EBS_CSI = EksAddon(
    name="aws-ebs-csi-driver",
    pods=PodPolicy(
        service_account="ebs-csi-controller-sa", policy="service-role/AmazonEBSCSIDriverPolicy"
    ),
)
"""Disks of pods; ``EncryptedDisks`` is the storage class for them."""
NODE_MONITORING_AGENT = EksAddon(name="eks-node-monitoring-agent")
"""Sees what is wrong with a node, its GPUs above all; node repair acts on what it says."""
BEFORE_NODES = (VPC_CNI, KUBE_PROXY, POD_IDENTITY_AGENT)
"""What a node must find to become ready."""
AFTER_NODES = (COREDNS, EBS_CSI, NODE_MONITORING_AGENT)
"""What runs on nodes, and isn't active before there are any."""


def _each_once(addons: Sequence[EksAddon]) -> Sequence[EksAddon]:
    names = [addon.name for addon in addons]
    if len(set(names)) < len(names):
        raise ValueError(f"addons={names}: each at most once")
    return addons


class ClusterAddonsArgs(Args):
    """Which add-ons, and when."""

    account: AwsAccount
    """Where the cluster is."""
    cluster_name: In[str]
    """The cluster."""
    addons: Annotated[tuple[EksAddon, ...], AfterValidator(_each_once)]
    """The add-ons: ``BEFORE_NODES`` or ``AFTER_NODES``, or others."""
    needs: Sequence[pulumi.Resource] = ()
    """What must stand before them: node groups, for those of the second round."""
    boundary_arn: In[str] | None = None
    """The permissions boundary of their roles."""


class ClusterAddons(pulumi.ComponentResource):
    """One round of EKS's add-ons.

    Creates an Addon for each and, where its pods call AWS, an IAM role that they have by EKS Pod
    Identity. Make it twice: before node groups with ``BEFORE_NODES``, which node groups then wait
    for, and after them with ``AFTER_NODES``. On destroy it is the other way round, so that nodes
    go while the CNI can still give their network interfaces back.
    """

    ready: Sequence[pulumi.Resource]
    """The add-ons; they are active then."""

    def __init__(
        self, name: str, args: ClusterAddonsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:ClusterAddons", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.ready = [self._install(addon) for addon in args.addons]
        self.register_outputs({})

    def _install(self, addon: EksAddon) -> pulumi.Resource:
        args = self._args
        needs = list(args.needs)
        identities: list[aws.eks.AddonPodIdentityAssociationArgsDict] = []
        if addon.pods is not None:
            role, rights = self._role(addon.name, addon.pods)
            needs += rights
            identities.append({"role_arn": role.arn, "service_account": addon.pods.service_account})
        return aws.eks.Addon(
            f"{self._name}-{addon.name}",
            cluster_name=args.cluster_name,
            addon_name=addon.name,
            addon_version=addon.version,
            configuration_values=json.dumps(dict(addon.configuration), sort_keys=True)
            if addon.configuration
            else None,
            pod_identity_associations=identities or None,
            # Nothing of ours is there before, and what people change by hand stays.
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="PRESERVE",
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
        )

    def _role(self, addon: str, pods: PodPolicy) -> tuple[aws.iam.Role, Sequence[pulumi.Resource]]:
        args = self._args
        trust = policies.trust_pods(
            args.account, args.cluster_name, _NAMESPACE, pods.service_account
        )
        role = aws.iam.Role(
            autonamed(self._name, addon, limit=IAM_ROLE),
            assume_role_policy=policies.document(trust),
            description=f"Pods of the add-on {addon}",
            permissions_boundary=args.boundary_arn,
            opts=self._child,
        )
        rights = attach(f"{self._name}-{addon}", role, args.account, [pods.policy], self._child)
        return role, rights
