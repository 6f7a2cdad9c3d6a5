"""Network policies: nothing may talk to anything but on the paths opened here."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain import labels
from . import workload

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that Kubernetes itself puts on every namespace."""

Peer = k8s.networking.v1.NetworkPolicyPeerArgsDict
Egress = tuple[Sequence[Peer], Sequence[int]]
"""Whom pods may reach, and on which ports; no peers means anywhere."""
_DNS_PORTS: list[k8s.networking.v1.NetworkPolicyPortArgsDict] = [
    {"port": 53, "protocol": "UDP"},
    {"port": 53, "protocol": "TCP"},
]


_DNS_NAMESPACE = "kube-system"
_DNS_PODS = {"k8s-app": "kube-dns"}
"""The label of the cluster's name servers, CoreDNS too, wherever Kubernetes runs."""


def namespace_peer(name: In[str], pods: Mapping[str, str] | None = None) -> Peer:
    """Return the pods of one namespace, all of them or those with these labels."""
    peer: Peer = {"namespace_selector": {"match_labels": {NAMESPACE_NAME: name}}}
    if pods:
        peer["pod_selector"] = {"match_labels": pods}
    return peer


def team_peer(pods: Mapping[str, str] | None = None) -> Peer:
    """Return the pods of every team's namespace."""
    peer: Peer = {
        "namespace_selector": {"match_expressions": [{"key": labels.TEAM, "operator": "Exists"}]}
    }
    if pods:
        peer["pod_selector"] = {"match_labels": pods}
    return peer


_NOT_PUBLIC = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3"),
]
"""Private, shared, link-local (clouds' metadata among them), reserved and multicast addresses."""


def public_addresses() -> Peer:
    """Return every address of the Internet, and none within a network of ours."""
    return {"ip_block": {"cidr": "0.0.0.0/0", "except_": _NOT_PUBLIC}}


def together(*paths: Sequence[Egress]) -> list[Egress]:
    """Return the rules of several paths, those that lead to the same peers as one rule."""
    rules: list[tuple[Sequence[Peer], list[int]]] = []
    for peers, ports in (rule for path in paths for rule in path):
        known = next((rule for rule in rules if rule[0] is peers), None)
        if known is None:
            rules.append((peers, list(ports)))
        else:
            known[1].extend(port for port in ports if port not in known[1])
    return list(rules)


def endpoint_pods() -> k8s.meta.v1.LabelSelectorArgsDict:
    """Return the selector of every endpoint's workers."""
    return {"match_expressions": [{"key": labels.ENDPOINT, "operator": "Exists"}]}


def default_deny(
    name: str, namespace: In[str], opts: pulumi.ResourceOptions
) -> k8s.networking.v1.NetworkPolicy:
    """Close a namespace both ways; its pods may still ask the cluster's name servers."""
    return k8s.networking.v1.NetworkPolicy(
        f"{name}-default-deny",
        metadata=workload.metadata("default-deny", namespace, component="network"),
        spec={
            "pod_selector": {},
            "policy_types": ["Ingress", "Egress"],
            "egress": [{"to": [namespace_peer(_DNS_NAMESPACE, _DNS_PODS)], "ports": _DNS_PORTS}],
        },
        opts=opts,
    )


def allow_ingress(
    resource_name: str,
    *,
    name: str,
    namespace: In[str],
    pods: k8s.meta.v1.LabelSelectorArgsDict,
    peers: Sequence[Peer],
    ports: Sequence[int],
    opts: pulumi.ResourceOptions,
) -> k8s.networking.v1.NetworkPolicy:
    """Let ``peers`` reach ``pods`` on ``ports``; no peers means everyone."""
    rule: k8s.networking.v1.NetworkPolicyIngressRuleArgsDict = {
        "ports": [{"port": port, "protocol": "TCP"} for port in ports]
    }
    if peers:
        rule["from_"] = list(peers)
    return k8s.networking.v1.NetworkPolicy(
        resource_name,
        metadata=workload.metadata(name, namespace, component="network"),
        spec={"pod_selector": pods, "policy_types": ["Ingress"], "ingress": [rule]},
        opts=opts,
    )


def allow_egress(
    resource_name: str,
    *,
    name: str,
    namespace: In[str],
    pods: k8s.meta.v1.LabelSelectorArgsDict,
    rules: Sequence[Egress],
    opts: pulumi.ResourceOptions,
) -> k8s.networking.v1.NetworkPolicy:
    """Let ``pods`` reach the peers of each rule on its ports; no peers means anywhere."""
    egress: list[k8s.networking.v1.NetworkPolicyEgressRuleArgsDict] = []
    for peers, ports in rules:
        rule: k8s.networking.v1.NetworkPolicyEgressRuleArgsDict = {
            "ports": [{"port": port, "protocol": "TCP"} for port in ports]
        }
        if peers:
            rule["to"] = list(peers)
        egress.append(rule)
    return k8s.networking.v1.NetworkPolicy(
        resource_name,
        metadata=workload.metadata(name, namespace, component="network"),
        spec={"pod_selector": pods, "policy_types": ["Egress"], "egress": egress},
        opts=opts,
    )
