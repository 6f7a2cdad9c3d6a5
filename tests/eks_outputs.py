"""What EKS and EC2 give back for a resource, and what they answer when they are asked."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

with warnings.catch_warnings():
    # The module warns of classes of its own that nobody here uses.
    warnings.simplefilter("ignore", DeprecationWarning)
    import pulumi_aws

    # A module is read when something of it is first used.
    _READ = (pulumi_aws.ec2.Vpc, pulumi_aws.s3.Bucket)

from google.protobuf import json_format, struct_pb2
from pulumi.runtime.proto import provider_pb2

from tests import aws_outputs, harness
from tests.aws_outputs import ACCOUNT, REGION, AwsBuilt, arn, build_aws

CERTIFICATE = "LS0tLS1CRUdJTg=="
SCALING_GROUP = "eks-{0}-1a2b3c4d"


def _cluster(_: str, given: Any) -> dict[str, Any]:
    return {
        "endpoint": "https://ABC.gr7.eu-west-1.eks.amazonaws.com",
        "certificateAuthority": {"data": CERTIFICATE},
        "arn": arn("eks", f"cluster/{given['name']}"),
        "vpcConfig": {**dict(given["vpcConfig"].items()), "clusterSecurityGroupId": "sg-cluster"},
    }


def _node_group(name: str, given: Any) -> dict[str, Any]:
    own = str(given.get("nodeGroupName") or f"{name}-1a2b3c4")
    return {
        "nodeGroupName": own,
        "resources": [{"autoscalingGroups": [{"name": SCALING_GROUP.format(own)}]}],
    }


_QUEUE = aws_outputs._OUTPUTS["sqs/queue:Queue"]
aws_outputs._OUTPUTS.update(
    {
        "sqs/queue:Queue": lambda name, given: {
            **_QUEUE(name, given),
            "name": str(given.get("name") or f"{name}-1a2b3c4"),
        },
        "eks/cluster:Cluster": _cluster,
        "eks/nodeGroup:NodeGroup": _node_group,
        "ec2/launchTemplate:LaunchTemplate": lambda _, __: {"latestVersion": 3},
        "iam/instanceProfile:InstanceProfile": lambda name, _: {
            "name": f"{name}-1a2b3c4",
            "arn": arn("iam", f"instance-profile/{name}-1a2b3c4", regional=False),
        },
        "cloudwatch/eventRule:EventRule": lambda name, _: {
            "arn": arn("events", f"rule/{name}"),
            "name": f"{name}-1a2b3c4",
        },
    }
)

EXISTING: Mapping[str, Any] = {
    "aws:eks/getCluster:getCluster": {
        "name": "theirs",
        "endpoint": "https://THEIRS.gr7.eu-west-1.eks.amazonaws.com",
        "version": "1.34",
        "certificateAuthorities": [{"data": CERTIFICATE}],
        "vpcConfig": {"clusterSecurityGroupId": "sg-theirs"},
        "kubernetesNetworkConfigs": [{"serviceIpv4Cidr": "10.100.0.0/16"}],
    }
}


@contextmanager
def answering(answers: Mapping[str, Any] = EXISTING) -> Iterator[list[Mapping[str, Any]]]:
    """Answer look-ups, and note what was asked."""
    asked: list[Mapping[str, Any]] = []

    def invoke(self: Any, request: Any) -> Any:
        asked.append(json_format.MessageToDict(request.args))
        answer = struct_pb2.Struct()
        answer.update(answers[request.tok])
        return provider_pb2.InvokeResponse(**{"return": answer})

    with patch.object(harness._Monitor, "Invoke", invoke):
        yield asked


__all__ = ["ACCOUNT", "REGION", "AwsBuilt", "answering", "arn", "build_aws"]
