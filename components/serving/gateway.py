"""The gateway: where every request comes in."""

from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from ..domain.images import ImageRef
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..domain.timeouts import LINGER_SECONDS, Timeouts
from ..foundation import Binding, Foundation, Grant
from ..kube import access, network, workload
from ..kube.generated_secret import GeneratedSecret, GeneratedSecretArgs
from ..kube.team import KEY_PREFIX
from . import control

PORT = 8080
ADMIN = "admin"
_NAME = "gateway"
_KEYS_SECRET = "gateway-keys"  # noqa: S105 - the name of a Secret
_KEYS_PATH = "/etc/llm-platform/keys"
_RULES: access.Rules = [
    {
        "api_groups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": ["list", "watch"],
    }
]


class GatewayArgs(Args):
    """How the gateway runs."""

    namespace: In[str]
    """Where it runs."""
    image: ImageRef
    """The services' image."""
    foundation: Foundation
    """The database and Redis that it uses."""
    team_keys: Mapping[K8sName, In[str]] = Field(default_factory=dict)
    """The gateway key of each team."""
    replicas: int = Field(default=1, ge=1, le=100)
    """Gateways that share the load."""
    memory: Quantity = "256Mi"
    """The memory of each."""
    node_port: int | None = Field(default=None, ge=30000, le=32767)
    """A port on every node that leads to it; none when left out."""
    request_timeout_seconds: int = Field(default=600, ge=1, le=86400)
    """The longest request: how long a stopping gateway waits for open ones."""


