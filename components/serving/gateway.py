"""The gateway: where every request comes in."""

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain.timeouts import LINGER_SECONDS, Timeouts
from ..foundation import Binding, Grant
from ..kube import access, network, workload
from ..kube.generated_secret import GeneratedSecret, GeneratedSecretArgs
from ..kube.team import KEY_PREFIX
from . import control, gateway_scaling
from .gateway_args import NAME, GatewayArgs

__all__ = ["ADMIN", "PORT", "Gateway", "GatewayArgs", "migration_spec"]

PORT = 8080
ADMIN = "admin"
_KEYS_SECRET = "gateway-keys"  # noqa: S105 - the name of a Secret
_KEYS_PATH = "/etc/llm-platform/keys"
_RULES: access.Rules = [
    {
        "api_groups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": ["list", "watch"],
    }
]


class Gateway(pulumi.ComponentResource):
    """Takes requests, checks their keys, and sends each to the worker with the least to do.

    Creates the migration Job of the database and, after it, a Deployment; a Service, a
    PodDisruptionBudget, Secrets with keys and credentials, a ServiceAccount that may watch
    EndpointSlices, and NetworkPolicies. Where the number of gateways follows the load, an HPA or a
    ScaledObject besides.
    """

    url: pulumi.Output[str]
    """Its address for programs in the cluster."""
    admin_key: pulumi.Output[str]
    """A key that may call every endpoint; secret."""
    namespace: pulumi.Output[str]
    service: pulumi.Output[str]
    """Its Service, whose port is 80."""
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
            workload_name=NAME,
            namespace=args.namespace,
            grants=[
                Grant.use_database(args.foundation.database),
                Grant.use_redis(args.foundation.redis),
                Grant.write_bucket(args.foundation.bucket),
                *args.foundation.on_queues(Grant.send_queue),
            ],
            opts=self._child,
        )
        account = access.service_account(name, NAME, args.namespace, self._child)
        rights = access.cluster_rules(name, NAME, args.namespace, _RULES, self._child)
        paths = self._paths()
        spec = _service(args, binding)
        self.migration = self._migrate(spec, binding, [account, *binding.needs, *paths])
        self.deployment = k8s.apps.v1.Deployment(
            f"{name}-deployment",
            metadata=self._metadata(NAME),
            spec=control.deployment_spec(spec, surge=True),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[self.migration, keys, account, rights],
                # Whoever scales it owns the number; ours is the one that it begins with.
                ignore_changes=["spec.replicas"] if args.scales else None,
                custom_timeouts=pulumi.CustomTimeouts(
                    create="10m",
                    update=f"{spec.grace_seconds + 600}s",
                    delete=f"{spec.grace_seconds + 120}s",
                ),
            ),
        )
        service = self._service()
        if args.scales:
            # Custom resources wait for what defines them, which is what the caller waits for.
            after = pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(parent=self, depends_on=[self.deployment, service]),
                pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None),
            )
            gateway_scaling.scale(name, args, after)
        self.url = service.metadata.apply(lambda meta: f"http://{meta.name}.{meta.namespace}.svc")
        self.namespace = pulumi.Output.from_input(args.namespace)
        self.service = service.metadata.apply(lambda meta: str(meta.name))
        self.register_outputs(
            {
                "url": self.url,
                "admin_key": self.admin_key,
                "namespace": self.namespace,
                "service": self.service,
            }
        )

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

    def _migrate(
        self, spec: control.Service, binding: Binding, needs: list[pulumi.Resource]
    ) -> k8s.batch.v1.Job:
        job = migration_spec(spec, binding)
        # A Job can't be changed, so another one has another name.
        name = pulumi.Output.format("{0}-migrate-{1}", NAME, workload.output_hash(job))
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
            metadata=self._metadata(NAME),
            spec={"max_unavailable": 1, "selector": {"match_labels": _SELECTOR}},
            opts=self._child,
        )
        return k8s.core.v1.Service(
            f"{self._name}-service",
            metadata={
                **self._metadata(NAME),
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
        data = self._args.foundation.paths
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
                rules=data.database,
                opts=self._child,
            ),
            network.allow_egress(
                f"{self._name}-to-what-it-uses",
                name="gateway-to-what-it-uses",
                namespace=self._args.namespace,
                pods={"match_labels": _SELECTOR},
                rules=[
                    *network.together(data.database, data.redis, data.bucket, data.tasks),
                    ([network.team_peer()], [5000]),
                    # The API server has no name that a policy could say.
                    ([], [443, 6443]),
                ],
                opts=self._child,
            ),
        ]


_SELECTOR = {"app.kubernetes.io/name": NAME}
_MIGRATION_SELECTOR = {"app.kubernetes.io/name": f"{NAME}-migrate"}


def _service(args: GatewayArgs, binding: Binding) -> control.Service:
    timeouts = Timeouts(args.request_timeout_seconds)
    settings: dict[str, In[str]] = {
        "LLM_PLATFORM_PORT": str(PORT),
        "LLM_PLATFORM_KEYS_DIR": _KEYS_PATH,
        "LLM_PLATFORM_DRAIN_SECONDS": str(timeouts.drain_seconds),
        "LLM_PLATFORM_ROUTING": args.routing,
        "LLM_PLATFORM_BROKER": args.foundation.broker,
        "LLM_PLATFORM_BUCKET": args.foundation.bucket.name,
        **args.foundation.service_settings,
    }
    return control.Service(
        name=NAME,
        image=args.image,
        port=PORT,
        cpu=args.cpu or ("500m" if args.scales else "50m"),
        memory=args.memory,
        replicas=args.replicas,
        env=binding.env,
        settings=settings,
        volumes=[
            {"name": "keys", "secret": {"secret_name": _KEYS_SECRET, "default_mode": 0o440}},
            *binding.volumes,
        ],
        mounts=[
            {"name": "keys", "mount_path": _KEYS_PATH, "read_only": True},
            *binding.mounts,
        ],
        grace_seconds=timeouts.grace_period_seconds + LINGER_SECONDS,
        config_hash=workload.output_hash(binding.config_hash, settings),
    )


def migration_spec(service: control.Service, binding: Binding) -> k8s.batch.v1.JobSpecArgsDict:
    """Return the Job that brings the database to what this version of the gateway expects."""
    command = workload.program("services.gateway", "migrate")
    migrating = control.Service(
        name="migrate",
        image=service.image,
        port=service.port,
        memory=service.memory,
        env=service.env,
        settings=service.settings,
        volumes=binding.volumes,
        mounts=binding.mounts,
    )
    return {
        "backoff_limit": 10,
        "active_deadline_seconds": 600,
        "template": {
            # Labels of its own: as one of the gateway's pods it would be routed to, and would
            # stop the disruption budget from being computed.
            "metadata": {
                # It would never end beside a mesh's proxy, which never does.
                "labels": {**_MIGRATION_SELECTOR, "sidecar.istio.io/inject": "false"},
                "annotations": {"sidecar.istio.io/inject": "false"},
            },
            "spec": {
                **control.pod(migrating, [control.container(migrating, command)]),
                # Some clouds know by it what the pod may do; the Kubernetes API it never asks.
                "service_account_name": service.name,
                "automount_service_account_token": False,
                "restart_policy": "OnFailure",
            },
        },
    }
