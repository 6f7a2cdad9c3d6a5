"""In which order a cluster's parts come, and go: the other way round.

What waits for something is deleted before it (pulumi/pulumi-eks#1226, #194, #382, #640: a security
group or subnet that can't go, for network interfaces of pods and nodes are still there).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pulumi
import pytest

from components.aws.cluster import Cluster
from components.aws.cluster_addons import AFTER_NODES, BEFORE_NODES, ClusterAddons
from components.aws.gpu_nodes import GpuPool
from components.aws.karpenter_access import KarpenterAccess, KarpenterAccessArgs
from components.aws.network import Network
from components.aws.system_nodes import SystemNodes
from tests import eks_samples
from tests.harness import Built, Recorded, build


def whole(version: str = "1.35") -> None:
    """Make a cluster with everything of it, as the foundation does."""
    network = Network("net", eks_samples.network_args())
    cluster = Cluster(
        "eks",
        eks_samples.cluster_args(
            version=version, subnet_ids=tuple(network.private_subnets.values())
        ),
        pulumi.ResourceOptions(depends_on=network.ready),
    )
    before = ClusterAddons(
        "before",
        eks_samples.addons_args(
            cluster_name=cluster.cluster_name, addons=BEFORE_NODES, needs=cluster.nodes.ready
        ),
    )
    joined = cluster.nodes.after(*before.ready, *network.ready)
    system = SystemNodes(
        "system",
        eks_samples.system_args(cluster=joined, subnet_ids=tuple(network.private_subnets.values())),
    )
    GpuPool("gpus", eks_samples.pool_args(cluster=joined, subnets=network.gpu_subnets))
    ClusterAddons(
        "after",
        eks_samples.addons_args(
            cluster_name=cluster.cluster_name, addons=AFTER_NODES, needs=system.ready
        ),
    )
    KarpenterAccess(
        "karpenter",
        KarpenterAccessArgs(account=eks_samples.account(), cluster_name=cluster.cluster_name),
    )


@cache
def built_once() -> Built:
    return build(whole)


@pytest.fixture
def built() -> Built:
    return built_once()


def waits_for(built: Built, resource: Recorded) -> set[str]:
    """Return the names of all that a resource waits for, other than components."""
    return {it.name for it in built.before(resource) if it.custom}


def of(kind: str, beginning: str = "") -> Callable[[Built], list[Recorded]]:
    return lambda built: [it for it in built.all(kind) if it.name.startswith(beginning)]


@pytest.mark.parametrize(
    ("later", "sooner"),
    [
        pytest.param(
            of("NodeGroup"), {"before-vpc-cni", "before-kube-proxy"}, id="nodes-after-cni"
        ),
        pytest.param(of("NodeGroup"), {"before-eks-pod-identity-agent"}, id="nodes-after-agent"),
        pytest.param(of("NodeGroup"), {"eks-deployer"}, id="nodes-after-the-deployer-s-entry"),
        pytest.param(
            of("NodeGroup"),
            {f"net-private-{zone}-internet" for zone in eks_samples.ZONES},
            id="nodes-after-their-way-out",
        ),
        pytest.param(of("NodeGroup"), {"net-endpoints-s3"}, id="nodes-after-endpoints"),
        pytest.param(
            of("NodeGroup"),
            {"eks-nodes-AmazonEKSWorkerNodePolicy"},
            id="nodes-after-their-rights",
        ),
        pytest.param(
            of("NodeGroup", "gpus"),
            {f"net-gpu-{zone}" for zone in eks_samples.ZONES},
            id="gpu-nodes-after-their-subnets",
        ),
        pytest.param(of("Addon", "after"), {"system-group"}, id="coredns-after-nodes"),
        pytest.param(of("Addon", "before"), {"eks-cluster"}, id="add-ons-after-the-cluster"),
        pytest.param(
            lambda built: [it for it in built.resources if it.name == "eks-cluster"],
            {f"net-private-{zone}" for zone in eks_samples.ZONES},
            id="cluster-after-its-subnets",
        ),
        pytest.param(of("Tag"), {"gpus-on-demand"}, id="tags-after-their-group"),
        pytest.param(of("AccessEntry", "karpenter"), {"eks-cluster"}, id="entries-after-cluster"),
        pytest.param(
            of("PodIdentityAssociation", "karpenter"), {"eks-cluster"}, id="roles-after-cluster"
        ),
    ],
)
def test_what_comes_later_goes_sooner(
    built: Built, later: Callable[[Built], list[Recorded]], sooner: set[str]
) -> None:
    found = later(built)
    assert found
    for resource in found:
        assert sooner <= waits_for(built, resource), resource.name


def test_nothing_waits_for_itself(built: Built) -> None:
    for resource in built.resources:
        assert resource not in built.before(resource), resource.name


def test_nodes_follow_the_control_plane_to_a_new_version() -> None:
    for version in ("1.34", "1.35"):
        made = build(lambda version=version: whole(version))
        groups = made.all("NodeGroup")
        assert {it.inputs["version"] for it in groups} == {version}
        for group in groups:
            assert "eks-cluster" in waits_for(made, group), group.name


def test_every_node_role_has_one_access_entry_and_nobody_has_two(built: Built) -> None:
    # EKS makes and keeps that of managed node groups itself, so ours are the others'.
    entries: dict[str, list[str]] = {}
    for entry in built.all("AccessEntry"):
        entries.setdefault(entry.inputs["principalArn"], []).append(entry.inputs["type"])
    assert all(len(kinds) == 1 for kinds in entries.values())
    of_nodes = [arn for arn, kinds in entries.items() if kinds == ["EC2_LINUX"]]
    managed = {it.inputs["nodeRoleArn"] for it in built.all("NodeGroup")}
    assert len(of_nodes) == 1
    assert not managed & set(of_nodes)


def test_another_node_role_deletes_and_replaces_nothing(built: Built) -> None:
    def with_another() -> None:
        whole()
        KarpenterAccess(
            "second",
            KarpenterAccessArgs(account=eks_samples.account(), cluster_name="prod-aws"),
        )

    more: dict[str, Any] = {it.urn: it.inputs for it in build(with_another).resources}
    assert {it.urn: it.inputs for it in built.resources}.items() <= more.items()
    assert not [urn for urn in more if "aws-auth" in urn or "ConfigMap" in urn]
