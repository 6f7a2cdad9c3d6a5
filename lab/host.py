"""What the lab leaves on the machine outside its folders, and how it goes away again.

Debian's containerd, the kubelet and the network plugins write to some fixed places that no
setting moves. The lab notes which of them were there before, removes its own entries, and the
folders that it brought.
"""

import json
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import network
from .commands import run_quietly, write
from .errors import StepError
from .paths import LabPaths
from .processes import command_lines, current_identity, kill, shims_of

CGROUP = "llm-platform-lab"
CNI_NETWORK = "llm-platform-lab"
# Folders that are removed when they are empty and weren't there before, the inner ones first.
_FIXED_PLACES = (
    "/run/containerd/s",
    "/run/containerd",
    "/var/lib/cni/results",
    "/var/lib/cni/cache/results",
    "/var/lib/cni/cache",
    "/var/lib/cni",
    "/var/log/containers",
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet",
    "/run/xtables.lock",
)
_UNMOUNT_ROUNDS = 5
# A process that is killed may have made another one just before.
_KILL_ROUNDS = 3


@dataclass(frozen=True)
class HostRecord:
    """The machine as it was before the lab.

    Args:
        sysctls: Kernel settings by path below /proc/sys.
        chains: By iptables program, chains with names like ours that were there.
        places: The fixed places that existed.
    """

    sysctls: dict[str, str] = field(default_factory=dict)
    chains: dict[str, list[str]] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)

    @classmethod
    def now(cls) -> "HostRecord":
        """Look at the machine."""
        places = [place for place in _FIXED_PLACES if Path(place).exists()]
        return cls(network.read_sysctls(), network.read_chains(), places)

    def require_no_cluster(self) -> None:
        """Check that no kube-proxy or kubelet has written its rules here.

        Raises:
            StepError: One has.
        """
        theirs = [name for names in self.chains.values() for name in names if "/KUBE-" in name]
        if theirs:
            reason = (
                f"this machine is a node of another Kubernetes ({theirs[0]} is among its firewall "
                "rules), which the lab would disturb; use that cluster: "
                "make up KUBECONFIG=… CONTEXT=… REGISTRY=… (or, when it is gone for good, remove "
                "its rules: a reboot does)"
            )
            raise StepError("starting the lab", reason)

    @classmethod
    def ensure(cls, path: Path) -> "HostRecord":
        """Return the record of the first start, made now when there is none."""
        if not path.exists():
            write(path, json.dumps(asdict(cls.now()), indent=2))
        return cls(**json.loads(path.read_text()))


def make_cgroups() -> None:
    """Make the group that holds all pods, so that they can be found again."""
    for root in cgroup_roots(Path("/proc/self/mounts").read_text()):
        (root / CGROUP).mkdir(exist_ok=True)


def cgroup_roots(mounts: str) -> list[Path]:
    """List where control groups are mounted.

    Args:
        mounts: The content of /proc/self/mounts.
    """
    rows = [line.split() for line in mounts.splitlines()]
    return [Path(row[1]) for row in rows if len(row) > 2 and row[2] in {"cgroup", "cgroup2"}]


def mounts_below(mounts: str, folders: Iterable[Path]) -> list[str]:
    """List the mount points in or at these folders, the last mounted first.

    Args:
        mounts: The content of /proc/self/mounts.
        folders: Absolute paths.
    """
    points = [_unescape(line.split()[1]) for line in mounts.splitlines() if line.strip()]
    wanted = [str(folder) for folder in folders]
    return [
        point
        for point in reversed(points)
        if any(point == folder or point.startswith(f"{folder}/") for folder in wanted)
    ]


