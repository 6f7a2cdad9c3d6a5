"""The calls that moto's server knows, really made over HTTP and answered by it."""

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer
from preflight_harness import ACCOUNT, REGION, nodes, plan

from deploy.preflight import credentials, domain, offerings, pieces, processors, reach, roles
from deploy.preflight.aws import Aws
from deploy.preflight.report import Result

OK, WOULD_FAIL, CANT_TELL = Result.OK, Result.WOULD_FAIL, Result.CANT_TELL


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    started = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    yield f"http://{host}:{port}"
    started.stop()


@pytest.fixture
def aws(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with Aws(REGION, boto3.Session()) as asked:
        yield asked


def test_who_we_are(aws: Aws) -> None:
    (row,) = credentials.check(plan(account_id=ACCOUNT), aws)
    assert row.result is OK


def test_zones_of_the_region(aws: Aws) -> None:
    rows = list(offerings.check_zones(plan(zones=("us-east-1a", "us-east-1z")), aws))
    assert [row.result for row in rows] == [OK, WOULD_FAIL]


def test_instance_types_by_zone(aws: Aws) -> None:
    wanted = plan(nodes=(nodes(instance_types=("g5.xlarge",)), nodes(instance_types=("g9.huge",))))
    there, not_there = offerings.check_types(wanted, aws)
    assert there.result is OK
    assert not_there.found == "us-east-1 has no g9.huge"


def test_running_instances_count(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    made = ec2.run_instances(ImageId=image, InstanceType="g5.xlarge", MinCount=2, MaxCount=2)
    try:
        used = processors._in_use(aws, None)
        assert {quota.code: number for quota, number in used.items()} == {"L-DB2E81BA": 8}
    finally:
        ids = [instance["InstanceId"] for instance in made["Instances"]]
        ec2.terminate_instances(InstanceIds=ids)


def test_a_limit_of_networks(aws: Aws) -> None:
    assert pieces.NETWORKS.limit(aws) == 5
    assert pieces.NAT_GATEWAYS.limit(aws) == 5
    assert pieces.ENDPOINTS.limit(aws) == 50


def test_a_nat_gateway_counts_in_its_zone(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", AvailabilityZone="us-east-1a")
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    gateway = ec2.create_nat_gateway(SubnetId=subnet["Subnet"]["SubnetId"], AllocationId=address)[
        "NatGateway"
    ]["NatGatewayId"]
    try:
        assert pieces._fullest_zone(plan(), aws) == 1
        assert pieces._fullest_zone(plan(zones=("us-east-1b",)), aws) == 0
    finally:
        ec2.delete_nat_gateway(NatGatewayId=gateway)


def test_roles_come_when_they_are_made(aws: Aws) -> None:
    wanted = plan(database=False, cache=False)
    before = {row.check: row.result for row in roles.check(wanted, aws)}
    assert before["role AutoScaling"] is CANT_TELL
    aws.client("iam").create_service_linked_role(AWSServiceName="autoscaling.amazonaws.com")
    after = {row.check: row.result for row in roles.check(wanted, aws)}
    assert after["role AutoScaling"] is OK


def test_a_cluster_is_found_by_its_name(aws: Aws) -> None:
    assert reach.own_cluster(plan(), aws) is None
    eks = aws.client("eks")
    eks.create_cluster(
        name="dev-aws",
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/eks",
        resourcesVpcConfig={"subnetIds": []},
    )
    try:
        assert reach.own_cluster(plan(), aws) == "dev-aws"
        asked: list[str] = []
        (row,) = reach.check(plan(), aws, "dev-aws", lambda host, _: asked.append(host))
        assert row.result is OK
        assert asked
    finally:
        eks.delete_cluster(name="dev-aws")


def test_the_nearest_public_zone_takes_the_domain(aws: Aws) -> None:
    route53 = aws.client("route53")
    made = [
        route53.create_hosted_zone(Name=name, CallerReference=name)["HostedZone"]["Id"]
        for name in ("example.com", "llm.example.com")
    ]
    try:
        (row,) = domain.check(plan(gateway_domain="api.llm.example.com"), aws)
        assert row.result is OK
        assert "in zone llm.example.com" in row.found
        (row,) = domain.check(plan(gateway_domain="notexample.com"), aws)
        assert row.result is WOULD_FAIL
    finally:
        for zone in made:
            route53.delete_hosted_zone(Id=zone)


def test_moto_does_not_know_processors_yet(aws: Aws) -> None:
    # When this fails, moto has learnt EC2's quotas: the tests over stubs can then be made here.
    with pytest.raises(ClientError, match="NoSuchResource"):
        aws.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-DB2E81BA")
