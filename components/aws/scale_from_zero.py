"""What the cluster autoscaler is told of a node group that has no node to look at."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ..domain.accelerators import GPU_RESOURCE
from ..domain.aws_instances import Instance
from .gpu_pool_args import Taint

PREFIX = "k8s.io/cluster-autoscaler/node-template"
_EKS_LEAVES = 0.85
"""What of a disk is left to pods: kubelet evicts below 10 % free, and the system needs a little."""


def template_tags(
    labels: Mapping[str, str], taints: Sequence[Taint], instance: Instance, disk_gib: int
) -> Mapping[str, str]:
    """Return the tags of an Auto Scaling group that say what a node of it would be.

    From the tags on a managed node group none reach its Auto Scaling group (eksctl-io/eksctl#7543),
    so these are put there. Without them a pool with no nodes gets none.
    """
    disk_gb = instance.nvme_gb or disk_gib
    resources = {
        GPU_RESOURCE: str(instance.gpus),
        "ephemeral-storage": f"{disk_gb * _EKS_LEAVES:.0f}G",
    }
    return {
        **{f"{PREFIX}/label/{key}": value for key, value in labels.items()},
        **{f"{PREFIX}/taint/{it.key}": f"{it.value}:{it.effect}" for it in taints},
        **{f"{PREFIX}/resources/{key}": value for key, value in resources.items()},
    }


def tag_group(
    name: str,
    group_name: pulumi.Output[str],
    tags: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Put tags on an Auto Scaling group that is made by somebody else.

    They stay off the instances: the autoscaler reads them from the group, and an instance has room
    for fifty.
    """
    return [
        aws.autoscaling.Tag(
            f"{name}-{_short(key)}",
            autoscaling_group_name=group_name,
            tag={"key": key, "value": value, "propagate_at_launch": False},
            opts=opts,
        )
        for key, value in tags.items()
    ]


def _short(key: str) -> str:
    return key.removeprefix(f"{PREFIX}/").replace("/", "-").replace(".", "-")
