"""The configuration files of the cluster's programs."""

import json
from pathlib import Path
from typing import Any

from . import containerd, network, pki
from .commands import write
from .host import CGROUP
from .kube_api import SERVER
from .paths import LabPaths

MAX_PODS = 110
_HOST_RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))


def write_config(paths: LabPaths, pause_image: str) -> None:
    """Write the configuration of all parts; the certificates must be there."""
    for user in ("controller-manager", "scheduler", "proxy", "volumes", "node"):
        file = paths.config / f"{user}.kubeconfig"
        write(file, pki.kubeconfig(paths.pki, user, "lab", SERVER), mode=0o600)
    resolvers = [path.read_text() for path in _HOST_RESOLVERS if path.exists()]
    write(paths.config / "resolv.conf", usable_resolvers(resolvers))
    for name, content in (
        ("kubelet.json", kubelet_config(paths)),
        ("kube-proxy.json", proxy_config(paths)),
        ("registry.json", registry_config(paths)),
    ):
        write(paths.config / name, json.dumps(content, indent=2))
    containerd.write_config(paths, pause_image)


def usable_resolvers(candidates: list[str]) -> str:
    """Pick the first resolver configuration that means something inside a pod.

    Args:
        candidates: Contents of resolv.conf files. One that names only servers on the
            loopback interface is of no use in a pod, which has its own.
    """
    for text in candidates:
        words = [line.split() for line in text.splitlines()]
        servers = [word[1] for word in words if len(word) > 1 and word[0] == "nameserver"]
        usable = [each for each in servers if not each.startswith("127.") and each != "::1"]
        if usable:
            return "".join(f"nameserver {each}\n" for each in usable)
    return ""


def kubelet_config(paths: LabPaths) -> dict[str, Any]:
    """Render the kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": network.NODE_ADDRESS,
        "healthzBindAddress": "127.0.0.1",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(paths.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(paths.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(paths.pki / "kubelet.key"),
        "cgroupDriver": "cgroupfs",
        # All pods below one group of ours: what is in it is surely the lab's.
        "cgroupRoot": f"/{CGROUP}",
        "containerRuntimeEndpoint": f"unix://{paths.containerd_socket}",
        "clusterDNS": [network.DNS_SERVICE_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(paths.config / "resolv.conf"),
        "podLogsDir": str(paths.logs / "pods"),
        "volumePluginDir": str(paths.state / "flexvolume"),
        "failSwapOn": False,
        # Where the machine is a container, some of the kernel's settings can't be set.
        "featureGates": {"KubeletInUserNamespace": True},
        "maxPods": MAX_PODS,
        "serializeImagePulls": False,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
        # Images are pulled from a registry on the same disk: throwing them away gains nothing.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def proxy_config(paths: LabPaths) -> dict[str, Any]:
    """Render kube-proxy's configuration."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(paths.config / "proxy.kubeconfig")},
        "clusterCIDR": network.POD_NETWORK,
        "hostnameOverride": pki.NODE_NAME,
        "bindAddress": network.NODE_ADDRESS,
        "healthzBindAddress": f"{network.NODE_ADDRESS}:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # What is published on the node is for this machine alone.
        "nodePortAddresses": ["127.0.0.0/8", network.POD_NETWORK],
        # Connection tracking belongs to the machine: leave its limits alone.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def registry_config(paths: LabPaths) -> dict[str, Any]:
    """Render the registry's configuration (JSON is YAML)."""
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(paths.state / "registry")},
            "delete": {"enabled": True},
        },
        # One server alone needs no shared secret, but warns without one.
        "http": {"addr": containerd.REGISTRY, "secret": "one-server"},
    }
