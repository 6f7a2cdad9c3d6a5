"""What nodes are told at their first boot, Karpenter's objects, and the cluster's own policies."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from components.aws import karpenter_rights
from components.aws.cluster_autoscaler import autoscaler_rights
from components.aws.node_config import ClusterDetails, node_config, user_data
from components.aws.overflow import node_class, node_pool
from components.domain.accelerators import Accelerator
from components.domain.aws_instances import default_instance, instance
from tests import eks_samples
from tests.aws_outputs import CERTIFICATE, arn
from tests.golden.conftest import RENDERED

OWN_IMAGE = ClusterDetails(
    name="prod-aws",
    endpoint="https://ABC.gr7.eu-west-1.eks.amazonaws.com",
    certificate=CERTIFICATE,
    service_cidr="172.20.0.0/16",
)


def _yaml(value: Any) -> str:
    return yaml.safe_dump(json.loads(json.dumps(value)), sort_keys=True, width=100)


def _overflow() -> str:
    pool = eks_samples.overflow_pool()
    machines = node_class(
        pool,
        instance_profile="prod-aws-karpenter-nodes",
        security_group_id="sg-cluster",
        subnets=eks_samples.SUBNETS,
    )
    return _yaml({"EC2NodeClass": machines, "NodePool": node_pool(pool, eks_samples.ZONES)})


NODES: dict[str, Callable[[], str]] = {
    "gpu.txt": lambda: user_data(node_config([default_instance(Accelerator.H100)])),
    "gpu-small.txt": lambda: user_data(node_config([instance("g6.xlarge")])),
    "gpu-own-image.txt": lambda: user_data(
        node_config([default_instance(Accelerator.L40S)], OWN_IMAGE)
    ),
    "system.txt": lambda: user_data(node_config([instance("m7i.xlarge")])),
    "system-large.txt": lambda: user_data(node_config([instance("m7i.2xlarge")])),
    "overflow.yaml": _overflow,
}
POLICIES: dict[str, Callable[[], Any]] = {
    "cluster-autoscaler": lambda: autoscaler_rights(eks_samples.account(), "prod-aws"),
    "karpenter": lambda: [
        *karpenter_rights.instances(eks_samples.account(), "prod-aws"),
        *karpenter_rights.look_ups(eks_samples.account(), "prod-aws"),
        *karpenter_rights.profile(
            eks_samples.account(),
            arn("iam", "role/nodes", regional=False),
            arn("iam", "instance-profile/nodes", regional=False),
        ),
        *karpenter_rights.interruptions(arn("sqs", "prod-aws-karpenter-interruptions")),
    ],
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_are_told_what_was_reviewed(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"nodes/{name}", NODES[name]())


@pytest.mark.parametrize("name", POLICIES)
def test_policies_are_the_reviewed_ones(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"cluster_iam/{name}.json", json.dumps(POLICIES[name](), indent=2) + "\n")


def test_every_golden_file_belongs_to_something() -> None:
    assert {path.name for path in (RENDERED / "nodes").iterdir()} == set(NODES)
    assert {path.stem for path in (RENDERED / "cluster_iam").iterdir()} == set(POLICIES)
