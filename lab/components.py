"""The programs of the cluster: how each is called, and seen to be healthy."""

import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import network, pki
from .kube_api import KubeApi, answers
from .paths import LabPaths
from .processes import Process

_ETCD_PORT = 12379
_ETCD_PEER_PORT = 12380


@dataclass(frozen=True)
class Binaries:
    """The built programs.

    Args:
        kube: Kubernetes and etcd, all in one.
        registry: The image registry.
        coredns: The cluster's DNS server; runs in a pod.
        pause: The first process of a pod; runs in every pod.
    """

    kube: Path
    registry: Path
    coredns: Path
    pause: Path


@dataclass(frozen=True)
class Part:
    """One program of the cluster.

    Args:
        process: Its process and files.
        argv: How it is called.
        answers: Whether it serves, given that its process runs.
    """

    process: Process
    argv: tuple[str | Path, ...]
    answers: Callable[[], bool]

    @property
    def name(self) -> str:
        """Its name in `status`."""
        return self.process.name

    def is_healthy(self) -> bool:
        """Tell whether it runs and serves."""
        return self.process.pid is not None and self.answers()


def parts(paths: LabPaths, binaries: Binaries) -> dict[str, Part]:
    """Describe all programs, in the order in which they start."""
    calls: dict[str, tuple[tuple[str | Path, ...], Callable[[], bool]]] = {
        "registry": (
            (binaries.registry, "serve", paths.config / "registry.json"),
            lambda: answers(network.NODE_ADDRESS, 5000, "/v2/"),
        ),
        "etcd": (_etcd(paths, binaries), lambda: _etcd_answers(paths)),
        "kube-apiserver": (_apiserver(paths, binaries), KubeApi(paths.pki).is_ready),
        "kube-controller-manager": (
            _controller_manager(paths, binaries),
            lambda: answers("127.0.0.1", 10257, "/healthz", tls=_unchecked()),
        ),
        "kube-scheduler": (
            _scheduler(paths, binaries),
            lambda: answers("127.0.0.1", 10259, "/healthz", tls=_unchecked()),
        ),
        "containerd": (
            ("containerd", "--config", paths.config / "containerd.toml"),
            lambda: _listens(paths.containerd_socket),
        ),
        "kubelet": (
            _kubelet(paths, binaries),
            lambda: answers("127.0.0.1", 10248, "/healthz"),
        ),
        "kube-proxy": (
            (binaries.kube, "kube-proxy", "--config", paths.config / "kube-proxy.json"),
            lambda: answers(network.NODE_ADDRESS, 10256, "/livez"),
        ),
        "volumes": (_volumes(paths, binaries), lambda: True),
    }
    return {
        name: Part(Process(name, paths.processes / name, paths.logs / f"{name}.log"), argv, answer)
        for name, (argv, answer) in calls.items()
    }


def _etcd(paths: LabPaths, binaries: Binaries) -> tuple[str | Path, ...]:
    client, peer = f"https://127.0.0.1:{_ETCD_PORT}", f"http://127.0.0.1:{_ETCD_PEER_PORT}"
    return (
        binaries.kube,
        "etcd",
        f"--data-dir={paths.state / 'etcd'}",
        "--name=lab",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=lab={peer}",
        f"--cert-file={paths.pki / 'etcd.crt'}",
        f"--key-file={paths.pki / 'etcd.key'}",
        "--client-cert-auth",
        f"--trusted-ca-file={paths.pki / 'etcd-ca.crt'}",
        # A lab's disk is slow and its data can be made again.
        "--unsafe-no-fsync",
        "--auto-compaction-retention=1",
        "--log-level=warn",
    )


