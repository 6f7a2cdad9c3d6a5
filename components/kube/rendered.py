"""Objects from an add-on's rendered manifests, made as safe as the platform's own."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pulumi
import yaml

from ..domain import labels
from . import workload

Manifest = dict[str, Any]
DEFINITION = "CustomResourceDefinition"

# What others call on from the moment it exists comes after what answers.
_LAST = {"APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
_PODS = {"Deployment", "StatefulSet", "DaemonSet"}


def read_manifests(path: str) -> list[Manifest]:
    """Read the objects of a file, without namespaces: the component makes its own."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = Path(path).read_text()
    found = [item for item in yaml.load_all(text, Loader=loader) if item]
    return [item for item in found if item["kind"] != "Namespace"]


def apply_manifests(
    name: str,
    manifests: Sequence[Manifest],
    *,
    component: str,
    parent: pulumi.Resource,
    depends_on: Sequence[pulumi.Resource] = (),
) -> list[pulumi.Resource]:
    """Create objects in the order in which they need each other; on destroy the other way round.

    Definitions come first, then what pods need, then pods, then what leads requests to them.

    Returns:
        What a custom resource of the add-on must wait for.
    """
    before: list[pulumi.Resource] = list(depends_on)
    for wave in range(4):
        made = [
            _create(name, manifest, component, parent=parent, depends_on=before)
            for manifest in manifests
            if _wave(manifest["kind"]) == wave
        ]
        before = [*before, *made]
    return before


def _wave(kind: str) -> int:
    if kind == DEFINITION:
        return 0
    if kind in _PODS:
        return 2
    return 3 if kind in _LAST else 1


def _create(
    name: str,
    manifest: Manifest,
    component: str,
    *,
    parent: pulumi.Resource,
    depends_on: Sequence[pulumi.Resource],
) -> pulumi.Resource:
    meta = manifest["metadata"]
    safe = meta["name"].replace(":", "-")
    own = {**meta.get("labels", {}), **labels.common(component, safe)}
    content = {
        key: value
        for key, value in manifest.items()
        if key not in {"apiVersion", "kind", "metadata", "status"}
    }
    return _class_of(manifest["apiVersion"], manifest["kind"])(
        f"{name}-{manifest['kind'].lower()}-{safe}",
        metadata={**meta, "labels": own},
        # The SDK's arguments are snake_case at the top, and take Kubernetes' own below.
        **{_snake(key): value for key, value in content.items()},
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(depends_on)),
    )


def _class_of(api_version: str, kind: str) -> Any:
    """Return the SDK's class for a kind of object."""
    group, _, version = api_version.rpartition("/")
    module = f"pulumi_kubernetes.{group.partition('.')[0] or 'core'}.{version}"
    try:
        return getattr(import_module(module), kind)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"manifests of {api_version} {kind} aren't known here") from error


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def harden(pod: Mapping[str, Any], *, images: Mapping[str, str], memory: str) -> Manifest:
    """Return a pod's spec as all of the platform's are: no root, nothing to write to, limits.

    Args:
        pod: The spec from the add-on's manifests.
        images: An image by the name of its container.
        memory: The memory limit of each container.
    """
    volumes = [item for item in pod.get("volumes", []) if item["name"] not in _temporary(pod)]
    return {
        **pod,
        "automountServiceAccountToken": True,  # every add-on here speaks to the API server
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": workload.USER_ID,
            "runAsGroup": workload.USER_ID,
            "fsGroup": workload.USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_hardened(item, pod, images, memory) for item in pod["containers"]],
        "volumes": [*volumes, {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }


def _temporary(pod: Mapping[str, Any]) -> set[str]:
    return {
        mount["name"]
        for container in pod["containers"]
        for mount in container.get("volumeMounts", [])
        if mount["mountPath"] == "/tmp"  # noqa: S108 - in the container, a volume of its own
    }


def _hardened(
    container: Mapping[str, Any], pod: Mapping[str, Any], images: Mapping[str, str], memory: str
) -> Manifest:
    mounts = [
        mount for mount in container.get("volumeMounts", []) if mount["name"] not in _temporary(pod)
    ]
    return {
        **container,
        "image": images[container["name"]],
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": {"cpu": "20m", "memory": "64Mi"},
            "limits": {"memory": memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [*mounts, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }
