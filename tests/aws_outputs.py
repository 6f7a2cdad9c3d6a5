"""What AWS gives back for a resource, and answers when it is asked, where there is no AWS."""

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import struct_pb2

REGION, ACCOUNT = "eu-west-1", "123456789012"
CERTIFICATE = "LS0tLS1CRUdJTg=="
RANDOM = "1a2b3c4"
"""What Pulumi adds to the names that it makes, where it isn't random."""
SCALING_GROUP = "eks-{0}-1a2b3c4d"
THEIRS: Mapping[str, Any] = {
    "aws:eks/getCluster:getCluster": {
        "name": "theirs",
        "endpoint": "https://THEIRS.gr7.eu-west-1.eks.amazonaws.com",
        "version": "1.34",
        "certificateAuthorities": [{"data": CERTIFICATE}],
        "vpcConfig": {"clusterSecurityGroupId": "sg-theirs"},
        "kubernetesNetworkConfigs": [{"serviceIpv4Cidr": "10.100.0.0/16"}],
    }
}
"""What is answered of a cluster that is there already."""


def arn(service: str, resource: str, *, regional: bool = True) -> str:
    return f"arn:aws:{service}:{REGION if regional else ''}:{ACCOUNT}:{resource}"


def _made(name: str) -> str:
    return f"{name}-{RANDOM}"


def _name(name: str, given: Any) -> str:
    return str(given.get("name") or _made(name))


def _cluster(_: str, given: Any) -> dict[str, Any]:
    return {
        "endpoint": "https://ABC.gr7.eu-west-1.eks.amazonaws.com",
        "certificateAuthority": {"data": CERTIFICATE},
        "arn": arn("eks", f"cluster/{given['name']}"),
        "vpcConfig": {**dict(given["vpcConfig"].items()), "clusterSecurityGroupId": "sg-cluster"},
    }


def _node_group(name: str, given: Any) -> dict[str, Any]:
    own = str(given.get("nodeGroupName") or _made(name))
    return {
        "nodeGroupName": own,
        "resources": [{"autoscalingGroups": [{"name": SCALING_GROUP.format(own)}]}],
    }


_OUTPUTS: dict[str, Callable[[str, Any], dict[str, Any]]] = {
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
    "cloudwatch/eventRule:EventRule": lambda n, _: {
        "arn": arn("events", f"rule/{n}"),
        "name": _made(n),
    },
    "ec2/launchTemplate:LaunchTemplate": lambda _, __: {"latestVersion": 3},
    "eks/cluster:Cluster": _cluster,
    "eks/nodeGroup:NodeGroup": _node_group,
    "elasticache/replicationGroup:ReplicationGroup": lambda n, _: {
        "primaryEndpointAddress": f"master.{n}.abc.euw1.cache.amazonaws.com"
    },
    "fsx/lustreFileSystem:LustreFileSystem": lambda n, _: {
        "dnsName": f"{n}.fsx.{REGION}.amazonaws.com",
        "mountName": "abcd",
    },
    "iam/instanceProfile:InstanceProfile": lambda n, _: {
        "name": _made(n),
        "arn": arn("iam", f"instance-profile/{_made(n)}", regional=False),
    },
    "iam/policy:Policy": lambda n, _: {"arn": arn("iam", f"policy/{n}", regional=False)},
    "iam/role:Role": lambda n, g: {
        "arn": arn("iam", f"role/{_name(n, g)}", regional=False),
        "name": _name(n, g),
    },
    "kms/key:Key": lambda n, _: {"arn": arn("kms", f"key/{n}"), "keyId": n},
    "lb/loadBalancer:LoadBalancer": lambda n, _: {
        "arn": arn("elasticloadbalancing", f"loadbalancer/app/{n}/0123456789abcdef"),
        "dnsName": f"{n}.elb.amazonaws.com",
        "zoneId": "Z32O12XQLNTSW2",
    },
    "lb/targetGroup:TargetGroup": lambda n, _: {
        "arn": arn("elasticloadbalancing", f"targetgroup/{n}/0123456789abcdef")
    },
    "rds/cluster:Cluster": lambda n, _: {
        "endpoint": f"{n}.cluster-abc.{REGION}.rds.amazonaws.com",
        "clusterResourceId": "cluster-ABC",
        "masterUserSecrets": [{"secretArn": arn("secretsmanager", "secret:rds!cluster-1-AbCdEf")}],
    },
    "s3/bucket:Bucket": lambda n, g: {"bucket": g.get("bucket") or _made(n)},
    "secretsmanager/secret:Secret": lambda n, _: {
        "arn": arn("secretsmanager", f"secret:{n}-AbCdEf")
    },
    "sqs/queue:Queue": lambda n, g: {
        "arn": arn("sqs", _name(n, g)),
        "url": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{_name(n, g)}",
        "name": _name(n, g),
    },
    **{
        kind: lambda n, g: {"name": _name(n, g)}
        for kind in (
            "ecr/repository:Repository",
            "elasticache/parameterGroup:ParameterGroup",
            "elasticache/subnetGroup:SubnetGroup",
            "rds/clusterParameterGroup:ClusterParameterGroup",
            "rds/subnetGroup:SubnetGroup",
        )
    },
}


def give_back(kind: str, name: str, state: struct_pb2.Struct) -> None:
    """Add what AWS would add to a resource's state."""
    outputs = _OUTPUTS.get(kind.removeprefix("aws:"))
    if outputs is not None:
        state.update(outputs(name, dict(state.items())))
