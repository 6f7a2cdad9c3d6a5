"""Rules about manifests, written once for constructors, tests and policies.

Each takes a plain manifest (Kubernetes' own camelCase keys) and returns what is wrong with it in
words; an empty list means that it is fine.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Manifest = Mapping[str, Any]


def hardening_problems(pod: Manifest) -> list[str]:
    """Say where a pod's spec falls short of what every pod of the platform must be."""
    problems: list[str] = []
    security = _part(pod, "securityContext")
    if security.get("runAsNonRoot") is not True:
        problems.append("the pod may run as root: set securityContext.runAsNonRoot")
    if _part(security, "seccompProfile").get("type") != "RuntimeDefault":
        problems.append("the pod has no seccomp profile: set it to RuntimeDefault")
    shared = ("hostNetwork", "hostPID", "hostIPC")
    problems.extend(f"the pod uses {field}" for field in shared if pod.get(field))
    for container in containers(pod):
        problems.extend(f"{container['name']}: {text}" for text in _container_problems(container))
    return problems


def _container_problems(container: Manifest) -> Iterator[str]:
    security = _part(container, "securityContext")
    if security.get("readOnlyRootFilesystem") is not True:
        yield "its root file system is writable"
    if security.get("allowPrivilegeEscalation") is not False:
        yield "it may escalate privileges"
    if security.get("privileged"):
        yield "it is privileged"
    if "ALL" not in (_part(security, "capabilities").get("drop") or []):
        yield "it keeps capabilities: drop ALL"
    if "memory" not in _part(_part(container, "resources"), "limits"):
        yield "it has no memory limit"
    if "@sha256:" not in str(container.get("image", "")):
        yield "its image isn't pinned by digest"


def _part(manifest: Manifest, key: str) -> Manifest:
    return manifest.get(key) or {}


def containers(pod: Manifest) -> list[Manifest]:
    """Return every container of a pod, those that run before the others first."""
    return [*(pod.get("initContainers") or []), *(pod.get("containers") or [])]


def uses_token(pod: Manifest) -> bool:
    """Say whether the pod is handed a service account's token."""
    return pod.get("automountServiceAccountToken") is not False
