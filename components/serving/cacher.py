"""The cacher: turns the registrations in team namespaces into the gateway's records."""

from collections.abc import Mapping

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
]
_ANNOTATE: access.Rules = [
    {"api_groups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}
]


class CacherArgs(Args):
    """How the cacher runs."""

    namespace: In[str]
    """Where it runs."""
    image: ImageRef
    """The services' image."""
    foundation: Foundation
    """The database and Redis that it writes to."""
    team_namespaces: Mapping[K8sName, In[str]] = Field(default_factory=dict)
    """Each team's namespace, where it may write a condition on a registration."""
    memory: Quantity = "256Mi"
    """Its memory."""


class Cacher(pulumi.ComponentResource):
    """Watches registrations and keeps the gateway's records of endpoints true.

    Creates a Deployment of one (two would write against each other), a Secret with credentials, a
    ServiceAccount that may watch registrations everywhere and annotate those of the teams, and a
    NetworkPolicy.
    """

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
                rules=_ANNOTATE,
                opts=child,
            )
        path = network.allow_egress(
            f"{name}-to-what-it-uses",
            name="cacher-to-what-it-uses",
            namespace=args.namespace,
            pods={"match_labels": _SELECTOR},
            rules=[
                ([network.namespace_peer(args.foundation.namespace)], [5432, 6379]),
                ([], [443, 6443]),
            ],
            opts=child,
        )
        self.deployment = k8s.apps.v1.Deployment(
            f"{name}-deployment",
            metadata=workload.metadata(_NAME, args.namespace, component=control.COMPONENT),
            spec=control.deployment_spec(_service(args, binding), surge=False),
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[account, rights, path, *binding.needs]
            ),
        )
        self.register_outputs({})


def _service(args: CacherArgs, binding: Binding) -> control.Service:
    settings = {"LLM_PLATFORM_PORT": str(PORT), "LLM_PLATFORM_DRAIN_SECONDS": "10"}
    return control.Service(
        name=_NAME,
        image=args.image,
        port=PORT,
        memory=args.memory,
        env=binding.env,
        settings=settings,
        config_hash=workload.output_hash(binding.config_hash, settings),
    )
