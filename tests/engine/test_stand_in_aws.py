"""The stand-in for AWS under the real engine and the real SDK: what a plan may rely on."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
from pulumi import automation

from tests.engine.aws_harness import (
    AwsEngine,
    failed_programs_let_go,
    forget_everything,
    moto_server,
)

pytestmark = pytest.mark.timeout(300)

QUEUE, VPC = "sqs/queue:Queue", "ec2/vpc:Vpc"
BUCKET, NODES = "s3/bucket:Bucket", "eks/nodeGroup:NodeGroup"
SERVER = {"STAND_IN_KUBE_SERVER": "https://127.0.0.1:6443", "STAND_IN_KUBE_CA": "Q0E="}


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture(autouse=True)
def _failed_programs_let_go() -> Iterator[None]:
    with failed_programs_let_go():
        yield


@pytest.fixture
def engine(moto: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AwsEngine:
    forget_everything(moto)
    return AwsEngine(tmp_path, moto, tmp_path_factory.getbasetemp() / "sdk", **SERVER)


def changes(stack: automation.Stack) -> dict[str, int]:
    summary = stack.preview().change_summary
    return {str(kind): n for kind, n in summary.items() if kind != "same" and n}


def trust(service: str) -> str:
    allowed = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def test_what_a_preview_does_not_know_an_update_makes_really_and_then_nothing_changes(
    engine: AwsEngine,
) -> None:
    known: dict[str, Any] = {}

    def program() -> None:
        known.clear()
        vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", tags={"team": "search"})
        for name in ("cidr_block", "tags", "id", "arn", "default_security_group_id"):
            getattr(vpc, name).apply(lambda value, name=name: known.setdefault(name, value))
        dead = aws.sqs.Queue("dead", message_retention_seconds=1_209_600)
        redrive = {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 5}
        queue = aws.sqs.Queue(
            "work", name="dev-work", redrive_policy=pulumi.Output.json_dumps(redrive)
        )
        pulumi.export("url", queue.url)
        pulumi.export("zones", aws.get_availability_zones(state="available").names)
        pulumi.export("account", aws.get_caller_identity().account_id)
        pulumi.export("region", aws.get_region().region)
        pulumi.export("cidr", aws.ec2.get_vpc_output(id=vpc.id).cidr_block)

    stack = engine.stack("dev", program, **{"aws:defaultTags": {"tags": {"env": "dev"}}})
    assert changes(stack) == {"create": 4}
    assert known == {"cidr_block": "10.0.0.0/16", "tags": {"team": "search"}}
    assert engine.log == []

    outputs = {name: output.value for name, output in stack.up().outputs.items()}
    assert known["arn"] == f"arn:aws:ec2:us-east-1:123456789012:vpc/{known['id']}"
    groups = {"GroupIds": [known["default_security_group_id"]]}
    assert engine.call("ec2", "DescribeSecurityGroups", **groups)["SecurityGroups"]
    url = outputs.pop("url")
    assert url == f"{engine.moto}/123456789012/dev-work"
    engine.call("sqs", "SendMessage", QueueUrl=url, MessageBody="hello")
    got = engine.call("sqs", "ReceiveMessage", QueueUrl=url)
    assert [message["Body"] for message in got["Messages"]] == ["hello"]
    assert engine.call("sqs", "ListQueueTags", QueueUrl=url)["Tags"] == {"env": "dev"}
    assert outputs.pop("zones")[:2] == ["us-east-1a", "us-east-1b"]
    assert outputs == {"account": "123456789012", "region": "us-east-1", "cidr": "10.0.0.0/16"}

    assert stack.refresh().summary.resource_changes == {"same": 4}
    assert changes(stack) == {}


def queue(name: str, seconds: int, protect: bool = False) -> Callable[[], None]:
    def program() -> None:
        protected = pulumi.ResourceOptions(protect=protect)
        aws.sqs.Queue("q", name=name, visibility_timeout_seconds=seconds, opts=protected)

    return program


def test_a_change_updates_another_name_replaces_and_that_not_when_it_is_protected(
    engine: AwsEngine,
) -> None:
    engine.stack("dev", queue("one", 60)).up()
    assert changes(engine.stack("dev", queue("one", 90))) == {"update": 1}
    assert changes(engine.stack("dev", queue("two", 60))) == {"replace": 1}
    engine.stack("dev", queue("two", 90, protect=True)).up()
    names = [url.rpartition("/")[2] for url in engine.call("sqs", "ListQueues")["QueueUrls"]]
    assert names == ["two"]
    with pytest.raises(automation.CommandError, match="protect"):
        engine.stack("dev", queue("three", 90, protect=True)).preview()


def unlike(**changed: Any) -> Callable[[], None]:
    """A node group with something wrong, after something that is right."""

    def program() -> None:
        vpc = aws.ec2.Vpc("before", cidr_block="10.0.0.0/16")
        said: Mapping[str, Any] = {
            "cluster_name": "dev",
            "node_role_arn": "arn:aws:iam::123456789012:role/node",
            "subnet_ids": ["subnet-1"],
            "labels": {"vpc": vpc.id},
            "scaling_config": {"min_size": 0, "max_size": 4, "desired_size": 0},
        }
        aws.eks.NodeGroup("gpu", **{**said, **changed})

    return program


WRONG: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "an enum, a missing and an unknown property": (
        unlike(
            ami_type="AL2023_x86_64_NVIDIA",
            scaling_config={"min_size": 0, "desired_size": 0},
            update_config={"max_unavailble": 1},
        ),
        ("scalingConfig.maxSize", "is required and missing", "max_unavailble"),
    ),
    "an enum of the service": (
        unlike(ami_type="AL2023_x86_64_NVDIA"),
        ("amiType", "'AL2023_x86_64_NVDIA' is none of", "AL2023_x86_64_NVIDIA"),
    ),
    "an over-long name": (
        unlike(node_group_name="g" * 64),
        ("nodeGroupName", "has 64 characters, at most 63 are allowed"),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_in_the_preview_by_its_property(
    engine: AwsEngine, case: str
) -> None:
    program, said = WRONG[case]
    with pytest.raises(automation.CommandError) as refused:
        engine.stack("dev", program).preview()
    for text in said:
        assert text in str(refused.value)
    assert engine.log == []


def cluster(most: int) -> Callable[[], None]:
    """A cluster with one group of nodes, of which the autoscaler owns the size."""

    def program() -> None:
        vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")
        subnets = [
            aws.ec2.Subnet(
                f"net-{zone}",
                vpc_id=vpc.id,
                cidr_block=f"10.0.{at}.0/24",
                availability_zone=f"us-east-1{zone}",
            )
            for at, zone in enumerate("ab")
        ]
        made = aws.eks.Cluster(
            "dev",
            role_arn=aws.iam.Role("control", assume_role_policy=trust("eks.amazonaws.com")).arn,
            version="1.35",
            vpc_config={"subnet_ids": [subnet.id for subnet in subnets]},
        )
        aws.eks.NodeGroup(
            "gpu",
            cluster_name=made.name,
            node_role_arn=aws.iam.Role("node", assume_role_policy=trust("ec2.amazonaws.com")).arn,
            subnet_ids=[subnets[0].id],
            instance_types=["g6e.xlarge"],
            ami_type="AL2023_x86_64_NVIDIA",
            scaling_config={"min_size": 0, "max_size": most, "desired_size": 1},
            opts=pulumi.ResourceOptions(ignore_changes=["scalingConfig.desiredSize"]),
        )
        aws.kms.Key("own", deletion_window_in_days=7)
        pulumi.export("authority", made.certificate_authority.data)
        pulumi.export("endpoint", made.endpoint)
        pulumi.export("found", aws.eks.get_cluster_output(name=made.name).endpoint)

    return program


def sizes(engine: AwsEngine, *scaled: int) -> tuple[int, ...]:
    """Return least, most and desired nodes; set them before, as an autoscaler would."""
    found = engine.objects(NODES)[0]["inputs"]
    named = {"clusterName": found["clusterName"], "nodegroupName": found["nodeGroupName"]}
    names = ("minSize", "maxSize", "desiredSize")
    if scaled:
        change = {"scalingConfig": dict(zip(names, scaled, strict=True))}
        engine.call("eks", "UpdateNodegroupConfig", **named, **change)
    seen = engine.call("eks", "DescribeNodegroup", **named)["nodegroup"]["scalingConfig"]
    return tuple(seen[name] for name in names)


def test_a_cluster_leads_where_the_test_says_keeps_its_size_and_leaves_nothing(
    engine: AwsEngine,
) -> None:
    stack = engine.stack("dev", cluster(most=4))
    outputs = {name: output.value for name, output in stack.up().outputs.items()}
    server = SERVER["STAND_IN_KUBE_SERVER"]
    assert outputs == {"endpoint": server, "found": server, "authority": "Q0E="}

    assert sizes(engine, 0, 4, 3) == (0, 4, 3)
    assert changes(stack) == {}
    assert stack.refresh().summary.resource_changes == {"same": 8, "update": 1}
    assert changes(stack) == {}
    # As in the real provider the whole of scalingConfig is sent, with the desired size of the
    # state: without the refresh this would take two nodes away.
    engine.stack("dev", cluster(most=6)).up()
    assert sizes(engine) == (0, 6, 3)

    there = engine.inventory()
    assert {"ec2 DescribeVpcs", "eks ListClusters", "kms ListKeys", "iam ListRoles"} <= set(there)
    stack.destroy()
    assert engine.inventory() == {}
    assert engine.objects() == []


def test_what_a_delete_finds_in_use_fails_and_stays_in_state(engine: AwsEngine) -> None:
    def program() -> None:
        aws.s3.Bucket("results")

    stack = engine.stack("dev", program)
    stack.up()
    bucket = {"Bucket": engine.objects(BUCKET)[0]["id"]}
    engine.call("s3", "PutObject", **bucket, Key="result", Body=b"x")
    with pytest.raises(automation.CommandError, match="BucketNotEmpty"):
        stack.destroy()
    engine.call("s3", "DeleteObject", **bucket, Key="result")
    stack.destroy()
    assert engine.inventory() == {}


def test_an_interrupted_create_is_made_good_by_the_next_update(engine: AwsEngine) -> None:
    def program() -> None:
        vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", enable_dns_hostnames=True)
        aws.sqs.Queue("work", name="dev-work", opts=pulumi.ResourceOptions(depends_on=[vpc]))

    stack = engine.stack("dev", program)
    for when, kind in (("half", VPC), ("before", QUEUE), ("dies", QUEUE)):
        engine.goes_wrong(when, kind)
        with pytest.raises(automation.CommandError):
            stack.up()
    stack.up()
    # The VPC was made once; the step that had failed was taken by the next update.
    calls = [line.rpartition(" ")[0] for line in engine.log]
    assert calls == [f"create {VPC}", f"update {VPC}", f"create {QUEUE}"]
    vpc = {"VpcId": engine.objects(VPC)[0]["id"], "Attribute": "enableDnsHostnames"}
    assert engine.call("ec2", "DescribeVpcAttribute", **vpc)["EnableDnsHostnames"]["Value"]
    stack.destroy()
    assert engine.inventory() == {}
