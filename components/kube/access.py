"""What a service may ask of the Kubernetes API."""

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain import labels
from ..domain.names import safe_name
from . import workload

Rules = Sequence[k8s.rbac.v1.PolicyRuleArgsDict]


def service_account(
    name: str, account: str, namespace: In[str], opts: pulumi.ResourceOptions
) -> k8s.core.v1.ServiceAccount:
    """Create a service account whose token only reaches pods that ask for it."""
    return k8s.core.v1.ServiceAccount(
        f"{name}-account",
        metadata=workload.metadata(account, namespace, component="access"),
        automount_service_account_token=False,
        opts=opts,
    )


def cluster_rules(
    name: str, account: str, namespace: In[str], rules: Rules, opts: pulumi.ResourceOptions
) -> k8s.rbac.v1.ClusterRoleBinding:
    """Allow ``rules`` in every namespace."""
    role_name = safe_name(labels.PREFIX, account)
    meta: k8s.meta.v1.ObjectMetaArgsDict = {
        "name": role_name,
        "labels": labels.common("access", account),
    }
    role = k8s.rbac.v1.ClusterRole(
        f"{name}-cluster-role", metadata=meta, rules=list(rules), opts=opts
    )
    return k8s.rbac.v1.ClusterRoleBinding(
        f"{name}-cluster-binding",
        metadata=meta,
        role_ref={
            "api_group": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role.metadata["name"],
        },
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        opts=opts,
    )


def namespace_rules(
    name: str,
    *,
    account: str,
    account_namespace: In[str],
    namespace: In[str],
    rules: Rules,
    opts: pulumi.ResourceOptions,
) -> k8s.rbac.v1.RoleBinding:
    """Allow ``rules`` in one namespace to a service account of another."""
    meta = workload.metadata(safe_name(labels.PREFIX, account), namespace, component="access")
    role = k8s.rbac.v1.Role(f"{name}-role", metadata=meta, rules=list(rules), opts=opts)
    return k8s.rbac.v1.RoleBinding(
        f"{name}-binding",
        metadata=meta,
        role_ref={
            "api_group": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": role.metadata["name"],
        },
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": account_namespace}],
        opts=opts,
    )
