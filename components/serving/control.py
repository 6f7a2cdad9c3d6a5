"""What the platform's own services have in common as pods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain.timeouts import LINGER_SECONDS
from ..kube import workload

COMPONENT = "control-plane"
PORT_NAME = "http"
"""The name of the port of each of them, by which Prometheus finds where it reads metrics."""

EnvVars = Sequence[k8s.core.v1.EnvVarArgsDict]


@dataclass(frozen=True, kw_only=True)
class Service:
    """One of the platform's services: what its pods run and are given."""

    name: str
    image: str
    port: int
    memory: str
    cpu: str = "50m"
    replicas: int = 1
    env: EnvVars = ()
    settings: Mapping[str, In[str]]
    """Settings that aren't secret; pods roll when they change."""
    volumes: Sequence[k8s.core.v1.VolumeArgsDict] = ()
    mounts: Sequence[k8s.core.v1.VolumeMountArgsDict] = ()
    grace_seconds: int = 30
    config_hash: In[str] = ""

    @property
    def selector(self) -> dict[str, str]:
        """The labels that select its pods; they can never change."""
        return {"app.kubernetes.io/name": self.name}


def container(service: Service, command: Sequence[str]) -> k8s.core.v1.ContainerArgsDict:
    """Return a container that runs ``command`` with the service's settings."""
    return {
        "name": service.name,
        "image": service.image,
        "command": list(command),
        "env": [*workload.env(**service.settings), *service.env],
        "resources": workload.resources(cpu=service.cpu, memory=service.memory),
        "security_context": workload.container_security(),
        "volume_mounts": [workload.TMP.mount(), *service.mounts],
    }


def pod(
    service: Service, containers: Sequence[k8s.core.v1.ContainerArgsDict]
) -> k8s.core.v1.PodSpecArgsDict:
    """Return a pod's spec as all of the platform's have it."""
    return {
        "enable_service_links": False,
        "security_context": workload.pod_security(),
        "containers": list(containers),
        "volumes": [workload.TMP.volume(), *service.volumes],
    }


def deployment_spec(service: Service, *, surge: bool) -> k8s.apps.v1.DeploymentSpecArgsDict:
    """Return the Deployment: with surge where two may run at once, else one after the other."""
    serving = container(service, workload.program(f"services.{service.name}"))
    serving["ports"] = [{"name": PORT_NAME, "container_port": service.port}]
    serving["startup_probe"] = workload.http_probe("/healthz", "http", period=2, failures=60)
    serving["readiness_probe"] = workload.http_probe("/readyz", "http", period=3, failures=2)
    serving["liveness_probe"] = workload.http_probe("/healthz", "http", period=10, failures=6)
    # Routing needs a moment to learn that the pod goes, so the pod keeps serving for it.
    serving["lifecycle"] = {"pre_stop": {"sleep": {"seconds": LINGER_SECONDS}}}
    strategy: k8s.apps.v1.DeploymentStrategyArgsDict = {"type": "Recreate"}
    if surge:
        strategy = {
            "type": "RollingUpdate",
            "rolling_update": {"max_surge": 1, "max_unavailable": 0},
        }
    return {
        "replicas": service.replicas,
        "selector": {"match_labels": service.selector},
        "strategy": strategy,
        "template": {
            "metadata": workload.pod_metadata(
                COMPONENT,
                service.name,
                selector=service.selector,
                config_hash=service.config_hash,
            ),
            "spec": {
                **pod(service, [serving]),
                "service_account_name": service.name,
                # It watches the Kubernetes API.
                "automount_service_account_token": True,
                "termination_grace_period_seconds": service.grace_seconds,
            },
        },
    }
