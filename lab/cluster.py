"""Start, heal, look at and remove the one-node cluster."""

import os
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from . import (
    components,
    configuration,
    dns,
    host,
    manifests,
    network,
    oci,
    packages,
    pki,
    toolchain,
)
from .commands import alone, tail, write
from .components import Binaries, Part
from .containerd import REGISTRY
from .errors import StepError
from .kube_api import SERVER, KubeApi
from .paths import LabPaths
from .processes import wait_until
from .progress import Heartbeat, Report

CONTEXT = "llm-platform-lab"
_START_SECONDS = 90.0
_NODE_SECONDS = 180.0
_NODE = f"/api/v1/nodes/{pki.NODE_NAME}"


@dataclass(frozen=True)
class LabInfo:
    """What a user of the running lab needs to know.

    Args:
        kubeconfig: The administrator's kubeconfig.
        context: Its context.
        registry: `host:port` of the registry, for pushes from here and pulls by pods.
        node_address: The node's address; node ports are open on it and on 127.0.0.1.
    """

    kubeconfig: Path
    context: str
    registry: str
    node_address: str


@dataclass(frozen=True)
class PartStatus:
    """A line of `status`.

    Args:
        name: The part.
        pid: Its process; None when it doesn't run.
        healthy: Whether it serves.
        log: Its log.
    """

    name: str
    pid: int | None
    healthy: bool
    log: Path


def info(paths: LabPaths | None = None) -> LabInfo:
    """Describe the lab, whether or not it runs."""
    paths = paths or LabPaths.of_this_user()
    return LabInfo(paths.kubeconfig, CONTEXT, REGISTRY, network.NODE_ADDRESS)


def up(report: Report) -> LabInfo:
    """Start the cluster, or repair what is dead of it; return how to reach it.

    A running cluster is left alone. One that was killed, or lost in a reboot, comes back
    with everything that was in it; only `down` removes that.

    Args:
        report: Takes lines of progress.

    Raises:
        StepError: A step failed; it says which, why, and where the log is.
    """
    paths = LabPaths.of_this_user()
    _require_root("starting the lab")
    with alone(paths.lock, report, "waiting for another `lab` command"):
        if is_healthy(paths):
            report("the lab is running")
            return info(paths)
        packages.ensure(report)
        toolchain.ensure(toolchain.CLUSTER_TOOLS, report)
        _Starter(paths, report).start()
        report(f"the lab is up: KUBECONFIG={paths.kubeconfig}")
    return info(paths)


def down(report: Report) -> None:
    """Stop the cluster and remove everything that it made; the tool chain stays in its cache.

    Args:
        report: Takes lines of progress.
    """
    paths = LabPaths.of_this_user()
    if not paths.state.exists() and not paths.run.exists():
        report("there is no lab")
        return
    _require_root("stopping the lab")
    with alone(paths.lock, report, "waiting for another `lab` command"):
        record = host.HostRecord.ensure(paths.host_record)
        report("stopping the lab")
        # All at once: one that ends first must not keep another waiting for its answer.
        parts = list(reversed(_parts(paths).values()))
        for part in parts:
            part.process.terminate()
        for part in parts:
            part.process.stop()
        report("removing pods, mounts, networks and firewall rules")
        host.end_pods(paths)
        host.restore(paths, record)
        paths.lock.unlink(missing_ok=True)
        host.remove_if_empty(paths.lock.parent)
    report("the lab is gone")


def status() -> list[PartStatus]:
    """Look at every part, at the node, and at the DNS server in it."""
    paths = LabPaths.of_this_user()
    if not paths.state.exists():
        return []
    lines = [
        PartStatus(part.name, part.process.pid, healthy, part.process.log)
        for part, healthy in _health(_parts(paths).values())
    ]
    api = KubeApi(paths.pki)
    pods = paths.logs / "pods"
    return [
        *lines,
        PartStatus(f"node {pki.NODE_NAME}", None, _node_is_complete(api), pods),
        PartStatus("dns", None, dns.answers(), pods),
    ]


def is_healthy(paths: LabPaths) -> bool:
    """Tell whether everything runs and serves."""
    if not paths.kubeconfig.exists() or not network.is_up():
        return False
    api = KubeApi(paths.pki)
    return (
        all(healthy for _, healthy in _health(_parts(paths).values()))
        and _node_is_complete(api)
        and dns.answers()
    )


def _require_root(step: str) -> None:
    if os.geteuid() != 0:
        raise StepError(step, "a node needs root; or use a cluster of your own, by its kubeconfig")


def _parts(paths: LabPaths) -> dict[str, Part]:
    names = ("kubernetes", "registry", "coredns", "pause")
    return components.parts(paths, Binaries(*map(toolchain.binary_of, names)))


def _health(parts: Iterable[Part]) -> list[tuple[Part, bool]]:
    parts = list(parts)
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(zip(parts, pool.map(Part.is_healthy, parts), strict=True))


def _node_is_complete(api: KubeApi) -> bool:
    node = api.get(_NODE)
    gpus = node and node["status"].get("allocatable", {}).get(manifests.GPU_RESOURCE)
    return gpus == str(manifests.GPUS) and _heartbeat(node) is not None


def _heartbeat(node: dict[str, dict[str, list[dict[str, str]]]] | None) -> datetime | None:
    """Return when the node last said that it is ready; None when it isn't."""
    for condition in (node or {}).get("status", {}).get("conditions", []):
        if condition["type"] == "Ready" and condition["status"] == "True":
            return datetime.fromisoformat(condition["lastHeartbeatTime"])
    return None


