"""What a node is told at its first boot: nodeadm's ``NodeConfig``; pure, so that it can be read."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..domain.aws_instances import Instance
from ..kube.addon import as_yaml

PARALLEL_PULLS = 8
"""Images that kubelet pulls at once. Our own pick: nobody has measured where it ends to pay off."""
FAST_PULL_VCPUS = 8
"""From here on layers are pulled in parallel; smaller nodes lack the processors for it
(awslabs/soci-snapshotter, docs/parallel-mode.md)."""
LOCAL_DISK = "/mnt/k8s-disks/0"
"""Where nodeadm mounts the array of a node's own disks; kubelet and containerd live there too."""
_BOUNDARY = "llm-platform-node-config"


@dataclass(frozen=True, kw_only=True)
class ClusterDetails:
    """How a node finds its cluster; EKS adds this by itself unless the image is one of ours."""

    name: str
    endpoint: str
    certificate: str
    """Base64, as EKS gives it."""
    service_cidr: str


def node_config(instances: Sequence[Instance], cluster: ClusterDetails | None = None) -> str:
    """Return the ``NodeConfig`` of nodes that may be of any of these types, as YAML.

    A node's own disks become one array that holds images, logs and weights. Layers of images are
    pulled in parallel (SOCI; in AWS's words experimental, AMIs from v20250821 on).

    Args:
        instances: The types; what only some of them have is left out.
        cluster: Where the cluster is; left out where EKS says it.
    """
    spec: dict[str, Any] = {}
    if cluster is not None:
        spec["cluster"] = {
            "name": cluster.name,
            "apiServerEndpoint": cluster.endpoint,
            "certificateAuthority": cluster.certificate,
            "cidr": cluster.service_cidr,
        }
    if all(it.vcpus >= FAST_PULL_VCPUS for it in instances):
        spec["featureGates"] = {"FastImagePull": True}
    if all(it.nvme_gb for it in instances):
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    spec["kubelet"] = {
        "config": {"serializeImagePulls": False, "maxParallelImagePulls": PARALLEL_PULLS}
    }
    return as_yaml({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})


def user_data(config: str) -> str:
    """Return a node's user data: one part of a MIME message, to which EKS adds its own."""
    lines = [
        "MIME-Version: 1.0",
        f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"',
        "",
        f"--{_BOUNDARY}",
        "Content-Type: application/node.eks.aws",
        "",
        config.rstrip("\n"),
        "",
        f"--{_BOUNDARY}--",
        "",
    ]
    return "\n".join(lines)


def encoded(config: str) -> str:
    """Return the same as launch templates take it."""
    return base64.b64encode(user_data(config).encode()).decode()
