"""A worker's pod: its containers, what they are given, and what they may use."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain.accelerators import ACCELERATOR_LABEL, GPU_RESOURCE, Accelerator
from ..kube import workload
from . import runtimes
from .endpoint_args import ModelEndpointArgs

FORWARDER_PORT = 5000
WEIGHTS_PATH = "/weights"
_FORWARDER_MEMORY = "192Mi"
_TASKS_MEMORY = "384Mi"
"""Of a forwarder that takes tasks from a queue."""
_PROBE_SECONDS = 2
_HUNG_STOP_SECONDS = 30
"""How long a hung engine gets to stop: by then it has relayed nothing for minutes."""

EnvVars = Sequence[k8s.core.v1.EnvVarArgsDict]
Mounts = Sequence[k8s.core.v1.VolumeMountArgsDict]


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """What the endpoint's containers are given beyond what people wrote."""

    model_env: EnvVars = ()
    loader_env: EnvVars = ()
    forwarder_env: EnvVars = ()
    config_hash: In[str] = ""
    loader_mounts: Mounts = ()
    forwarder_mounts: Mounts = ()
    volumes: Sequence[k8s.core.v1.VolumeArgsDict] = ()
    service_account: str | None = None
    """Whom the pod runs as; the endpoint's own account when left out."""
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    """Annotations of the pod."""


def worker(name: str, args: ModelEndpointArgs) -> runtimes.Worker:
    """Return what a runtime may want to know of the worker that it runs in."""
    return runtimes.Worker(
        endpoint=name,
        max_concurrency=args.scaling.max_concurrency,
        weights_path=WEIGHTS_PATH,
        gpus=args.gpus,
        stop_seconds=args.timeouts.stop_seconds,
    )


