"""What AWS gives back for a resource, for programs that are built without an engine."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from google.protobuf import struct_pb2

with warnings.catch_warnings():
    # The modules warn of classes of their own that nobody here uses; each is read when something
    # of it is first used.
    warnings.simplefilter("ignore", DeprecationWarning)
    import pulumi_aws

    _READ = (pulumi_aws.ec2.Vpc, pulumi_aws.s3.Bucket)

from tests import harness
from tests.harness import Built, build

REGION, ACCOUNT = "eu-west-1", "123456789012"


def arn(service: str, resource: str, *, regional: bool = True) -> str:
    return f"arn:aws:{service}:{REGION if regional else ''}:{ACCOUNT}:{resource}"


def _name(name: str, given: Any) -> str:
    return str(given.get("name") or f"{name}-1a2b3c4")


_OUTPUTS: dict[str, Callable[[str, Any], dict[str, Any]]] = {
    "kms/key:Key": lambda n, _: {"arn": arn("kms", f"key/{n}"), "keyId": n},
    "iam/role:Role": lambda n, g: {
        "arn": arn("iam", f"role/{_name(n, g)}", regional=False),
        "name": _name(n, g),
    },
    "iam/policy:Policy": lambda n, _: {"arn": arn("iam", f"policy/{n}", regional=False)},
    "secretsmanager/secret:Secret": lambda n, _: {
        "arn": arn("secretsmanager", f"secret:{n}-AbCdEf")
    },
    "s3/bucket:Bucket": lambda n, g: {"bucket": g.get("bucket") or f"{n}-1a2b3c4"},
    "sqs/queue:Queue": lambda n, g: {
        "arn": arn("sqs", _name(n, g)),
        "url": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{_name(n, g)}",
    },
    "rds/cluster:Cluster": lambda n, _: {
        "endpoint": f"{n}.cluster-abc.{REGION}.rds.amazonaws.com",
        "clusterResourceId": "cluster-ABC",
        "masterUserSecrets": [{"secretArn": arn("secretsmanager", "secret:rds!cluster-1-AbCdEf")}],
    },
    "elasticache/replicationGroup:ReplicationGroup": lambda n, _: {
        "primaryEndpointAddress": f"master.{n}.abc.euw1.cache.amazonaws.com"
    },
    "acm/certificate:Certificate": lambda n, g: {
        "arn": arn("acm", f"certificate/{n}"),
        "domainValidationOptions": [
            {
                "domainName": g["domainName"],
                "resourceRecordName": f"_proof.{g['domainName']}.",
                "resourceRecordType": "CNAME",
                "resourceRecordValue": "_value.acm-validations.aws.",
            }
        ],
    },
    "lb/loadBalancer:LoadBalancer": lambda n, _: {
        "arn": arn("elasticloadbalancing", f"loadbalancer/app/{n}/0123456789abcdef"),
        "dnsName": f"{n}.elb.amazonaws.com",
        "zoneId": "Z32O12XQLNTSW2",
    },
    "lb/targetGroup:TargetGroup": lambda n, _: {
        "arn": arn("elasticloadbalancing", f"targetgroup/{n}/0123456789abcdef")
    },
    "fsx/lustreFileSystem:LustreFileSystem": lambda n, _: {
        "dnsName": f"{n}.fsx.{REGION}.amazonaws.com",
        "mountName": "abcd",
    },
    **{
        f"{kind}": lambda n, g: {"name": _name(n, g)}
        for kind in (
            "rds/subnetGroup:SubnetGroup",
            "rds/clusterParameterGroup:ClusterParameterGroup",
            "elasticache/subnetGroup:SubnetGroup",
            "elasticache/parameterGroup:ParameterGroup",
            "ecr/repository:Repository",
        )
    },
}


def give_back(kind: str, name: str, state: struct_pb2.Struct) -> None:
    """Add what AWS would add to a resource's state."""
    outputs = _OUTPUTS.get(kind.removeprefix("aws:"))
    if outputs is not None:
        state.update(outputs(name, dict(state.items())))


@dataclass(kw_only=True)
class AwsBuilt(Built):
    """What a program registered, and what of it is protected, by name."""

    protected: set[str]


@contextmanager
def _answering(protected: set[str]) -> Iterator[None]:
    original = harness._Monitor.RegisterResource

    def register(self: Any, request: Any) -> Any:
        response = original(self, request)
        if request.protect:
            protected.add(request.name)
        if request.custom and not self._unknown:
            give_back(request.type, request.name, response.object)
        return response

    with patch.object(harness._Monitor, "RegisterResource", register):
        yield


def build_aws(program: Callable[[], Any], *, preview: bool = False, **how: Any) -> AwsBuilt:
    """Build a program whose AWS resources give back what AWS would."""
    protected: set[str] = set()
    with _answering(protected):
        built = build(program, preview=preview, **how)
    return AwsBuilt(**vars(built), protected=protected)
