"""What every pod has in common: who it runs as, what it may write, when it rolls."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain import labels

USER_ID = 65532
"""The user and group of every image of the platform."""


def pod_security() -> k8s.core.v1.PodSecurityContextArgsDict:
    """Return the security context of every pod: no root, and only the usual system calls."""
    return {
        "run_as_non_root": True,
        "run_as_user": USER_ID,
        "run_as_group": USER_ID,
        "fs_group": USER_ID,
        "fs_group_change_policy": "OnRootMismatch",
        "seccomp_profile": {"type": "RuntimeDefault"},
    }


def container_security() -> k8s.core.v1.SecurityContextArgsDict:
    """Return the security context of every container: nothing to gain, nothing to write to."""
    return {
        "allow_privilege_escalation": False,
        "read_only_root_filesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def resources(
    *, cpu: str, memory: str, extended: Mapping[str, str] | None = None
) -> k8s.core.v1.ResourceRequirementsArgsDict:
    """Return requests and limits: memory is exact, the processor may be shared when it is idle."""
    more = dict(extended or {})
    return {
        "requests": {"cpu": cpu, "memory": memory, **more},
        "limits": {"memory": memory, **more},
    }


@dataclass(frozen=True, kw_only=True)
class Scratch:
    """A directory that a container may write to and that ends with its pod."""

    name: str
    path: str
    size: str = "64Mi"
    in_memory: bool = False

    def volume(self) -> k8s.core.v1.VolumeArgsDict:
        """Return the pod's volume."""
        where: k8s.core.v1.EmptyDirVolumeSourceArgsDict = {"size_limit": self.size}
        if self.in_memory:
            where["medium"] = "Memory"
        return {"name": self.name, "empty_dir": where}

    def mount(self, *, read_only: bool = False) -> k8s.core.v1.VolumeMountArgsDict:
        """Return the container's mount."""
        mount: k8s.core.v1.VolumeMountArgsDict = {"name": self.name, "mount_path": self.path}
        if read_only:
            mount["read_only"] = True
        return mount


TMP = Scratch(name="tmp", path="/tmp")  # noqa: S108 - the container's own, in its own volume


def program(module: str, *arguments: str) -> list[str]:
    """Return the command of one of the platform's own programs.

    A container's first process isn't ended by a signal that it doesn't handle, and Python needs a
    while until it handles any: a pod that is to go in that moment would stay for its whole grace
    period. ``tini`` hands signals on to a process for which they count from the start.
    """
    return ["tini", "--", "python3", "-m", module, *arguments]


def env(**values: In[str]) -> list[k8s.core.v1.EnvVarArgsDict]:
    """Return environment variables; only for what isn't secret."""
    return [{"name": name, "value": value} for name, value in values.items()]


def http_probe(
    path: str, port: int | str, *, period: int = 5, failures: int = 3, timeout: int = 3
) -> k8s.core.v1.ProbeArgsDict:
    """Return a probe that asks for ``path`` every ``period`` seconds."""
    return {
        "http_get": {"path": path, "port": port},
        "period_seconds": period,
        "failure_threshold": failures,
        "timeout_seconds": timeout,
    }


def exec_probe(
    command: Sequence[str], *, period: int = 5, failures: int = 6, timeout: int = 3
) -> k8s.core.v1.ProbeArgsDict:
    """Return a probe that runs ``command`` every ``period`` seconds."""
    return {
        "exec_": {"command": list(command)},
        "period_seconds": period,
        "failure_threshold": failures,
        "timeout_seconds": timeout,
    }


def content_hash(*parts: object) -> str:
    """Return a short hash of plain values: the same for equal ones, on every machine."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def output_hash(*parts: In[object]) -> pulumi.Output[str]:
    """Return the same of values known later; it tells nothing of them, so it isn't secret."""
    return pulumi.Output.unsecret(
        pulumi.Output.all(*parts).apply(lambda values: content_hash(*values))
    )


def pod_metadata(
    component: str,
    name: str,
    *,
    selector: Mapping[str, str],
    config_hash: In[str],
    annotations: Mapping[str, str] | None = None,
) -> k8s.meta.v1.ObjectMetaArgsDict:
    """Return a pod template's metadata: its labels, and the hash that rolls it."""
    return {
        "labels": {**labels.common(component, name), **selector},
        "annotations": {labels.CONFIG_HASH: config_hash, **(annotations or {})},
    }


def metadata(
    name: In[str], namespace: In[str], *, component: str, extra: Mapping[str, str] | None = None
) -> k8s.meta.v1.ObjectMetaArgsDict:
    """Return an object's metadata with the labels that every object of the platform carries."""
    own: dict[str, In[str]] = {**labels.common(component, ""), labels.NAME: name, **(extra or {})}
    return {"name": name, "namespace": namespace, "labels": own}
