"""Who deploys a team's endpoints: an account that may do that in its namespace and nothing else."""

import base64
import json
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import yaml

from ..contracts import In
from . import access, workload

_WRITE = ["get", "list", "watch", "create", "update", "patch", "delete"]
_READ = ["get", "list", "watch"]
_RULES: access.Rules = [
    {
        "api_groups": [""],
        "resources": ["services", "configmaps", "secrets", "serviceaccounts"],
        "verbs": _WRITE,
    },
    {"api_groups": ["apps"], "resources": ["deployments"], "verbs": _WRITE},
    {"api_groups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": _WRITE},
    {"api_groups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": _WRITE},
    # Credentials of triggers are the platform's: a team refers to them and makes none.
    {"api_groups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": _WRITE},
    {"api_groups": [""], "resources": ["pods"], "verbs": [*_READ, "delete"]},
    {
        "api_groups": [""],
        # Claims are none of an endpoint's, but the engine watches them while it waits for one.
        "resources": [
            *("pods/log", "events", "endpoints", "resourcequotas", "persistentvolumeclaims"),
        ],
        "verbs": _READ,
    },
    {"api_groups": ["apps"], "resources": ["replicasets"], "verbs": _READ},
    {"api_groups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
]


def limited_kubeconfig(
    name: str, kubeconfig: In[str], namespace: pulumi.Output[str], opts: pulumi.ResourceOptions
) -> pulumi.Output[str]:
    """Create the account, its rights and its token, and return the kubeconfig that uses them.

    Args:
        name: What the names of the resources begin with.
        kubeconfig: One of the same cluster, of which the address is taken but not the rights.
        namespace: The namespace that it is limited to.
        opts: Options of the resources, their parent above all.
    """
    meta = workload.metadata("deployer", namespace, component="team")
    account = k8s.core.v1.ServiceAccount(
        f"{name}-deployer", metadata=meta, automount_service_account_token=False, opts=opts
    )
    role = k8s.rbac.v1.Role(f"{name}-deployer-role", metadata=meta, rules=list(_RULES), opts=opts)
    k8s.rbac.v1.RoleBinding(
        f"{name}-deployer-binding",
        metadata=meta,
        role_ref={
            "api_group": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": role.metadata["name"],
        },
        subjects=[
            {
                "kind": "ServiceAccount",
                "name": account.metadata["name"],
                "namespace": namespace,
            }
        ],
        opts=opts,
    )
    token = k8s.core.v1.Secret(
        f"{name}-deployer-token",
        metadata={
            **workload.metadata("deployer-token", namespace, component="team"),
            "annotations": {"kubernetes.io/service-account.name": account.metadata["name"]},
        },
        type="kubernetes.io/service-account-token",
        opts=pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(additional_secret_outputs=["data", "stringData"])
        ),
    )
    return pulumi.Output.secret(
        pulumi.Output.all(kubeconfig, namespace, token.data).apply(
            lambda values: _kubeconfig_for(*values)
        )
    )


def _kubeconfig_for(admin: str, namespace: str, token_data: dict[str, str] | None) -> str:
    """Write a kubeconfig for the same cluster with a token of the namespace's deployer."""
    token = base64.b64decode((token_data or {}).get("token", "")).decode()
    if not token and not pulumi.runtime.is_dry_run():
        raise pulumi.RunError(
            f"the cluster hasn't issued the deployer's token in {namespace} yet: "
            "run `pulumi up` again"
        )
    config: dict[str, Any] = yaml.safe_load(admin)
    cluster = config["clusters"][0]
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "users": [{"name": "deployer", "user": {"token": token}}],
            "contexts": [
                {
                    "name": namespace,
                    "context": {
                        "cluster": cluster["name"],
                        "user": "deployer",
                        "namespace": namespace,
                    },
                }
            ],
            "current-context": namespace,
        }
    )
