"""A team: the unit of tenancy."""

import base64
import json
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import yaml
from pydantic import Field

from ..contracts import In
from ..domain.accelerators import GPU_RESOURCE
from ..domain.args import Args
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from . import network, workload
from .generated_secret import GeneratedSecret, GeneratedSecretArgs
from .namespace import Namespace, NamespaceArgs

KEY_PREFIX = "lp-"
"""What every gateway key begins with, so that a leaked one is recognised."""

_OWN_SECRETS = 2
"""A team's own Secrets: its gateway key and its deployer's token."""
_SECRETS_OF_ENDPOINT = 2
"""What an endpoint was granted, and variables that may be secret."""
_PREEMPTING = ["system-node-critical", "system-cluster-critical"]
"""The priority classes of every cluster, whose pods take the place of everybody else's."""

_WRITE = ["get", "list", "watch", "create", "update", "patch", "delete"]
_READ = ["get", "list", "watch"]
_DEPLOYER_RULES: list[k8s.rbac.v1.PolicyRuleArgsDict] = [
    {
        "api_groups": [""],
        "resources": ["services", "configmaps", "secrets", "serviceaccounts"],
        "verbs": _WRITE,
    },
    {"api_groups": ["apps"], "resources": ["deployments"], "verbs": _WRITE},
    {"api_groups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": _WRITE},
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


class TeamArgs(Args):
    """What a team may use."""

    name: K8sName
    """The team's name; its namespace is ``team-<name>``."""
    gpus: int | None = Field(default=None, ge=1)
    """GPUs that its workers may ask for together; none when left out."""
    endpoints: int = Field(default=10, ge=1)
    """Endpoints that it may have; its Services, ConfigMaps and Secrets are limited to match."""
    workers: int = Field(default=50, ge=1)
    """Pods that it may have at once: its workers, and those that start or drain while an
    endpoint rolls.""" ""
    cpu: Quantity | None = None
    """Processors that its pods may ask for together, with one more worker for each endpoint that
    rolls; no limit when left out."""
    memory: Quantity | None = None
    """Memory that its pods may ask for together, reckoned in the same way; no limit when left
    out."""
    kubeconfig: In[str]
    """The cluster's kubeconfig, of which the team gets the address but not the rights."""
    platform_namespace: In[str]
    """Where the gateway runs, which alone may call the team's workers."""
    data_namespace: In[str]
    """Where the weights' bucket runs."""
    weights_port: int = 7071
    """The port on which the bucket is read."""


class Team(pulumi.ComponentResource):
    """A namespace with its quota, its network paths, its gateway key and a limited kubeconfig.

    Creates a Namespace, two ResourceQuotas, NetworkPolicies, a Secret with the gateway key, and a
    ServiceAccount with Role, RoleBinding and token for the kubeconfig. The kubeconfig can't change
    quota, network policies or roles, nor see another namespace, nor make pods that preempt others.
    """

    namespace: pulumi.Output[str]
    gateway_key: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    scope: Namespace
    """The namespace as a resource, for ``deleted_with``."""

    def __init__(
        self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Team", name, None, opts)
        self.scope = Namespace(
            f"{name}-scope",
            NamespaceArgs(name=f"team-{args.name}", team=args.name),
            pulumi.ResourceOptions(parent=self),
        )
        self.namespace = self.scope.name
        self._child = pulumi.ResourceOptions(parent=self, deleted_with=self.scope.namespace)
        self._quota(name, args)
        self._paths(name, args)
        key = GeneratedSecret(
            f"{name}-gateway-key",
            GeneratedSecretArgs(
                namespace=self.namespace, name="gateway-key", keys=("key",), prefix=KEY_PREFIX
            ),
            self._child,
        )
        self.gateway_key = key.values["key"]
        self.kubeconfig = self._limited_kubeconfig(name, args)
        self.register_outputs(
            {
                "namespace": self.namespace,
                "gateway_key": self.gateway_key,
                "kubeconfig": self.kubeconfig,
            }
        )

    def _quota(self, name: str, args: TeamArgs) -> None:
        k8s.core.v1.ResourceQuota(
            f"{name}-quota",
            metadata=workload.metadata("quota", self.namespace, component="team"),
            spec={"hard": _limits(args)},
            opts=self._child,
        )
        k8s.core.v1.ResourceQuota(
            f"{name}-no-preemption",
            metadata=workload.metadata("no-preemption", self.namespace, component="team"),
            spec={
                "hard": {"pods": "0"},
                "scope_selector": {
                    "match_expressions": [
                        {"scope_name": "PriorityClass", "operator": "In", "values": _PREEMPTING}
                    ]
                },
            },
            opts=self._child,
        )

    def _paths(self, name: str, args: TeamArgs) -> None:
        network.allow_ingress(
            f"{name}-from-gateway",
            name="from-gateway",
            namespace=self.namespace,
            pods=network.endpoint_pods(),
            peers=[network.namespace_peer(args.platform_namespace)],
            ports=[5000],
            opts=self._child,
        )
        network.allow_egress(
            f"{name}-to-weights",
            name="to-weights",
            namespace=self.namespace,
            pods=network.endpoint_pods(),
            rules=[([network.namespace_peer(args.data_namespace)], [args.weights_port])],
            opts=self._child,
        )

    def _limited_kubeconfig(self, name: str, args: TeamArgs) -> pulumi.Output[str]:
        account = k8s.core.v1.ServiceAccount(
            f"{name}-deployer",
            metadata=workload.metadata("deployer", self.namespace, component="team"),
            automount_service_account_token=False,
            opts=self._child,
        )
        role = k8s.rbac.v1.Role(
            f"{name}-deployer-role",
            metadata=workload.metadata("deployer", self.namespace, component="team"),
            rules=_DEPLOYER_RULES,
            opts=self._child,
        )
        k8s.rbac.v1.RoleBinding(
            f"{name}-deployer-binding",
            metadata=workload.metadata("deployer", self.namespace, component="team"),
            role_ref={
                "api_group": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": role.metadata["name"],
            },
            subjects=[
                {
                    "kind": "ServiceAccount",
                    "name": account.metadata["name"],
                    "namespace": self.namespace,
                }
            ],
            opts=self._child,
        )
        token = k8s.core.v1.Secret(
            f"{name}-deployer-token",
            metadata={
                **workload.metadata("deployer-token", self.namespace, component="team"),
                "annotations": {"kubernetes.io/service-account.name": account.metadata["name"]},
            },
            type="kubernetes.io/service-account-token",
            opts=pulumi.ResourceOptions(
                parent=self,
                deleted_with=self.scope.namespace,
                additional_secret_outputs=["data", "stringData"],
            ),
        )
        return pulumi.Output.secret(
            pulumi.Output.all(args.kubeconfig, self.namespace, token.data).apply(
                lambda values: _kubeconfig_for(*values)
            )
        )


def _limits(args: TeamArgs) -> dict[str, str]:
    """Return the most of everything that the team's namespace may hold."""
    limits = {
        f"requests.{GPU_RESOURCE}": str(args.gpus or 0),
        "pods": str(args.workers),
        # Every endpoint has exactly one Service and one registration.
        "services": str(args.endpoints),
        "services.nodeports": "0",
        "services.loadbalancers": "0",
        "persistentvolumeclaims": "0",
        # Kubernetes itself puts kube-root-ca.crt into every namespace.
        "count/configmaps": str(args.endpoints + 1),
        "count/secrets": str(_SECRETS_OF_ENDPOINT * args.endpoints + _OWN_SECRETS),
    }
    if args.cpu:
        limits["requests.cpu"] = args.cpu
    if args.memory:
        limits["requests.memory"] = args.memory
    return limits


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