def _apiserver(paths: LabPaths, binaries: Binaries) -> tuple[str | Path, ...]:
    certs = paths.pki
    return (
        binaries.kube,
        "kube-apiserver",
        f"--advertise-address={network.NODE_ADDRESS}",
        f"--bind-address={network.NODE_ADDRESS}",
        f"--service-cluster-ip-range={network.SERVICE_NETWORK}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--cert-dir={paths.run / 'apiserver'}",
        f"--client-ca-file={certs / 'ca.crt'}",
        f"--tls-cert-file={certs / 'apiserver.crt'}",
        f"--tls-private-key-file={certs / 'apiserver.key'}",
        f"--etcd-servers=https://127.0.0.1:{_ETCD_PORT}",
        f"--etcd-cafile={certs / 'etcd-ca.crt'}",
        f"--etcd-certfile={certs / 'etcd-client.crt'}",
        f"--etcd-keyfile={certs / 'etcd-client.key'}",
        f"--kubelet-certificate-authority={certs / 'ca.crt'}",
        f"--kubelet-client-certificate={certs / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={certs / 'apiserver-kubelet-client.key'}",
        # By address: nobody resolves the node's name.
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={certs / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={certs / 'service-accounts.key'}",
        f"--requestheader-client-ca-file={certs / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={certs / 'front-proxy-client.crt'}",
        f"--proxy-client-key-file={certs / 'front-proxy-client.key'}",
        "--enable-aggregator-routing=true",
        "--profiling=false",
    )


def _controller_manager(paths: LabPaths, binaries: Binaries) -> tuple[str | Path, ...]:
    config = paths.config / "controller-manager.kubeconfig"
    return (
        binaries.kube,
        "kube-controller-manager",
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={paths.run / 'controller-manager'}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={paths.pki / 'service-accounts.key'}",
        f"--root-ca-file={paths.pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={paths.pki / 'ca.crt'}",
        f"--cluster-signing-key-file={paths.pki / 'ca.key'}",
        f"--flex-volume-plugin-dir={paths.state / 'flexvolume'}",
        "--profiling=false",
    )


def _scheduler(paths: LabPaths, binaries: Binaries) -> tuple[str | Path, ...]:
    config = paths.config / "scheduler.kubeconfig"
    return (
        binaries.kube,
        "kube-scheduler",
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={paths.run / 'scheduler'}",
        "--leader-elect=false",
        "--profiling=false",
    )


def _kubelet(paths: LabPaths, binaries: Binaries) -> tuple[str | Path, ...]:
    return (
        binaries.kube,
        "kubelet",
        f"--config={paths.config / 'kubelet.json'}",
        f"--kubeconfig={paths.config / 'node.kubeconfig'}",
        f"--root-dir={paths.kubelet}",
        f"--cert-dir={paths.run / 'kubelet'}",
        f"--hostname-override={pki.NODE_NAME}",
        f"--node-ip={network.NODE_ADDRESS}",
    )


def _volumes(paths: LabPaths, binaries: Binaries) -> tuple[str | Path, ...]:
    return (
        binaries.kube,
        "volumes",
        f"--kubeconfig={paths.config / 'volumes.kubeconfig'}",
        f"--root={paths.volumes}",
    )


def environment(outer: Mapping[str, str]) -> dict[str, str]:
    """Choose the environment of the parts: the system's programs, and nothing of the user's.

    Args:
        outer: The environment of the starting process.
    """
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    kept = ("HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")
    # The registry would send traces to a collector that isn't there.
    ours = {"PATH": system, "OTEL_TRACES_EXPORTER": "none"}
    return {name: outer[name] for name in kept if name in outer} | ours


def _etcd_answers(paths: LabPaths) -> bool:
    context = ssl.create_default_context(cafile=str(paths.pki / "etcd-ca.crt"))
    context.load_cert_chain(paths.pki / "etcd-client.crt", paths.pki / "etcd-client.key")
    return answers("127.0.0.1", _ETCD_PORT, "/health", tls=context)


def _unchecked() -> ssl.SSLContext:
    """A context for servers on this machine that sign their certificates themselves."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True