def _unescape(point: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point


def pods_are_served(paths: LabPaths) -> bool:
    """Tell whether a shim of ours lives, so that a new containerd finds running pods."""
    return bool(shims_of(paths.containerd_socket, command_lines()))


def end_pods(paths: LabPaths) -> None:
    """Kill every pod and its shim, and take down their mounts and networks, as a reboot would."""
    shims = shims_of(paths.containerd_socket, command_lines())
    kill(identity for pid in shims if (identity := current_identity(pid)))
    groups = [root / CGROUP for root in cgroup_roots(Path("/proc/self/mounts").read_text())]
    for _ in range(_KILL_ROUNDS):
        pids = _pids_in(groups)
        kill(identity for pid in pids if (identity := current_identity(pid)))
    _remove_shim_sockets(paths)
    _remove_network_results(paths, Path("/var/lib/cni"))
    _remove_pod_links(paths)
    unmount([paths.run, paths.kubelet, paths.state / "containerd"])
    _remove_tree(paths.run)
    for group in groups:
        _remove_group(group)


def _pids_in(groups: Sequence[Path]) -> list[int]:
    pids: set[int] = set()
    for group in groups:
        for file in group.rglob("cgroup.procs"):
            try:
                pids |= {int(line) for line in file.read_text().split()}
            except OSError:
                continue
    return sorted(pids - {0})


def _remove_group(group: Path) -> None:
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            Path(folder).rmdir()
        except OSError:
            continue


def _remove_shim_sockets(paths: LabPaths) -> None:
    # Shims listen in a folder that they share with every containerd of the machine; which
    # of the sockets are ours stands beside each container.
    for file in paths.run.glob("containerd/io.containerd.runtime.v2.task/*/*/address"):
        address = file.read_text().strip().removeprefix("unix://")
        if address.startswith("/run/containerd/s/"):
            Path(address).unlink(missing_ok=True)


def _remove_pod_links(paths: LabPaths) -> None:
    # A network namespace lives on for minutes when a dead pod's connection waits for an
    # answer, and keeps the pod's link on the machine: remove that from the inside.
    for namespace in paths.run.glob("containerd/io.containerd.grpc.v1.cri/netns/*"):
        run_quietly(["nsenter", f"--net={namespace}", "ip", "link", "delete", "eth0"])


def _remove_network_results(paths: LabPaths, folder: Path) -> None:
    # What the network plugins answered is kept in a common folder, by network and pod.
    sandboxes = [
        path.name
        for root in (paths.run / "containerd", paths.state / "containerd")
        for path in root.glob("io.containerd.grpc.v1.cri/sandboxes/*")
    ]
    for result in [path for path in folder.rglob("*") if path.is_file()]:
        ours = result.name.startswith(f"{CNI_NETWORK}-")
        if ours or any(f"-{sandbox}-" in result.name for sandbox in sandboxes):
            result.unlink(missing_ok=True)


def unmount(folders: Sequence[Path]) -> None:
    """Unmount everything in these folders."""
    for _ in range(_UNMOUNT_ROUNDS):
        points = mounts_below(Path("/proc/self/mounts").read_text(), folders)
        if not points:
            return
        for point in points:
            run_quietly(["umount", point])
        time.sleep(0.1)
    for point in mounts_below(Path("/proc/self/mounts").read_text(), folders):
        run_quietly(["umount", "--lazy", point])


def restore(paths: LabPaths, record: HostRecord) -> None:
    """Give the machine back as it was: network, fixed places, folders."""
    network.remove(record.sysctls, record.chains)
    _remove_log_links(Path("/var/log/containers"), paths.logs)
    for name in ("kubelet.sock", "DEPRECATION"):
        Path("/var/lib/kubelet/device-plugins", name).unlink(missing_ok=True)
    for place in _FIXED_PLACES:
        if place not in record.places:
            remove_if_empty(Path(place))
    for folder in (paths.run, paths.state):
        _remove_tree(folder)


def _remove_tree(folder: Path) -> None:
    """Remove a folder, but never what is mounted in it: that may be somebody's data."""
    if mounted := mounts_below(Path("/proc/self/mounts").read_text(), [folder]):
        reason = f"{mounted[0]} can't be unmounted; see what uses it (fuser -vm), then repeat"
        raise StepError(f"removing {folder}", reason)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_log_links(folder: Path, logs: Path) -> None:
    for link in folder.glob("*.log") if folder.exists() else ():
        if link.is_symlink() and str(link.readlink()).startswith(f"{logs}/"):
            link.unlink()


def remove_if_empty(place: Path) -> None:
    """Remove a folder or file with nothing in it; leave any other."""
    try:
        if place.is_dir():
            place.rmdir()
        elif place.exists() and place.stat().st_size == 0:
            place.unlink()
    except OSError:
        return