class Gateway(pulumi.ComponentResource):
    """Takes requests, checks their keys, and sends each to the worker with the least to do.

    Creates the migration Job of the database and, after it, a Deployment; a Service, a
    PodDisruptionBudget, Secrets with keys and credentials, a ServiceAccount that may watch
    EndpointSlices, and NetworkPolicies.
    """

    url: pulumi.Output[str]
    """Its address for programs in the cluster."""
    admin_key: pulumi.Output[str]
    """A key that may call every endpoint; secret."""
    deployment: k8s.apps.v1.Deployment
    migration: k8s.batch.v1.Job

    def __init__(
        self, name: str, args: GatewayArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Gateway", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.admin_key = self._admin_key()
        keys = self._keys_secret()
        binding = args.foundation.identity.bind(
            name,
            workload_name=_NAME,
            namespace=args.namespace,
            grants=[
                Grant.use_database(args.foundation.database),
                Grant.use_redis(args.foundation.redis),
            ],
            opts=self._child,
        )
        account = access.service_account(name, _NAME, args.namespace, self._child)
        rights = access.cluster_rules(name, _NAME, args.namespace, _RULES, self._child)
        paths = self._paths()
        spec = _service(args, binding)
        self.migration = self._migrate(spec, [*binding.needs, *paths])
        self.deployment = k8s.apps.v1.Deployment(
            f"{name}-deployment",
            metadata=self._metadata(_NAME),
            spec=control.deployment_spec(spec, surge=True),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[self.migration, keys, account, rights],
                custom_timeouts=pulumi.CustomTimeouts(
                    create="10m",
                    update=f"{spec.grace_seconds + 600}s",
                    delete=f"{spec.grace_seconds + 120}s",
                ),
            ),
        )
        service = self._service()
        self.url = service.metadata.apply(lambda meta: f"http://{meta.name}.{meta.namespace}.svc")
        self.register_outputs({"url": self.url, "admin_key": self.admin_key})

    def _metadata(self, name: In[str]) -> k8s.meta.v1.ObjectMetaArgsDict:
        return workload.metadata(name, self._args.namespace, component=control.COMPONENT)

    def _admin_key(self) -> pulumi.Output[str]:
        secret = GeneratedSecret(
            f"{self._name}-admin-key",
            GeneratedSecretArgs(
                namespace=self._args.namespace,
                name="gateway-admin-key",
                keys=("key",),
                prefix=KEY_PREFIX,
            ),
            self._child,
        )
        return secret.values["key"]

    def _keys_secret(self) -> k8s.core.v1.Secret:
        """Write every declared key as a file; the gateway follows its changes by itself."""
        keys: dict[str, In[str]] = {**self._args.team_keys, ADMIN: self.admin_key}
        return k8s.core.v1.Secret(
            f"{self._name}-keys",
            metadata=self._metadata(_KEYS_SECRET),
            type="Opaque",
            string_data={owner: pulumi.Output.secret(key) for owner, key in keys.items()},
            opts=pulumi.ResourceOptions(
                parent=self, additional_secret_outputs=["data", "stringData"]
            ),
        )

    def _migrate(self, spec: control.Service, needs: list[pulumi.Resource]) -> k8s.batch.v1.Job:
        job = migration_spec(spec)
        # A Job can't be changed, so another one has another name.
        name = pulumi.Output.format("{0}-migrate-{1}", _NAME, workload.output_hash(job))
        return k8s.batch.v1.Job(
            f"{self._name}-migration",
            metadata={
                **self._metadata(name),
                # One that failed is made anew by the next update, which would else wait for it.
                "annotations": {"pulumi.com/replaceUnready": "true"},
            },
            spec=job,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=needs,
                custom_timeouts=pulumi.CustomTimeouts(create="15m"),
            ),
        )

    def _service(self) -> k8s.core.v1.Service:
        args = self._args
        port: k8s.core.v1.ServicePortArgsDict = {"name": "http", "port": 80, "target_port": "http"}
        if args.node_port:
            port["node_port"] = args.node_port
        k8s.policy.v1.PodDisruptionBudget(
            f"{self._name}-disruption",
            metadata=self._metadata(_NAME),
            spec={"max_unavailable": 1, "selector": {"match_labels": _SELECTOR}},
            opts=self._child,
        )
        return k8s.core.v1.Service(
            f"{self._name}-service",
            metadata={
                **self._metadata(_NAME),
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec={
                "type": "NodePort" if args.node_port else "ClusterIP",
                "selector": _SELECTOR,
                "ports": [port],
            },
            opts=self._child,
        )

    def _paths(self) -> list[pulumi.Resource]:
        data = [network.namespace_peer(self._args.foundation.namespace)]
        return [
            network.allow_ingress(
                f"{self._name}-from-clients",
                name="gateway-from-clients",
                namespace=self._args.namespace,
                pods={"match_labels": _SELECTOR},
                peers=[],
                ports=[PORT],
                opts=self._child,
            ),
            network.allow_egress(
                f"{self._name}-migration-to-database",
                name="gateway-migration-to-database",
                namespace=self._args.namespace,
                pods={"match_labels": _MIGRATION_SELECTOR},
                rules=[(data, [5432])],
                opts=self._child,
            ),
            network.allow_egress(
                f"{self._name}-to-what-it-uses",
                name="gateway-to-what-it-uses",
                namespace=self._args.namespace,
                pods={"match_labels": _SELECTOR},
                rules=[
                    (data, [5432, 6379]),
                    ([network.team_peer()], [5000]),
                    # The API server has no name that a policy could say.
                    ([], [443, 6443]),
                ],
                opts=self._child,
            ),
        ]


_SELECTOR = {"app.kubernetes.io/name": _NAME}
_MIGRATION_SELECTOR = {"app.kubernetes.io/name": f"{_NAME}-migrate"}


def _service(args: GatewayArgs, binding: Binding) -> control.Service:
    timeouts = Timeouts(args.request_timeout_seconds)
    settings = {
        "LLM_PLATFORM_PORT": str(PORT),
        "LLM_PLATFORM_KEYS_DIR": _KEYS_PATH,
        "LLM_PLATFORM_DRAIN_SECONDS": str(timeouts.drain_seconds),
    }
    return control.Service(
        name=_NAME,
        image=args.image,
        port=PORT,
        memory=args.memory,
        replicas=args.replicas,
        env=binding.env,
        settings=settings,
        volumes=[{"name": "keys", "secret": {"secret_name": _KEYS_SECRET, "default_mode": 0o440}}],
        mounts=[{"name": "keys", "mount_path": _KEYS_PATH, "read_only": True}],
        grace_seconds=timeouts.grace_period_seconds + LINGER_SECONDS,
        config_hash=workload.output_hash(binding.config_hash, settings),
    )


def migration_spec(service: control.Service) -> k8s.batch.v1.JobSpecArgsDict:
    """Return the Job that brings the database to what this version of the gateway expects."""
    command = ["python3", "-m", "services.gateway", "migrate"]
    migrating = control.Service(
        name="migrate",
        image=service.image,
        port=service.port,
        memory=service.memory,
        env=service.env,
        settings=service.settings,
    )
    return {
        "backoff_limit": 10,
        "active_deadline_seconds": 600,
        "template": {
            # Labels of its own: as one of the gateway's pods it would be routed to, and would
            # stop the disruption budget from being computed.
            "metadata": {"labels": _MIGRATION_SELECTOR},
            "spec": {
                **control.pod(migrating, [control.container(migrating, command)]),
                "automount_service_account_token": False,
                "restart_policy": "OnFailure",
            },
        },
    }
