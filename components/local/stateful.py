"""What the data services have in common: one pod, one disk, one Service, one open path."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..kube import network, workload


@dataclass(frozen=True, kw_only=True)
class Stateful:
    """A single pod that keeps its disk when it restarts."""

    name: str
    namespace: In[str]
    containers: Sequence[k8s.core.v1.ContainerArgsDict]
    volumes: Sequence[k8s.core.v1.VolumeArgsDict]
    ports: Sequence[int]
    size: str
    storage_class: str | None
    config_hash: In[str]
    stop_seconds: int = 30
    clients: Sequence[tuple[Sequence[network.Peer], Sequence[int]]] = field(default=())
    """Who may connect, on which ports."""


def metadata(spec: Stateful) -> k8s.meta.v1.ObjectMetaArgsDict:
    """Return the metadata of its objects."""
    return workload.metadata(spec.name, spec.namespace, component="data")


def selector(spec: Stateful) -> dict[str, str]:
    """Return its selector, which never changes."""
    return {"app.kubernetes.io/name": spec.name}


def service_spec(spec: Stateful) -> k8s.core.v1.ServiceSpecArgsDict:
    """Return its Service."""
    return {
        "selector": selector(spec),
        "ports": [
            {"name": f"tcp-{port}", "port": port, "target_port": port} for port in spec.ports
        ],
    }


def set_spec(spec: Stateful) -> k8s.apps.v1.StatefulSetSpecArgsDict:
    """Return its StatefulSet: one replica, replaced only after the old one has stopped."""
    claim: k8s.core.v1.PersistentVolumeClaimSpecArgsDict = {
        "access_modes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": spec.size}},
    }
    if spec.storage_class:
        claim["storage_class_name"] = spec.storage_class
    return {
        "replicas": 1,
        "service_name": spec.name,
        "selector": {"match_labels": selector(spec)},
        "template": {
            "metadata": workload.pod_metadata(
                "data", spec.name, selector=selector(spec), config_hash=spec.config_hash
            ),
            "spec": {
                "automount_service_account_token": False,
                "enable_service_links": False,
                "security_context": workload.pod_security(),
                "termination_grace_period_seconds": spec.stop_seconds,
                "containers": list(spec.containers),
                "volumes": list(spec.volumes),
            },
        },
        "volume_claim_templates": [{"metadata": {"name": "data"}, "spec": claim}],
    }


def deploy(
    name: str,
    spec: Stateful,
    *,
    parent: pulumi.Resource,
    depends_on: Sequence[pulumi.Resource],
) -> k8s.core.v1.Service:
    """Create the StatefulSet, its Service and its network policies; return the Service."""
    child = pulumi.ResourceOptions(parent=parent)
    service = k8s.core.v1.Service(
        f"{name}-service",
        metadata={**metadata(spec), "annotations": {"pulumi.com/skipAwait": "true"}},
        spec=service_spec(spec),
        opts=child,
    )
    k8s.apps.v1.StatefulSet(
        f"{name}-set",
        metadata=metadata(spec),
        spec=set_spec(spec),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[*depends_on, service]),
    )
    for index, (peers, ports) in enumerate(spec.clients):
        network.allow_ingress(
            f"{name}-clients-{index}",
            name=f"{spec.name}-clients-{index}",
            namespace=spec.namespace,
            pods={"match_labels": selector(spec)},
            peers=peers,
            ports=ports,
            opts=child,
        )
    return service


def host(service: k8s.core.v1.Service) -> pulumi.Output[str]:
    """Return the name by which programs in the cluster reach a Service."""
    return service.metadata.apply(lambda meta: f"{meta.name}.{meta.namespace}.svc")


DATA = workload.Scratch(name="data", path="/data")
"""The mount of the disk (the volume itself comes from the claim)."""
