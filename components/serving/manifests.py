"""An endpoint's objects as plain values: pure functions of what people wrote."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain import labels
from ..domain.accelerators import GPU_RESOURCE
from ..domain.registration import Registration
from ..kube import workload
from . import runtimes
from .endpoint_args import ModelEndpointArgs

FORWARDER_PORT = 5000
WEIGHTS_PATH = "/weights"
_FORWARDER_MEMORY = "192Mi"
_PROBE_SECONDS = 2
_HUNG_STOP_SECONDS = 30
"""How long a hung engine gets to stop: by then it has relayed nothing for minutes."""

EnvVars = Sequence[k8s.core.v1.EnvVarArgsDict]


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """What the endpoint's containers are given beyond what people wrote."""

    model_env: EnvVars = ()
    loader_env: EnvVars = ()
    config_hash: In[str] = ""


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
        per_worker=args.scaling.per_worker,
        max_concurrency=args.scaling.max_concurrency,
        request_timeout_seconds=args.request_timeout_seconds,
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


def deployment_spec(
    name: str, args: ModelEndpointArgs, wiring: Wiring
) -> k8s.apps.v1.DeploymentSpecArgsDict:
    """Return the Deployment of the workers: a fixed number, so it owns ``replicas``."""
    return {
        "replicas": args.scaling.min_workers,
        "selector": {"match_labels": selector(name)},
        "strategy": _strategy(args),
        "progress_deadline_seconds": args.startup_timeout_seconds + 120,
        "template": {
            "metadata": workload.pod_metadata(
                "endpoint", name, selector=selector(name), config_hash=wiring.config_hash
            ),
            "spec": _pod(name, args, wiring),
        },
    }


def _strategy(args: ModelEndpointArgs) -> k8s.apps.v1.DeploymentStrategyArgsDict:
    surge, unavailable = (1, 0) if args.rolls_with_surge else (0, 1)
    return {
        "type": "RollingUpdate",
        "rolling_update": {"max_surge": surge, "max_unavailable": unavailable},
    }


