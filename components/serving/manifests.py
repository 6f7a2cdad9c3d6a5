"""An endpoint's objects as plain values: pure functions of what people wrote."""

import pulumi_kubernetes as k8s

from ..domain import labels
from ..domain.registration import EndpointType, Registration
from ..kube import workload
from . import autoscaling
from .endpoint_args import ModelEndpointArgs
from .worker_pod import FORWARDER_PORT, Wiring, pod_spec


def selector(name: str) -> dict[str, str]:
    """Return the labels that select an endpoint's workers; they can never change."""
    return {labels.ENDPOINT: name}


def registration(name: str, args: ModelEndpointArgs, stack: str) -> Registration:
    """Return what makes the gateway know the endpoint."""
    return Registration(
        name=name,
        type=args.type,
        service=name,
        port=FORWARDER_PORT,
        runtime=args.runtime.kind,
        image=args.runtime.image,
        model=args.runtime.served_model,
        weights=args.weights.source if args.weights else "",
        accelerator=args.accelerator.value,
        gpus=args.gpus,
        min_workers=args.scaling.min_workers,
        max_workers=args.scaling.max_workers,
        autoscaled=autoscaling.owner(args) is not autoscaling.Owner.DEPLOYMENT,
        per_worker=args.scaling.per_worker,
        max_concurrency=args.scaling.max_concurrency,
        request_timeout_seconds=args.timeouts.request_seconds,
        hold_seconds=args.held_seconds,
        predict_path=args.runtime.task_path,
        stream_path=args.runtime.task_stream_path if args.type is EndpointType.STREAMING else "",
        task_expires_seconds=args.tasks.expires_seconds,
        lease_seconds=args.tasks.lease_seconds,
        max_deliveries=args.tasks.max_deliveries,
        access=args.access,
        openai=args.runtime.speaks_openai,
        stack=stack,
    )


def service_spec(name: str) -> k8s.core.v1.ServiceSpecArgsDict:
    """Return the Service whose addresses are the workers."""
    return {
        "selector": selector(name),
        "ports": [{"name": "http", "port": 80, "target_port": "http"}],
    }


def disruption_spec(name: str) -> k8s.policy.v1.PodDisruptionBudgetSpecArgsDict:
    """Return the budget: one worker at a time may be moved away."""
    return {"max_unavailable": 1, "selector": {"match_labels": selector(name)}}


def deployment_annotations(args: ModelEndpointArgs) -> dict[str, str]:
    """Return how Pulumi treats the Deployment.

    One with a fixed number takes ``replicas`` back from an autoscaler that goes with the same
    update. One that is scaled by others never makes an update wait for workers: their number may
    change meanwhile, and the owner that goes with the update would hold it at zero until then.
    """
    # Gone when its workers have drained, not before: what they use goes afterwards,
    # and a namespace that is deleted next isn't kept waiting for their grace period.
    always = {"pulumi.com/deletionPropagationPolicy": "foreground"}
    if autoscaling.owner(args) is autoscaling.Owner.DEPLOYMENT:
        return {**always, "pulumi.com/patchForce": "true"}
    return {**always, "pulumi.com/waitFor": "jsonpath={.status.observedGeneration}"}


def deployment_spec(
    name: str, args: ModelEndpointArgs, wiring: Wiring
) -> k8s.apps.v1.DeploymentSpecArgsDict:
    """Return the Deployment of the workers.

    It is created with the fewest workers that there may be; from then on ``replicas`` is its own
    only where nothing else owns it.
    """
    return {
        "replicas": args.scaling.min_workers,
        "selector": {"match_labels": selector(name)},
        "strategy": _strategy(args),
        "progress_deadline_seconds": args.startup_timeout_seconds + 120,
        "template": {
            "metadata": workload.pod_metadata(
                "endpoint",
                name,
                selector=selector(name),
                config_hash=wiring.config_hash,
                annotations=wiring.annotations,
            ),
            "spec": pod_spec(name, args, wiring),
        },
    }


def _strategy(args: ModelEndpointArgs) -> k8s.apps.v1.DeploymentStrategyArgsDict:
    surge, unavailable = (1, 0) if args.rolls_with_surge else (0, 1)
    return {
        "type": "RollingUpdate",
        "rolling_update": {"max_surge": surge, "max_unavailable": unavailable},
    }