def pod_spec(name: str, args: ModelEndpointArgs, wiring: Wiring) -> k8s.core.v1.PodSpecArgsDict:
    """Return the pod of one worker: the model, and the forwarder that answers for it."""
    pod: k8s.core.v1.PodSpecArgsDict = {
        "service_account_name": wiring.service_account or name,
        "automount_service_account_token": False,
        "enable_service_links": False,
        "security_context": workload.pod_security(),
        "termination_grace_period_seconds": args.timeouts.grace_period_seconds,
        "containers": [_model(name, args, wiring), _forwarder(name, args, wiring)],
        "volumes": [*(scratch.volume() for scratch in _scratches(args)), *wiring.volumes],
    }
    if args.weights:
        pod["init_containers"] = [_loader(args, wiring)]
    if args.accelerator.is_gpu:
        pod["tolerations"] = [{"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}]
        pod["affinity"] = {"node_affinity": _kind_of_gpu(args.accelerator)}
    return pod


def _kind_of_gpu(accelerator: Accelerator) -> k8s.core.v1.NodeAffinityArgsDict:
    """Keep to nodes with this kind of GPU, and to those that don't say which kind they have."""
    right: k8s.core.v1.NodeSelectorTermArgsDict = {
        "match_expressions": [
            {"key": ACCELERATOR_LABEL, "operator": "In", "values": [accelerator.value]}
        ]
    }
    silent: k8s.core.v1.NodeSelectorTermArgsDict = {
        "match_expressions": [{"key": ACCELERATOR_LABEL, "operator": "DoesNotExist"}]
    }
    return {
        "required_during_scheduling_ignored_during_execution": {
            "node_selector_terms": [right, silent]
        }
    }


def _weights(args: ModelEndpointArgs) -> workload.Scratch:
    return workload.Scratch(name="weights", path=WEIGHTS_PATH, size=args.resources.disk)


def _model_tmp(args: ModelEndpointArgs) -> workload.Scratch:
    return workload.Scratch(
        name="model-tmp",
        path="/tmp",  # noqa: S108 - a volume of the pod's own
        size=args.resources.scratch,
    )


def _shared_memory(args: ModelEndpointArgs) -> workload.Scratch:
    return workload.Scratch(
        name="shm",
        path="/dev/shm",  # noqa: S108 - a volume of the pod's own
        size=args.resources.shared_memory,
        in_memory=True,
    )


_FORWARDER_TMP = workload.Scratch(name="forwarder-tmp", path="/tmp")  # noqa: S108


def _scratches(args: ModelEndpointArgs) -> list[workload.Scratch]:
    shared = [_model_tmp(args), _FORWARDER_TMP, _shared_memory(args)]
    return [*shared, _weights(args)] if args.weights else shared


def _model(name: str, args: ModelEndpointArgs, wiring: Wiring) -> k8s.core.v1.ContainerArgsDict:
    mounts = [_model_tmp(args).mount(), _shared_memory(args).mount()]
    if args.weights:
        mounts.append(_weights(args).mount(read_only=True))
    gpus = {GPU_RESOURCE: str(args.gpus)} if args.accelerator.is_gpu else {}
    container: k8s.core.v1.ContainerArgsDict = {
        "name": "model",
        "image": args.runtime.image,
        # Everything that an engine caches goes where it may write.
        "env": [
            *workload.env(HOME="/tmp", XDG_CACHE_HOME="/tmp/.cache", TMPDIR="/tmp"),  # noqa: S108
            # Its user has no entry in the image, where some look for a name.
            *workload.env(USER="model", LOGNAME="model"),
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
    command = args.runtime.start_command(worker(name, args))
    if command:
        container["command"] = list(command)
    return container


def _liveness() -> k8s.core.v1.ProbeArgsDict:
    """Ask the forwarder, which says no only when the engine has long been unhealthy and silent."""
    probe = workload.http_probe("/livez/model", FORWARDER_PORT, period=10, failures=3, timeout=5)
    probe["termination_grace_period_seconds"] = _HUNG_STOP_SECONDS
    return probe


def _forwarder(name: str, args: ModelEndpointArgs, wiring: Wiring) -> k8s.core.v1.ContainerArgsDict:
    memory = _TASKS_MEMORY if args.is_async else _FORWARDER_MEMORY
    return {
        "name": "forwarder",
        "image": args.platform.services_image,
        "command": workload.program("services.forwarder"),
        "env": [
            *workload.env(
                LLM_PLATFORM_ENDPOINT=name,
                LLM_PLATFORM_UPSTREAM=f"http://127.0.0.1:{runtimes.PORT}",
                LLM_PLATFORM_PORT=str(FORWARDER_PORT),
                LLM_PLATFORM_MAX_CONCURRENCY=str(args.scaling.max_concurrency),
                LLM_PLATFORM_HEALTH_PATH=args.runtime.ready_path,
                LLM_PLATFORM_REQUEST_TIMEOUT_SECONDS=str(args.timeouts.request_seconds),
                LLM_PLATFORM_DRAIN_SECONDS=str(args.timeouts.drain_seconds),
            ),
            *_task_settings(args),
            *wiring.forwarder_env,
        ],
        "ports": [{"name": "http", "container_port": FORWARDER_PORT}],
        "resources": workload.resources(cpu="50m", memory=memory),
        "security_context": workload.container_security(),
        "readiness_probe": workload.http_probe("/readyz", FORWARDER_PORT, period=2, failures=2),
        "liveness_probe": workload.http_probe("/healthz", FORWARDER_PORT, period=10, failures=6),
        "volume_mounts": [_FORWARDER_TMP.mount(), *wiring.forwarder_mounts],
    }


def _task_settings(args: ModelEndpointArgs) -> EnvVars:
    """Return what makes the forwarder run hooks, and take tasks from a queue."""
    settings: dict[str, In[str]] = {}
    if args.hooks:
        settings["LLM_PLATFORM_HOOKS"] = args.hooks.to_json()
    if args.is_async:
        settings |= {
            "LLM_PLATFORM_MODE": "async",
            "LLM_PLATFORM_TEAM": args.platform.team,
            "LLM_PLATFORM_GATEWAY_URL": args.platform.gateway_url,
            "LLM_PLATFORM_PREDICT_PATH": args.runtime.task_path,
            "LLM_PLATFORM_LEASE_SECONDS": str(args.tasks.lease_seconds),
            "LLM_PLATFORM_MAX_DELIVERIES": str(args.tasks.max_deliveries),
        }
    return workload.env(**settings)


def _loader(args: ModelEndpointArgs, wiring: Wiring) -> k8s.core.v1.ContainerArgsDict:
    source = args.weights.source if args.weights else ""
    return {
        "name": "weights",
        "image": args.platform.services_image,
        "command": workload.program("services.warmer", "load"),
        "env": [
            *workload.env(
                LLM_PLATFORM_WEIGHTS_SOURCE=source, LLM_PLATFORM_WEIGHTS_DIR=WEIGHTS_PATH
            ),
            *wiring.loader_env,
        ],
        "resources": workload.resources(cpu="50m", memory="512Mi"),
        "security_context": workload.container_security(),
        "volume_mounts": [
            _weights(args).mount(),
            _FORWARDER_TMP.mount(),
            *wiring.loader_mounts,
        ],
    }
