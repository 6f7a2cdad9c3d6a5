"""The cacher: turns the registrations in team namespaces into what the platform knows of them."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from ..domain.images import ImageRef
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..foundation import Binding, Foundation, Grant
from ..kube import access, network, workload
from . import control

PORT = 8081
_NAME = "cacher"
_SELECTOR = {"app.kubernetes.io/name": _NAME}
_WATCH: access.Rules = [
    {"api_groups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["list", "watch"]},
    {
        "api_groups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": ["list", "watch"],
    },
    {"api_groups": ["apps"], "resources": ["deployments"], "verbs": ["list", "watch"]},
]
_IN_TEAMS: access.Rules = [
    {"api_groups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]},
    {"api_groups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "patch"]},
    {"api_groups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": ["get"]},
]
_USERS_SECRET = "redis-users"  # noqa: S105 - the name of a Secret
_USERS_PATH = "/etc/llm-platform/redis-users"


class CacherArgs(Args):
    """How the cacher runs."""

    namespace: In[str]
    """Where it runs."""
    image: ImageRef
    """The services' image."""
    foundation: Foundation
    """The database and Redis that it writes to, and the bucket that it clears of old results."""
    team_namespaces: Mapping[K8sName, In[str]] = Field(default_factory=dict)
    """Each team's namespace, where it may write a condition on a registration and wake workers."""
    team_redis_passwords: Mapping[K8sName, In[str]] = Field(default_factory=dict)
    """The password of each team's user of Redis, which it makes and keeps."""
    scaler_namespace: In[str] = "keda"
    """Where KEDA runs, which asks it how many tasks are outstanding."""
    monitoring_namespace: In[str] = "llm-platform-monitoring"
    """Where Prometheus runs, which reads its metrics."""
    memory: Quantity = "256Mi"
    """Its memory."""


class Cacher(pulumi.ComponentResource):
    """Watches registrations, keeps the records of endpoints true, and counts outstanding tasks.

    Creates a Deployment of one (two would write against each other), a Service, Secrets with its
    credentials and the passwords of the teams' users of Redis, a ServiceAccount that may watch
    registrations everywhere, annotate those of the teams and wake their workers, and
    NetworkPolicies.
    """

    url: pulumi.Output[str]
    """Its address for programs in the cluster."""
    deployment: k8s.apps.v1.Deployment

    def __init__(
        self, name: str, args: CacherArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Cacher", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        binding = args.foundation.identity.bind(
            name,
            workload_name=_NAME,
            namespace=args.namespace,
            grants=[
                Grant.use_database(args.foundation.database),
                Grant.use_redis(args.foundation.redis),
                Grant.clear_bucket(args.foundation.bucket),
                *args.foundation.on_queues(Grant.count_queue),
            ],
            opts=child,
        )
        account = access.service_account(name, _NAME, args.namespace, child)
        rights = access.cluster_rules(name, _NAME, args.namespace, _WATCH, child)
        for team, namespace in args.team_namespaces.items():
            access.namespace_rules(
                f"{name}-{team}",
                account=_NAME,
                account_namespace=args.namespace,
                namespace=namespace,
                rules=_IN_TEAMS,
                opts=child,
            )
        users = k8s.core.v1.Secret(
            f"{name}-redis-users",
            metadata=workload.metadata(_USERS_SECRET, args.namespace, component=control.COMPONENT),
            type="Opaque",
            string_data={
                team: pulumi.Output.secret(password)
                for team, password in args.team_redis_passwords.items()
            },
            opts=pulumi.ResourceOptions(
                parent=self, additional_secret_outputs=["data", "stringData"]
            ),
        )
        paths = _paths(name, args, child)
        self.deployment = k8s.apps.v1.Deployment(
            f"{name}-deployment",
            metadata=workload.metadata(_NAME, args.namespace, component=control.COMPONENT),
            spec=control.deployment_spec(_service(args, binding), surge=False),
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[account, rights, users, *paths, *binding.needs]
            ),
        )
        service = k8s.core.v1.Service(
            f"{name}-service",
            metadata={
                **workload.metadata(_NAME, args.namespace, component=control.COMPONENT),
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec={
                "selector": _SELECTOR,
                "ports": [{"name": "http", "port": 80, "target_port": control.PORT_NAME}],
            },
            opts=child,
        )
        self.url = service.metadata.apply(lambda meta: f"http://{meta.name}.{meta.namespace}.svc")
        self.register_outputs({"url": self.url})


def _paths(name: str, args: CacherArgs, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
    data = args.foundation.paths
    return [
        network.allow_ingress(
            f"{name}-from-scaling",
            name="cacher-from-scaling",
            namespace=args.namespace,
            pods={"match_labels": _SELECTOR},
            peers=[
                network.namespace_peer(args.scaler_namespace),
                network.namespace_peer(args.monitoring_namespace),
            ],
            ports=[PORT],
            opts=opts,
        ),
        network.allow_egress(
            f"{name}-to-what-it-uses",
            name="cacher-to-what-it-uses",
            namespace=args.namespace,
            pods={"match_labels": _SELECTOR},
            rules=[
                *network.together(data.database, data.redis, data.bucket, data.tasks),
                ([], [443, 6443]),
            ],
            opts=opts,
        ),
    ]


def _service(args: CacherArgs, binding: Binding) -> control.Service:
    settings: dict[str, In[str]] = {
        "LLM_PLATFORM_PORT": str(PORT),
        "LLM_PLATFORM_DRAIN_SECONDS": "10",
        "LLM_PLATFORM_BROKER": args.foundation.broker,
        "LLM_PLATFORM_BUCKET": args.foundation.bucket.name,
        "LLM_PLATFORM_REDIS_USERS_DIR": _USERS_PATH,
        **args.foundation.service_settings,
    }
    return control.Service(
        name=_NAME,
        image=args.image,
        port=PORT,
        memory=args.memory,
        env=binding.env,
        settings=settings,
        # It follows changes of the files by itself.
        volumes=[
            {
                "name": "redis-users",
                "secret": {"secret_name": _USERS_SECRET, "default_mode": 0o440},
            },
            *binding.volumes,
        ],
        mounts=[
            {"name": "redis-users", "mount_path": _USERS_PATH, "read_only": True},
            *binding.mounts,
        ],
        config_hash=workload.output_hash(binding.config_hash, settings),
    )