class _Starter:
    """Brings the cluster from any state to a running one."""

    def __init__(self, paths: LabPaths, report: Report) -> None:
        self._paths = paths
        self._report = report
        self._parts = _parts(paths)
        self._api = KubeApi(paths.pki)
        self._environment = components.environment(os.environ)

    def start(self) -> None:
        """Go through all steps; each leaves alone what is well."""
        self._remove_remains()
        self._prepare_machine()
        self._stop_deaf_parts()
        self._start("registry")
        pause, dns_image = self._push_images()
        configuration.write_config(self._paths, pause)
        self._start("etcd")
        self._start("kube-apiserver")
        self._apply(manifests.rights())
        starting = datetime.now(UTC).replace(microsecond=0)
        fresh_kubelet = self._parts["kubelet"].process.pid is None
        self._start("containerd")
        self._start("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "volumes")
        forwards = bool((self._paths.config / "resolv.conf").read_text())
        self._apply(manifests.everything(dns_image, forwards=forwards))
        self._wait_for_node(starting if fresh_kubelet else None)
        self._advertise_gpus()
        self._wait("waiting for DNS", dns.answers, _NODE_SECONDS, "kubelet")

    def _remove_remains(self) -> None:
        """Do what a reboot would, where running pods can't be taken over."""
        containerd, kubelet = (self._parts[name].process for name in ("containerd", "kubelet"))
        lost = not containerd.pid and not host.pods_are_served(self._paths)
        # Pods hang on the bridge: a new one has no ports to them.
        cut_off = not network.is_up()
        remains = self._paths.state.exists() or self._paths.run.exists()
        if remains and (lost or cut_off):
            self._report("cleaning up what an earlier lab left")
            kubelet.stop()
            containerd.stop()
            host.end_pods(self._paths)

    def _prepare_machine(self) -> None:
        if not self._paths.host_record.exists():
            host.HostRecord.now().require_no_cluster()
        self._paths.state.mkdir(parents=True, exist_ok=True)
        self._paths.state.chmod(0o711)
        host.HostRecord.ensure(self._paths.host_record)
        for folder in (self._paths.run, self._paths.volumes, self._paths.logs / "pods"):
            folder.mkdir(parents=True, exist_ok=True)
        self._report("network and certificates")
        network.ensure()
        host.make_cgroups()
        pki.ensure(self._paths.pki)
        admin = pki.kubeconfig(self._paths.pki, "admin", CONTEXT, SERVER)
        write(self._paths.kubeconfig, admin, mode=0o600)
        # Everything but the image of a pod's first container, which has to be pushed first.
        configuration.write_config(self._paths, pause_image="")

    def _stop_deaf_parts(self) -> None:
        for part, healthy in _health(self._parts.values()):
            if part.process.pid and not healthy:
                self._report(f"{part.name} doesn't answer: restarting it")
                part.process.stop()

    def _start(self, *names: str) -> None:
        dead = [self._parts[name] for name in names if not self._parts[name].process.pid]
        if dead:
            self._report(f"starting {', '.join(part.name for part in dead)}")
        for part in dead:
            part.process.start(part.argv, self._environment)
        for part in dead:
            self._wait(f"starting {part.name}", part.is_healthy, _START_SECONDS, part.name)

    def _wait(self, step: str, condition: Callable[[], bool], seconds: float, name: str) -> None:
        process = self._parts[name].process
        heartbeat = Heartbeat(self._report, step)
        deadline = time.monotonic() + seconds
        while not wait_until(condition, 1):
            heartbeat.beat()
            if process.pid is None:
                raise StepError(step, f"{name} ended:\n{_end_of(process.log)}", process.log)
            if time.monotonic() > deadline:
                reason = f"not after {seconds:.0f} s; the log ends so:\n{_end_of(process.log)}"
                raise StepError(step, reason, process.log)

    def _push_images(self) -> tuple[str, str]:
        return self._push_image("pause"), self._push_image("coredns")

    def _push_image(self, name: str) -> str:
        binary = toolchain.binary_of(name)
        tag = binary.parent.parent.name.rpartition("-")[2]
        return oci.push_binary(REGISTRY, f"llm-platform-lab/{name}", tag, binary)

    def _apply(self, objects: Iterable[tuple[str, manifests.Manifest]]) -> None:
        for path, manifest in objects:
            self._api.apply(path, manifest)

    def _wait_for_node(self, since: datetime | None) -> None:
        """Wait for the node; after a start of the kubelet, for a sign of life of the new one."""

        def is_ready() -> bool:
            seen = _heartbeat(self._api.get(_NODE))
            return seen is not None and (since is None or seen >= since)

        self._wait("waiting for the node", is_ready, _NODE_SECONDS, "kubelet")

    def _advertise_gpus(self) -> None:
        # A kubelet that starts takes away what no device plugin vouches for.
        amount = {manifests.GPU_RESOURCE: str(manifests.GPUS)}
        self._api.merge(f"{_NODE}/status", {"status": {"capacity": amount, "allocatable": amount}})
        self._wait("advertising GPUs", lambda: _node_is_complete(self._api), 60, "kubelet")


def _end_of(log: Path) -> str:
    return tail(log.read_text(errors="replace")) if log.exists() else ""


def exports(paths: LabPaths | None = None) -> dict[str, str]:
    """Return the environment in which `kubectl` and `pulumi` work with this lab."""
    paths = paths or LabPaths.of_this_user()
    folders = [str(folder) for folder in toolchain.path_entries()]
    variables = {"PATH": os.pathsep.join([*folders, os.environ.get("PATH", "")])}
    if not shutil.which("pulumi-language-python"):
        variables["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        variables["PULUMI_SKIP_UPDATE_CHECK"] = "true"
    if paths.kubeconfig.exists():
        variables["KUBECONFIG"] = str(paths.kubeconfig)
    return variables
