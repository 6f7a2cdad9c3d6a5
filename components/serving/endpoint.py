"""A model endpoint: one model, served by a number of workers, known to the gateway."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s
from pydantic import TypeAdapter

from ..contracts import In
from ..domain.names import K8sName, safe_name
from ..domain.registration import Registration
from ..foundation import Grant
from ..kube import workload
from . import manifests
from .endpoint_args import ModelEndpointArgs, Resources
from .runtimes import Worker

__all__ = ["ModelEndpoint", "ModelEndpointArgs", "Resources"]

_NAME: TypeAdapter[str] = TypeAdapter(K8sName)
_COMPONENT = "endpoint"


class ModelEndpoint(pulumi.ComponentResource):
    """Serves one model; clients name it as ``model`` at the gateway.

    Creates a ServiceAccount without token, a Service, a PodDisruptionBudget, the Secrets with what
    it was granted, the registration ConfigMap that makes the gateway know it, and a Deployment of
    workers, each a ``model`` and a ``forwarder`` container. ``pulumi up`` waits until the workers
    are ready. It never creates anything outside its team's namespace.
    """

    url: pulumi.Output[str]
    """The OpenAI-compatible API for programs in the cluster."""
    namespace: pulumi.Output[str]
    service: pulumi.Output[str]
    deployment: k8s.apps.v1.Deployment
    """The workers, for what this component doesn't offer."""

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
        account = k8s.core.v1.ServiceAccount(
            f"{name}-account",
            metadata=self._metadata(name),
            automount_service_account_token=False,
            opts=self._child,
        )
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
        registration = self._registration()
        wiring, secrets = self._wiring()
        self.deployment = k8s.apps.v1.Deployment(
            f"{name}-workers",
            metadata={
                **self._metadata(name, manifests.selector(name)),
                # Gone when its workers have drained, not before: what they use goes afterwards,
                # and a namespace that is deleted next isn't kept waiting for their grace period.
                "annotations": {"pulumi.com/deletionPropagationPolicy": "foreground"},
            },
            spec=manifests.deployment_spec(name, args, wiring),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[account, service, registration, *secrets],
                custom_timeouts=_patience(args),
            ),
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

    def _registration(self) -> k8s.core.v1.ConfigMap:
        stack = f"{pulumi.get_project()}/{pulumi.get_stack()}"
        declared = manifests.registration(self._name, self._args, stack)
        return k8s.core.v1.ConfigMap(
            f"{self._name}-registration",
            metadata=self._metadata(
                safe_name(self._name, "registration"), Registration.object_labels(self._name)
            ),
            data=declared.to_data(),
            opts=self._child,
        )

    def _wiring(self) -> tuple[manifests.Wiring, Sequence[pulumi.Resource]]:
        """Bind what the workers need, and put into Secrets what isn't known or may be secret."""
        hashes: list[In[object]] = []
        needs: list[pulumi.Resource] = []
        loader_env: manifests.EnvVars = ()
        if self._args.weights:
            binding = self._args.platform.identity.bind(
                self._name,
                workload_name=self._name,
                namespace=self._args.platform.namespace,
                grants=[Grant.read_bucket(self._args.platform.weights)],
                opts=self._child,
            )
            loader_env = binding.env
            hashes.append(binding.config_hash)
            needs.extend(binding.needs)
        environment = self._args.runtime.environment(
            Worker(
                endpoint=self._name,
                max_concurrency=self._args.scaling.max_concurrency,
                weights_path=manifests.WEIGHTS_PATH,
            )
        )
        later = {key: value for key, value in environment.items() if not isinstance(value, str)}
        if later:
            needs.append(self._environment_secret(later))
            hashes.extend(later.values())
        wiring = manifests.Wiring(
            model_env=[self._variable(key, value) for key, value in environment.items()],
            loader_env=loader_env,
            config_hash=workload.output_hash(*hashes) if hashes else workload.content_hash(),
        )
        return wiring, needs

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


def _patience(args: ModelEndpointArgs) -> pulumi.CustomTimeouts:
    """Wait as long as a worker may rightly take, and no longer."""
    workers = args.scaling.min_workers
    rolling = args.startup_timeout_seconds + args.timeouts.grace_period_seconds
    return pulumi.CustomTimeouts(
        create=f"{args.startup_timeout_seconds + 180}s",
        update=f"{rolling * (1 if args.rolls_with_surge else workers) + 180}s",
        delete=f"{args.timeouts.grace_period_seconds + 120}s",
    )