def _pod(name: str, args: ModelEndpointArgs, wiring: Wiring) -> k8s.core.v1.PodSpecArgsDict:
    pod: k8s.core.v1.PodSpecArgsDict = {
        "service_account_name": name,
        "automount_service_account_token": False,
        "enable_service_links": False,
        "security_context": workload.pod_security(),
        "termination_grace_period_seconds": args.timeouts.grace_period_seconds,
        "containers": [_model(name, args, wiring), _forwarder(name, args)],
        "volumes": [scratch.volume() for scratch in _scratches(args)],
    }
    if args.weights:
        pod["init_containers"] = [_loader(args, wiring)]
    if args.accelerator.is_gpu:
        pod["tolerations"] = [{"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}]
    return pod


def _weights(args: ModelEndpointArgs) -> workload.Scratch:
    return workload.Scratch(name="weights", path=WEIGHTS_PATH, size=args.resources.disk)


def _shared_memory(args: ModelEndpointArgs) -> workload.Scratch:
    return workload.Scratch(
        name="shm",
        path="/dev/shm",  # noqa: S108 - a volume of the pod's own
        size=args.resources.shared_memory,
        in_memory=True,
    )


_MODEL_TMP = workload.Scratch(name="model-tmp", path="/tmp", size="1Gi")  # noqa: S108
_FORWARDER_TMP = workload.Scratch(name="forwarder-tmp", path="/tmp")  # noqa: S108


def _scratches(args: ModelEndpointArgs) -> list[workload.Scratch]:
    shared = [_MODEL_TMP, _FORWARDER_TMP, _shared_memory(args)]
    return [*shared, _weights(args)] if args.weights else shared


def _model(name: str, args: ModelEndpointArgs, wiring: Wiring) -> k8s.core.v1.ContainerArgsDict:
    mounts = [_MODEL_TMP.mount(), _shared_memory(args).mount()]
    if args.weights:
        mounts.append(_weights(args).mount(read_only=True))
    gpus = {GPU_RESOURCE: str(args.gpus)} if args.accelerator.is_gpu else {}
    container: k8s.core.v1.ContainerArgsDict = {
        "name": "model",
        "image": args.runtime.image,
        # Everything that an engine caches goes where it may write.
        "env": [
            *workload.env(HOME="/tmp", XDG_CACHE_HOME="/tmp/.cache", TMPDIR="/tmp"),  # noqa: S108
            *wiring.model_env,
        ],
        "ports": [{"name": "model", "container_port": runtimes.PORT}],
        "resources": workload.resources(
            cpu=args.resources.cpu, memory=args.resources.memory, extended=gpus
        ),
        "security_context": workload.container_security(),
        # The model may listen on the loopback address only; the forwarder answers for it.
        "startup_probe": workload.http_probe(
            "/readyz",
            FORWARDER_PORT,
            period=_PROBE_SECONDS,
            failures=math.ceil(args.startup_timeout_seconds / _PROBE_SECONDS),
        ),
        "liveness_probe": _liveness(),
        # The forwarder answers when its last request is done, so no stream loses its model.
        "lifecycle": {"pre_stop": {"http_get": {"path": "/drain", "port": FORWARDER_PORT}}},
        "volume_mounts": mounts,
    }
    command = args.runtime.start_command()
    if command:
        container["command"] = list(command)
    return container


def _liveness() -> k8s.core.v1.ProbeArgsDict:
    """Ask the forwarder, which says no only when the engine has long been unhealthy and silent."""
    probe = workload.http_probe("/livez/model", FORWARDER_PORT, period=10, failures=3, timeout=5)
    probe["termination_grace_period_seconds"] = _HUNG_STOP_SECONDS
    return probe


def _forwarder(name: str, args: ModelEndpointArgs) -> k8s.core.v1.ContainerArgsDict:
    return {
        "name": "forwarder",
        "image": args.platform.services_image,
        "command": ["python3", "-m", "services.forwarder"],
        "env": workload.env(
            LLM_PLATFORM_ENDPOINT=name,
            LLM_PLATFORM_UPSTREAM=f"http://127.0.0.1:{runtimes.PORT}",
            LLM_PLATFORM_PORT=str(FORWARDER_PORT),
            LLM_PLATFORM_MAX_CONCURRENCY=str(args.scaling.max_concurrency),
            LLM_PLATFORM_HEALTH_PATH=args.runtime.ready_path,
            LLM_PLATFORM_REQUEST_TIMEOUT_SECONDS=str(args.request_timeout_seconds),
            LLM_PLATFORM_DRAIN_SECONDS=str(args.timeouts.drain_seconds),
        ),
        "ports": [{"name": "http", "container_port": FORWARDER_PORT}],
        "resources": workload.resources(cpu="50m", memory=_FORWARDER_MEMORY),
        "security_context": workload.container_security(),
        "readiness_probe": workload.http_probe("/readyz", FORWARDER_PORT, period=2, failures=2),
        "liveness_probe": workload.http_probe("/healthz", FORWARDER_PORT, period=10, failures=6),
        "volume_mounts": [_FORWARDER_TMP.mount()],
    }


def _loader(args: ModelEndpointArgs, wiring: Wiring) -> k8s.core.v1.ContainerArgsDict:
    source = args.weights.source if args.weights else ""
    return {
        "name": "weights",
        "image": args.platform.services_image,
        "command": ["python3", "-m", "services.warmer", "load"],
        "env": [
            *workload.env(
                LLM_PLATFORM_WEIGHTS_SOURCE=source, LLM_PLATFORM_WEIGHTS_DIR=WEIGHTS_PATH
            ),
            *wiring.loader_env,
        ],
        "resources": workload.resources(cpu="50m", memory="512Mi"),
        "security_context": workload.container_security(),
        "volume_mounts": [_weights(args).mount(), _FORWARDER_TMP.mount()],
    }
