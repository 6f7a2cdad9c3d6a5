"""What the lab puts into the cluster: DNS, the storage class, rights of its own parts."""

from typing import Any

from . import network

GPUS = 8
GPU_RESOURCE = "nvidia.com/gpu"
PROVISIONER = "llm-platform.local/volumes"
STORAGE_CLASS = "lab"
_DNS_LABELS = {"k8s-app": "kube-dns"}

Manifest = dict[str, Any]

_COREFILE = """.:53 {
    errors
    health {
        lameduck 2s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }
    prometheus :9153
FORWARD
    cache 5
    loadbalance
}
"""


def everything(dns_image: str, *, forwards: bool) -> list[tuple[str, Manifest]]:
    """List the objects with the paths under which the API server keeps them.

    Args:
        dns_image: The image of the DNS server.
        forwards: Whether names outside the cluster can be asked of the machine's resolver.
    """
    return [*rights(), storage_class(), *dns(dns_image, forwards=forwards)]


def rights() -> list[tuple[str, Manifest]]:
    """Let the volume provisioner, and the API server at the kubelet, do their work."""
    return [
        _binding(
            "llm-platform-lab-volumes",
            "system:persistent-volume-provisioner",
            _user("llm-platform-lab-volumes"),
        ),
        _binding(
            "llm-platform-lab-apiserver",
            "system:kubelet-api-admin",
            _user("llm-platform-lab-apiserver"),
        ),
        _binding(
            "llm-platform-lab-dns",
            "llm-platform-lab-dns",
            {"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"},
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/llm-platform-lab-dns",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "llm-platform-lab-dns"},
                "rules": [
                    _watch("", ["endpoints", "services", "pods", "namespaces"]),
                    _watch("discovery.k8s.io", ["endpointslices"]),
                ],
            },
        ),
    ]


def _watch(group: str, resources: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]}


def _user(name: str) -> Manifest:
    return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def _binding(name: str, role: str, subject: Manifest) -> tuple[str, Manifest]:
    return (
        f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [subject],
        },
    )


def storage_class() -> tuple[str, Manifest]:
    """The default class: a folder on the node per claim."""
    return (
        f"/apis/storage.k8s.io/v1/storageclasses/{STORAGE_CLASS}",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": STORAGE_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            # One node: there is nothing to wait for.
            "volumeBindingMode": "Immediate",
        },
    )


def dns(image: str, *, forwards: bool) -> list[tuple[str, Manifest]]:
    """The cluster's DNS server behind its Service."""
    core = "/api/v1/namespaces/kube-system"
    return [
        (f"{core}/serviceaccounts/coredns", _named("v1", "ServiceAccount", "coredns")),
        (f"{core}/configmaps/coredns", _corefile(forwards=forwards)),
        (
            "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
            _named("apps/v1", "Deployment", "coredns")
            | {
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": _DNS_LABELS},
                    "template": {"metadata": {"labels": _DNS_LABELS}, "spec": _dns_pod(image)},
                }
            },
        ),
        (
            f"{core}/services/kube-dns",
            _named("v1", "Service", "kube-dns")
            | {
                "spec": {
                    "clusterIP": network.DNS_SERVICE_ADDRESS,
                    "selector": _DNS_LABELS,
                    "ports": [
                        {"name": "dns", "port": 53, "protocol": "UDP"},
                        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
                    ],
                }
            },
        ),
    ]


def _named(version: str, kind: str, name: str) -> Manifest:
    metadata = {"name": name, "namespace": "kube-system", "labels": _DNS_LABELS}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _corefile(*, forwards: bool) -> Manifest:
    forward = "    forward . /etc/resolv.conf" if forwards else ""
    text = _COREFILE.replace("FORWARD\n", f"{forward}\n" if forward else "")
    return _named("v1", "ConfigMap", "coredns") | {"data": {"Corefile": text}}


def _dns_pod(image: str) -> Manifest:
    return {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        # The machine's resolver, not this server itself.
        "dnsPolicy": "Default",
        "containers": [
            {
                "name": "coredns",
                "image": image,
                "args": ["-conf", "/etc/coredns/Corefile"],
                "ports": [
                    {"containerPort": 53, "name": "dns", "protocol": "UDP"},
                    {"containerPort": 53, "name": "dns-tcp", "protocol": "TCP"},
                ],
                "resources": {"requests": {"cpu": "10m", "memory": "24Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
                "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                    "runAsNonRoot": True,
                    "runAsUser": 65532,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
