"""A model endpoint: one model, served by a number of workers, known to the gateway."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s
from pydantic import TypeAdapter

from ..contracts import In
from ..domain.names import K8sName, safe_name
from ..domain.registration import Registration
from ..foundation import Binding, Grant, Queue
from ..kube import workload
from . import autoscaling, manifests, scaler, worker_pod
from .endpoint_args import ModelEndpointArgs, Resources, Tasks

__all__ = ["ModelEndpoint", "ModelEndpointArgs", "Resources", "Tasks"]

_NAME: TypeAdapter[str] = TypeAdapter(K8sName)
_COMPONENT = "endpoint"
QUEUE_SETTING = "LLM_PLATFORM_QUEUE"
"""The setting of a worker that says where its queue is, for brokers that don't tell by name."""


class ModelEndpoint(pulumi.ComponentResource):
    """Serves one model; clients name it as ``model`` at the gateway.

    Creates a ServiceAccount without token unless its team has one for all, a Service, a
    PodDisruptionBudget, the Secrets with what it was granted, the registration ConfigMap that makes
    the gateway know it, a Deployment of workers, each a ``model`` and a ``forwarder`` container,
    and where their number isn't fixed what chooses it: a HorizontalPodAutoscaler or KEDA's
    ScaledObject. ``pulumi up`` waits until a fixed
    number of workers is ready, and for no number that changes by itself. It never creates anything
    outside its team's namespace.
    """

    url: pulumi.Output[str]
    """The OpenAI-compatible API for programs in the cluster."""
    namespace: pulumi.Output[str]
    service: pulumi.Output[str]
    deployment: k8s.apps.v1.Deployment
    """The workers, for what this component doesn't offer."""
    autoscaler: pulumi.CustomResource | None
    """What chooses their number; none where it is fixed."""

    def __init__(
        self, name: str, args: ModelEndpointArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare the endpoint.

        Args:
            name: Its name, unique in the platform; clients say it as ``model``.
            args: The model, how it is served, and on what.
            opts: Pulumi's options; a provider given here is used instead of the platform's.

        Raises:
            pydantic.ValidationError: when ``name`` isn't a Kubernetes name.
        """
        _NAME.validate_python(name)
        super().__init__("llm-platform:index:ModelEndpoint", name, None, _options(args, opts))
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        service = k8s.core.v1.Service(
            f"{name}-service",
            metadata={
                **self._metadata(name, manifests.selector(name)),
                # There is nothing to wait for that the Deployment doesn't wait for.
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec=manifests.service_spec(name),
            opts=self._child,
        )
        k8s.policy.v1.PodDisruptionBudget(
            f"{name}-disruption",
            metadata=self._metadata(name),
            spec=manifests.disruption_spec(name),
            opts=self._child,
        )
        self._warn()
        queue = self._queue()
        registration = self._registration(queue)
        wiring, secrets = self._wiring(queue)
        needs = [*self._account(wiring), service, registration, *secrets]
        self.deployment = self._deployment(wiring, needs)
        self.autoscaler = scaler.declare(
            name, args, self._metadata(name), queue, self._after_workers(opts)
        )
        self.namespace = pulumi.Output.from_input(args.platform.namespace)
        self.service = service.metadata.apply(lambda meta: f"{meta.name}.{meta.namespace}.svc")
        self.url = pulumi.Output.format("{0}/v1", args.platform.gateway_url)
        self.register_outputs(
            {
                "url": self.url,
                "namespace": self.namespace,
                "service": self.service,
            }
        )

    def _metadata(
        self, name: str, extra: Mapping[str, str] | None = None
    ) -> k8s.meta.v1.ObjectMetaArgsDict:
        return workload.metadata(
            name, self._args.platform.namespace, component=_COMPONENT, extra=extra
        )

    def _account(self, wiring: worker_pod.Wiring) -> Sequence[pulumi.Resource]:
        """Create the account that the workers run as, unless an identity has brought one."""
        if wiring.service_account:
            return []
        account = k8s.core.v1.ServiceAccount(
            f"{self._name}-account",
            metadata=self._metadata(self._name),
            automount_service_account_token=False,
            opts=self._child,
        )
        return [account]

    def _warn(self) -> None:
        warning = self._args.runtime.warning()
        if warning:
            pulumi.log.warn(warning, resource=self)

    def _queue(self) -> Queue | None:
        if not self._args.is_async:
            return None
        platform = self._args.platform
        return platform.broker.queue(
            self._name,
            team=platform.team,
            namespace=platform.namespace,
            cacher_url=platform.cacher_url,
            opts=self._child,
            lease_seconds=self._args.tasks.lease_seconds,
            max_deliveries=self._args.tasks.max_deliveries,
            expires_seconds=self._args.tasks.expires_seconds,
        )

    def _deployment(
        self, wiring: worker_pod.Wiring, needs: Sequence[pulumi.Resource]
    ) -> k8s.apps.v1.Deployment:
        by_others = autoscaling.owner(self._args) is not autoscaling.Owner.DEPLOYMENT
        return k8s.apps.v1.Deployment(
            f"{self._name}-workers",
            metadata={
                **self._metadata(self._name, manifests.selector(self._name)),
                "annotations": manifests.deployment_annotations(self._args),
            },
            spec=manifests.deployment_spec(self._name, self._args, wiring),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=needs,
                # Left out of the spec instead, the field would be given up by an endpoint that had
                # a fixed number before, and the server would set it to 1: its workers would go.
                # Ignored, the provider sends the number that there is as long as it is its own, and
                # leaves it to an autoscaler that has written it.
                ignore_changes=["spec.replicas"] if by_others else None,
                custom_timeouts=_patience(self._args),
            ),
        )

    def _after_workers(self, opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
        """Return options of what stands after the workers and whatever the endpoint waits for.

        That is KEDA, for one, without which a ScaledObject can neither be made nor removed.
        """
        return pulumi.ResourceOptions.merge(
            pulumi.ResourceOptions(parent=self, depends_on=[self.deployment]),
            pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None),
        )

    def _registration(self, queue: Queue | None) -> k8s.core.v1.ConfigMap:
        stack = f"{pulumi.get_project()}/{pulumi.get_stack()}"
        return k8s.core.v1.ConfigMap(
            f"{self._name}-registration",
            metadata=self._metadata(
                safe_name(self._name, "registration"), Registration.object_labels(self._name)
            ),
            data=_declared(manifests.registration(self._name, self._args, stack), queue),
            opts=self._child,
        )

    def _wiring(self, queue: Queue | None) -> tuple[worker_pod.Wiring, Sequence[pulumi.Resource]]:
        """Bind what the workers need, and put into Secrets what isn't known or may be secret."""
        loader = forwarder = nothing = Binding(env=(), config_hash="", needs=())
        if self._args.weights:
            loader = self._bind([Grant.read_bucket(self._args.platform.weights)])
        if queue:
            # The broker's credentials are the forwarder's alone: the model runs others' code.
            forwarder = self._bind(queue.grants, container="forwarder")
        bindings = [binding for binding in (loader, forwarder) if binding is not nothing]
        hashes: list[In[object]] = [binding.config_hash for binding in bindings]
        needs = [resource for binding in bindings for resource in binding.needs]
        environment = self._args.runtime.environment(worker_pod.worker(self._name, self._args))
        later = {key: value for key, value in environment.items() if not isinstance(value, str)}
        if later:
            needs.append(self._environment_secret(later))
            hashes.extend(later.values())
        wiring = worker_pod.Wiring(
            model_env=[self._variable(key, value) for key, value in environment.items()],
            loader_env=loader.env,
            loader_mounts=loader.mounts,
            forwarder_env=[*workload.env(**queue.settings), *forwarder.env] if queue else (),
            forwarder_mounts=forwarder.mounts,
            volumes=[*loader.volumes, *forwarder.volumes],
            service_account=loader.service_account or forwarder.service_account,
            annotations={**loader.pod_annotations, **forwarder.pod_annotations},
            config_hash=workload.output_hash(*hashes) if hashes else workload.content_hash(),
        )
        return wiring, needs

    def _bind(self, grants: Sequence[Grant], *, container: str = "") -> Binding:
        return self._args.platform.identity.bind(
            f"{self._name}-{container}" if container else self._name,
            workload_name=self._name,
            namespace=self._args.platform.namespace,
            grants=grants,
            opts=self._child,
            container=container,
        )

    def _variable(self, key: str, value: In[str]) -> k8s.core.v1.EnvVarArgsDict:
        if isinstance(value, str):
            return {"name": key, "value": value}
        secret = safe_name(self._name, "env")
        return {"name": key, "value_from": {"secret_key_ref": {"name": secret, "key": key}}}

    def _environment_secret(self, values: Mapping[str, In[str]]) -> k8s.core.v1.Secret:
        return k8s.core.v1.Secret(
            f"{self._name}-env",
            metadata=self._metadata(safe_name(self._name, "env")),
            type="Opaque",
            string_data={key: pulumi.Output.secret(value) for key, value in values.items()},
            opts=pulumi.ResourceOptions(
                parent=self, additional_secret_outputs=["data", "stringData"]
            ),
        )


def _options(
    args: ModelEndpointArgs, opts: pulumi.ResourceOptions | None
) -> pulumi.ResourceOptions | None:
    """Use the platform's access to the cluster unless the caller brings one."""
    if args.platform.provider is None or (opts and (opts.provider or opts.providers)):
        return opts
    own = pulumi.ResourceOptions(providers=[args.platform.provider])
    return pulumi.ResourceOptions.merge(own, opts)


def _declared(registration: Registration, queue: Queue | None) -> In[Mapping[str, str]]:
    """Return what the registration's ConfigMap holds; where the queue is may be known later."""
    where = queue.settings.get(QUEUE_SETTING) if queue else None
    if where is None:
        return registration.to_data()
    return pulumi.Output.from_input(where).apply(
        lambda it: registration.model_copy(update={"queue": it}).to_data()
    )


def _patience(args: ModelEndpointArgs) -> pulumi.CustomTimeouts:
    """Wait as long as a worker may rightly take, and no longer."""
    workers = max(1, args.scaling.min_workers)
    rolling = args.startup_timeout_seconds + args.timeouts.grace_period_seconds
    return pulumi.CustomTimeouts(
        create=f"{args.startup_timeout_seconds + 180}s",
        update=f"{rolling * (1 if args.rolls_with_surge else workers) + 180}s",
        delete=f"{args.timeouts.grace_period_seconds + 120}s",
    )
