"""Where the lab keeps things: a cache that stays, state that `down` removes, and /run."""

import os
from dataclasses import dataclass
from pathlib import Path

NAME = "llm-platform"


def _below(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    return (Path(base) if base.startswith("/") else Path.home() / default) / NAME


def cache_dir() -> Path:
    """The user's cache: tool chain and build caches. `down` leaves it alone."""
    return _below("XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """The user's state: what can't be made again, such as Pulumi's and the lab's own."""
    return _below("XDG_STATE_HOME", ".local/state")


@dataclass(frozen=True)
class LabPaths:
    """The lab's own folders.

    Args:
        state: The cluster itself: certificates, etcd, images, volumes, logs.
        run: What a reboot may lose: sockets, mounts, network namespaces. Short, because
            the path of a Unix socket may have 107 bytes at most.
    """

    state: Path
    run: Path

    @classmethod
    def of_this_user(cls) -> "LabPaths":
        """Return the folders that `python -m lab` uses."""
        return cls(state=state_dir() / "lab", run=Path("/run") / NAME)

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops the lab; beside the state, because that goes."""
        return self.state.parent / "lab.lock"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's way in."""
        return self.state / "kubeconfig"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.state / "pki"

    @property
    def config(self) -> Path:
        """Rendered configuration of the parts."""
        return self.state / "config"

    @property
    def logs(self) -> Path:
        """One log per part."""
        return self.state / "logs"

    @property
    def processes(self) -> Path:
        """One record per started process."""
        return self.state / "processes"

    @property
    def host_record(self) -> Path:
        """What the machine was like before the lab changed it."""
        return self.state / "host.json"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root: the pods' folders and mounts."""
        return self.state / "kubelet"

    @property
    def volumes(self) -> Path:
        """One folder per persistent volume."""
        return self.state / "volumes"

    @property
    def containerd_socket(self) -> Path:
        """The lab's own containerd."""
        return self.run / "containerd.sock"
