"""KEDA: scales endpoints from zero and by their queues."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import pulumi
import pulumi_kubernetes as k8s
from pydantic import Tag, model_validator

from ..contracts import In
from ..domain import labels
from ..domain.args import Args
from ..domain.keys import SCALER_USER
from ..domain.names import K8sName
from ..domain.quantities import Quantity
from ..domain.scaling_source import AWS_AUTHENTICATION
from ..foundation import DataPaths
from . import network, rendered, workload
from .addon import BY_SOURCE, Chart, ChartSource, Existing, ExistingSource, release
from .keda_manifests import KedaManifests, manifests_of
from .namespace import Namespace, NamespaceArgs

AUTHENTICATION = "llm-platform-activation"
"""The ClusterTriggerAuthentication with which activation lists are read."""
NAMESPACE = "keda"
OPERATOR_ACCOUNT = "keda-operator"
"""The service account of KEDA's operator, in its chart and in its manifests."""
CHART = Chart(repository="https://kedacore.github.io/charts", chart="keda", version="2.20.2")
_COMPONENT = "keda"


class KedaArgs(Args):
    """How KEDA runs, and what it may ask."""

    source: Annotated[
        ChartSource | Annotated[KedaManifests, Tag("manifests")] | ExistingSource, BY_SOURCE
    ] = CHART
    """Where it comes from."""
    namespace: K8sName = NAMESPACE
    """Where it runs; with ``Existing`` where it runs already."""
    redis_password: In[str]
    """The password of Redis' user ``scaler``, who sees the lengths of activation lists only."""
    paths: DataPaths
    """How its pods reach Redis and the queues of tasks."""
    pod_identity: Literal["aws"] | None = None
    """The cloud in which the operator has an identity of its own, with which it may then read the
    lengths of queues and other metrics of that cloud."""
    platform_namespace: In[str] = "llm-platform"
    """Where the cacher runs, which says how many tasks are outstanding."""
    monitoring_namespace: In[str] = "llm-platform-monitoring"
    """Where Prometheus runs."""
    memory: Quantity = "256Mi"
    """The memory limit of each of its three pods, when it is made from manifests."""

    @model_validator(mode="after")
    def _where_the_manifests_say(self) -> Self:
        if isinstance(self.source, KedaManifests) and self.namespace != NAMESPACE:
            raise ValueError(
                f"namespace={self.namespace!r}: KEDA's manifests are made for the namespace "
                f"{NAMESPACE!r}; leave namespace out, or install the chart"
            )
        return self


class Keda(pulumi.ComponentResource):
    """The operator, the external metrics API and the admission webhooks of KEDA.

    Creates a Namespace with NetworkPolicies and, from the chart or from manifests, KEDA itself; a
    Secret with the scaler's credentials and the ClusterTriggerAuthentication that uses them, and
    one more for the operator's own identity where it has one. In a cluster that has KEDA it creates
    these only. KEDA may read no Secrets but those in its
    own namespace.
    """

    authentication: pulumi.Output[str]
    """The ClusterTriggerAuthentication that triggers on activation lists name."""
    ready: Sequence[pulumi.Resource]
    """What a ScaledObject must wait for; on destroy it goes before."""

    def __init__(
        self, name: str, args: KedaArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Keda", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        installed = [] if isinstance(args.source, Existing) else self._install(args.source)
        triggers = [self._activation(installed)]
        if args.pod_identity:
            triggers.append(self._own_identity(args.pod_identity, installed))
        self.authentication = pulumi.Output.from_input(AUTHENTICATION)
        self.ready = [*installed, *triggers]
        self.register_outputs({"authentication": self.authentication})

    def _install(self, source: Chart | KedaManifests) -> list[pulumi.Resource]:
        scope = Namespace(
            f"{self._name}-scope", NamespaceArgs(name=self._args.namespace), self._child
        )
        paths = self._paths()
        needs = [scope.namespace, *paths]
        if isinstance(source, KedaManifests):
            return rendered.apply_manifests(
                self._name,
                manifests_of(source, self._args.memory),
                component=_COMPONENT,
                parent=self,
                depends_on=needs,
            )
        chart = release(
            self._name,
            source,
            _VALUES,
            namespace=self._args.namespace,
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
        )
        return [chart]

    def _activation(self, installed: list[pulumi.Resource]) -> k8s.apiextensions.CustomResource:
        secret = k8s.core.v1.Secret(
            f"{self._name}-activation-credentials",
            metadata=workload.metadata(AUTHENTICATION, self._args.namespace, component=_COMPONENT),
            type="Opaque",
            string_data={
                "username": SCALER_USER,
                "password": pulumi.Output.secret(self._args.redis_password),
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=installed,
                additional_secret_outputs=["data", "stringData"],
            ),
        )
        names = {"username": "username", "password": "password"}
        return k8s.apiextensions.CustomResource(
            f"{self._name}-activation",
            api_version="keda.sh/v1alpha1",
            kind="ClusterTriggerAuthentication",
            metadata={
                "name": AUTHENTICATION,
                "labels": labels.common(_COMPONENT, AUTHENTICATION),
            },
            spec={
                "secretTargetRef": [
                    {"parameter": parameter, "name": secret.metadata["name"], "key": key}
                    for parameter, key in names.items()
                ]
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*installed, secret]),
        )

    def _own_identity(
        self, cloud: str, installed: list[pulumi.Resource]
    ) -> k8s.apiextensions.CustomResource:
        name = AWS_AUTHENTICATION
        return k8s.apiextensions.CustomResource(
            f"{self._name}-{cloud}",
            api_version="keda.sh/v1alpha1",
            kind="ClusterTriggerAuthentication",
            metadata={"name": name, "labels": labels.common(_COMPONENT, name)},
            spec={"podIdentity": {"provider": cloud}},
            opts=pulumi.ResourceOptions(parent=self, depends_on=installed),
        )

    def _paths(self) -> list[pulumi.Resource]:
        """Open the paths of all of KEDA's pods, whose labels differ between its sources."""
        args = self._args
        inside = [network.namespace_peer(args.namespace)]
        return [
            network.allow_ingress(
                f"{self._name}-from-api-server",
                name="from-api-server",
                namespace=args.namespace,
                pods={},
                # The API server asks for metrics and for admission; no policy could name it.
                peers=[],
                ports=[6443, 9443],
                opts=self._child,
            ),
            network.allow_ingress(
                f"{self._name}-from-inside",
                name="from-inside",
                namespace=args.namespace,
                pods={},
                peers=inside,
                ports=[9666],
                opts=self._child,
            ),
            network.allow_egress(
                f"{self._name}-to-what-it-asks",
                name="to-what-it-asks",
                namespace=args.namespace,
                pods={},
                rules=[
                    (inside, [9666]),
                    *network.together(args.paths.redis, args.paths.tasks),
                    ([network.namespace_peer(args.platform_namespace)], [8081]),
                    ([network.namespace_peer(args.monitoring_namespace)], [9090]),
                    # The API server, and the queues of a cloud.
                    ([], [443, 6443]),
                ],
                opts=self._child,
            ),
        ]


_VALUES: Mapping[str, Any] = {
    "watchNamespace": "",
    "crds": {"install": True},
    "operator": {"replicaCount": 2},
    "metricsServer": {"replicaCount": 2},
    "priorityClassName": "system-cluster-critical",
    # Credentials of triggers are in KEDA's own namespace, so it needs nobody else's Secrets.
    "permissions": {
        "operator": {"restrict": {"secret": True}},
        "metricServer": {"restrict": {"secret": True}},
    },
}
