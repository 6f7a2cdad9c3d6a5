"""The Deployment of an add-on whose manifests are the platform's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi_kubernetes as k8s

from ..contracts import In
from . import workload
from .addon import Image

COMPONENT = "monitoring"


@dataclass(frozen=True, kw_only=True)
class AddonPod:
    """One program from one image that speaks to the API server."""

    name: str
    image: Image
    args: Sequence[str]
    port: int
    memory: str
    config_hash: In[str]
    """Rolls the pod when its configuration changes."""
    ready: k8s.core.v1.ProbeArgsDict
    alive: k8s.core.v1.ProbeArgsDict
    volumes: Sequence[k8s.core.v1.VolumeArgsDict] = ()
    mounts: Sequence[k8s.core.v1.VolumeMountArgsDict] = ()
    surge: bool = False
    """Whether a new one may run beside the old one while it rolls."""
    grace_seconds: int = 30

    @property
    def selector(self) -> dict[str, str]:
        """The labels that select its pods; they can never change."""
        return {"app.kubernetes.io/name": self.name}


def deployment_spec(pod: AddonPod) -> k8s.apps.v1.DeploymentSpecArgsDict:
    """Return the Deployment of one pod."""
    strategy: k8s.apps.v1.DeploymentStrategyArgsDict = {"type": "Recreate"}
    if pod.surge:
        strategy = {
            "type": "RollingUpdate",
            "rolling_update": {"max_surge": 1, "max_unavailable": 0},
        }
    container: k8s.core.v1.ContainerArgsDict = {
        "name": pod.name,
        "image": pod.image.image,
        "args": list(pod.args),
        "ports": [{"name": "main", "container_port": pod.port}],
        "resources": workload.resources(cpu="20m", memory=pod.memory),
        "security_context": workload.container_security(),
        "readiness_probe": pod.ready,
        "liveness_probe": pod.alive,
        "volume_mounts": [workload.TMP.mount(), *pod.mounts],
    }
    if pod.image.command:
        container["command"] = list(pod.image.command)
    return {
        "replicas": 1,
        "selector": {"match_labels": pod.selector},
        "strategy": strategy,
        "template": {
            "metadata": workload.pod_metadata(
                COMPONENT, pod.name, selector=pod.selector, config_hash=pod.config_hash
            ),
            "spec": {
                "service_account_name": pod.name,
                "automount_service_account_token": True,
                "enable_service_links": False,
                "security_context": workload.pod_security(),
                "termination_grace_period_seconds": pod.grace_seconds,
                "containers": [container],
                "volumes": [workload.TMP.volume(), *pod.volumes],
            },
        },
    }


def https_probe(path: str, port: int, *, period: int = 5) -> k8s.core.v1.ProbeArgsDict:
    """Return a probe of a server with a certificate of its own making."""
    return {
        "http_get": {"path": path, "port": port, "scheme": "HTTPS"},
        "period_seconds": period,
        "failure_threshold": 6,
        "timeout_seconds": 5,
    }


def service_spec(
    selector: Mapping[str, str], *, port: int, target: int
) -> k8s.core.v1.ServiceSpecArgsDict:
    """Return the Service in front of it."""
    return {
        "selector": dict(selector),
        "ports": [{"name": "main", "port": port, "target_port": target}],
    }
