"""What an add-on needs that answers for a part of the Kubernetes API."""

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain import labels
from ..domain.names import safe_name
from . import workload
from .addon_pod import COMPONENT, AddonPod, deployment_spec, service_spec

_RBAC = "rbac.authorization.k8s.io"


def delegated_rights(
    name: str, account: str, namespace: In[str], opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Let it ask the API server who calls it and what the caller may do."""
    subjects: list[k8s.rbac.v1.SubjectArgsDict] = [
        {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    ]
    own = safe_name(labels.PREFIX, account)
    return [
        k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-delegator",
            metadata=_metadata(f"{own}-delegator"),
            role_ref={"api_group": _RBAC, "kind": "ClusterRole", "name": "system:auth-delegator"},
            subjects=subjects,
            opts=opts,
        ),
        k8s.rbac.v1.RoleBinding(
            f"{name}-auth-reader",
            metadata=workload.metadata(f"{own}-auth-reader", "kube-system", component=COMPONENT),
            role_ref={
                "api_group": _RBAC,
                "kind": "Role",
                "name": "extension-apiserver-authentication-reader",
            },
            subjects=subjects,
            opts=opts,
        ),
    ]


def metrics_readers(name: str, group: str, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Let the cluster's own autoscaler read a metrics API."""
    own = safe_name(labels.PREFIX, group.replace(".", "-"), "reader")
    role = k8s.rbac.v1.ClusterRole(
        f"{name}-reader",
        metadata=_metadata(own),
        rules=[{"api_groups": [group], "resources": ["*"], "verbs": ["get", "list"]}],
        opts=opts,
    )
    binding = k8s.rbac.v1.ClusterRoleBinding(
        f"{name}-reader-binding",
        metadata=_metadata(own),
        role_ref={"api_group": _RBAC, "kind": "ClusterRole", "name": role.metadata["name"]},
        subjects=[
            {
                "kind": "ServiceAccount",
                "name": "horizontal-pod-autoscaler",
                "namespace": "kube-system",
            }
        ],
        opts=opts,
    )
    return [role, binding]


def serve(
    name: str,
    pod: AddonPod,
    namespace: In[str],
    needs: Sequence[pulumi.Resource],
    parent: pulumi.Resource,
) -> k8s.core.v1.Service:
    """Run the server of a part of the API, and put a Service before it.

    Args:
        name: What the names of both resources begin with.
        pod: The server.
        namespace: Where it runs.
        needs: What must stand before it starts.
        parent: The add-on's component.
    """
    metadata = workload.metadata(pod.name, namespace, component=COMPONENT)
    deployment = k8s.apps.v1.Deployment(
        f"{name}-deployment",
        metadata=metadata,
        spec=deployment_spec(pod),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=needs),
    )
    return k8s.core.v1.Service(
        f"{name}-service",
        metadata=metadata,
        spec=service_spec(pod.selector, port=443, target=pod.port),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[deployment]),
    )


def api_service(
    name: str,
    *,
    group: str,
    version: str,
    service: str,
    namespace: In[str],
    opts: pulumi.ResourceOptions,
) -> k8s.apiregistration.v1.APIService:
    """Hand a part of the API to a Service; of each part there is one in a cluster.

    The server makes its own certificate at its start, which nobody has signed, so the API server
    can't check it. What it answers are figures, in a namespace that only the platform deploys to.
    """
    return k8s.apiregistration.v1.APIService(
        f"{name}-{version}",
        metadata=_metadata(f"{version}.{group}"),
        spec={
            "group": group,
            "version": version,
            "group_priority_minimum": 100,
            "version_priority": 200 if version == "v1beta2" else 100,
            "insecure_skip_tls_verify": True,
            "service": {"name": service, "namespace": namespace, "port": 443},
        },
        opts=opts,
    )


def _metadata(name: str) -> k8s.meta.v1.ObjectMetaArgsDict:
    return {"name": name, "labels": labels.common(COMPONENT, name)}
