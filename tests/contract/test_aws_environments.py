"""Whole environments in AWS: the order of things, their names, and what is there already.

What waits for something is deleted before it. Where it isn't so, people saw a security group or
subnet that can't go, for network interfaces of nodes, pods or load balancers are still there
(pulumi/pulumi-eks#1226, #194, #382, #640).
"""

import json
from functools import cache
from typing import Any

import pytest

from tests import aws_stacks
from tests.aws_names import names
from tests.aws_outputs import RANDOM, THEIRS
from tests.aws_stacks import Environment, build_foundation, build_platform
from tests.harness import Built, Recorded
from tests.iam import allowed, granted

RUN_BY_CHARTS = {
    "aws-load-balancer-controller": "aws-load-balancer-controller",
    "cluster-autoscaler": "cluster-autoscaler",
    "karpenter": "karpenter",
    "keda-operator": "keda",
}
"""The release whose pods run with a service account."""
KEEP_DATA = {
    "aws:ecr/repository:Repository",
    "aws:elasticache/replicationGroup:ReplicationGroup",
    "aws:kms/key:Key",
    "aws:rds/cluster:Cluster",
    "aws:s3/bucket:Bucket",
}
THEIR_NETWORK = {
    "existing": {
        "vpc_id": "vpc-theirs",
        "cidr": "10.0.0.0/16",
        "private_subnets": {"eu-west-1a": "subnet-a", "eu-west-1b": "subnet-b"},
    }
}
THEIR_CLUSTER = {"existing": {"name": "theirs"}}


@pytest.fixture(params=aws_stacks.ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> Environment:
    return aws_stacks.environment(request.param)


def of(built: Built, *types: str) -> list[Recorded]:
    found = [it for it in built.resources if it.type in types]
    assert found, types
    return found


def before(built: Built, resource: Recorded) -> set[str]:
    return {it.name for it in built.before(resource) if it.custom}


# Order


def test_nodes_come_after_the_cni_and_go_before_it(environment: Environment) -> None:
    below, name = environment.below, environment.name
    for group in of(below, "aws:eks/nodeGroup:NodeGroup"):
        assert before(below, group) >= {
            f"{name}-before-nodes-vpc-cni",
            f"{name}-before-nodes-kube-proxy",
            f"{name}-before-nodes-eks-pod-identity-agent",
            f"{name}-cluster-deployer",
            f"{name}-cluster-nodes-AmazonEKSWorkerNodePolicy",
        }, group.name


def test_nodes_go_before_the_network_that_they_are_in(environment: Environment) -> None:
    below = environment.below
    ways = of(below, "aws:ec2/vpcEndpoint:VpcEndpoint", "aws:ec2/route:Route")
    private = {it.name for it in ways if "public" not in it.name}
    endpoints = [it for it in below.all("SecurityGroup") if "endpoints" in it.name]
    for group in of(below, "aws:eks/nodeGroup:NodeGroup"):
        assert before(below, group) >= private | {it.name for it in endpoints}, group.name


def test_what_runs_on_nodes_goes_before_them(environment: Environment) -> None:
    below, name = environment.below, environment.name
    after = {"coredns", "aws-ebs-csi-driver", "eks-node-monitoring-agent"}
    addons = [it for it in below.all("Addon") if it.inputs["addonName"] in after]
    assert len(addons) == len(after)
    for addon in addons:
        assert f"{name}-system-group" in before(below, addon), addon.name


def test_whatever_has_addresses_goes_before_its_security_group(environment: Environment) -> None:
    for built in (environment.below, environment.above):
        for group in of(built, "aws:ec2/securityGroup:SecurityGroup"):
            users = [it for it in built.resources if f"{group.name}-id" in str(it.inputs)]
            assert users, group.name
            assert all(group.name in before(built, it) for it in users), group.name


def test_everything_in_the_cluster_is_of_the_stack_that_goes_first(
    environment: Environment,
) -> None:
    below, above = environment.below, environment.above
    assert not [it for it in below.resources if it.type.startswith("kubernetes:")]
    assert not above.all("NodeGroup")
    (cluster,) = above.all("kubernetes")
    assert cluster.inputs["kubeconfig"] == below.exports["kubeconfig"]
    for resource in above.resources:
        if resource.custom and resource.type.startswith("kubernetes:"):
            assert cluster.urn in resource.provider, resource.name


def test_a_binding_of_pods_to_the_load_balancer_goes_before_its_controller(
    environment: Environment,
) -> None:
    above, name = environment.above, environment.name
    assert before(above, above.one("TargetGroupBinding")) >= {
        f"{name}-load-balancers-release",
        f"{name}-load-balancers-role-association",
        f"{name}-gateway-pods",
    }


def test_no_load_balancer_is_made_but_by_this_program(environment: Environment) -> None:
    for service in environment.above.all("Service"):
        assert service.inputs["spec"].get("type", "ClusterIP") == "ClusterIP", service.name
    assert not environment.above.all("Ingress")
    (controller,) = (
        it
        for it in environment.above.all("Release")
        if it.inputs["name"] == "aws-load-balancer-controller"
    )
    assert controller.inputs["values"]["enableServiceMutatorWebhook"] is False


def test_nothing_runs_before_it_has_its_role(environment: Environment) -> None:
    above = environment.above
    releases = {it.inputs["name"]: it for it in above.all("Release")}
    for association in of(above, "aws:eks/podIdentityAssociation:PodIdentityAssociation"):
        account, namespace = (association.inputs[it] for it in ("serviceAccount", "namespace"))
        if account in RUN_BY_CHARTS:
            runs = [releases[RUN_BY_CHARTS[account]]]
        elif account == "endpoints":
            runs = [
                it
                for it in above.all("ServiceAccount")
                if (it.object_name, it.namespace) == (account, namespace)
            ]
        else:
            runs = [it for it in above.all("Deployment") if it.object_name == account]
        assert len(runs) == 1, account
        assert association.name in before(above, runs[0]), account


def test_the_environment_s_boundary_takes_nothing_away_that_its_pods_need(
    environment: Environment,
) -> None:
    (boundary,) = (it for it in environment.below.all("Policy") if "boundary" in it.name)
    most = json.loads(boundary.inputs["policy"])
    roles = {
        f"{it.name}-{RANDOM}"
        for it in of(environment.above, "aws:iam/role:Role")
        if it.inputs.get("permissionsBoundary") == environment.below.exports["boundary_arn"]
    }
    own = [it for it in environment.above.all("RolePolicy") if it.inputs["role"] in roles]
    assert len(own) == len(roles) > 3
    for policy in own:
        for statement in json.loads(policy.inputs["policy"])["Statement"]:
            keys = statement.get("Condition", {}).get("StringEquals", {})
            for action, pattern in granted({"Statement": [statement]}):
                one = pattern if pattern == "*" else pattern.replace("*", "x")
                assert allowed(most, action, one, keys), (policy.name, action, pattern, keys)


def test_operators_go_after_all_that_they_care_for(environment: Environment) -> None:
    """KEDA lets go of what it scales, and nodes stay while pods end."""
    above = environment.above
    operators = {
        it.name
        for it in above.all("Release")
        if it.inputs["name"] in {"keda", "nvidia-device-plugin", "cluster-autoscaler"}
    }
    assert len(operators) == 3
    for team in above.all("Team"):
        for resource in above.resources:
            if resource.custom and resource.name.startswith(f"{team.name}-scope"):
                assert before(above, resource) >= operators, resource.name


def test_what_keeps_data_is_protected_unless_the_environment_may_go() -> None:
    prod, dev = (aws_stacks.environment(name).below for name in ("prod-aws", "dev-aws"))
    assert dev.protected == set()
    protected = {it.urn for it in prod.resources if it.protect}
    assert protected == {it.urn for it in prod.resources if it.type in KEEP_DATA}
    for built, kept in ((prod, True), (dev, False)):
        for resource in of(built, "aws:eks/cluster:Cluster", "aws:rds/cluster:Cluster"):
            assert resource.inputs["deletionProtection"] is kept, resource.name


# Names

LONGEST = "n" * 56
"""As long as an environment's name may be when a team's has four letters: both are in the names of
queues."""
BOUNDARY = "arn:aws:iam::111122223333:policy/everybody"


@cache
def another(environment: str, name: str | None = None, boundary: str | None = None) -> Environment:
    """Build an environment with the settings of dev-aws and nodes of Karpenter's."""
    own: dict[str, Any] = {"name": name} if name else {}
    below = build_foundation(environment, like="dev-aws", boundary_arn=boundary, **own)
    gateway = aws_stacks.given("platform.dev-aws")["gateway"]
    above = build_platform(
        environment,
        below,
        like="dev-aws",
        cluster_name=name or environment,
        gateway={**gateway, "domain": f"llm.{name or environment}.example.com"},
        overflow=[{"name": "overflow", "accelerator": "l4", "max_gpus": 4}],
        zones=["eu-west-1a", "eu-west-1b"],
        operators_boundary_arn=boundary,
        **own,
    )
    return Environment(environment, below, above)


def given_names(environment: Environment) -> set[tuple[str, str]]:
    """Return the names that don't end in random digits."""
    resources = [*environment.below.resources, *environment.above.resources]
    return {(it.kind, it.text) for it in names(resources) if it.ours}


@pytest.mark.parametrize(("environment", "name"), [("dev-aws-2", None), ("dev-aws", "acme-llm")])
def test_two_of_them_in_one_account_and_region_share_no_name(
    environment: str, name: str | None
) -> None:
    first = given_names(aws_stacks.environment("dev-aws"))
    second = given_names(another(environment, name))
    assert len(first) > 15
    assert not first & second


def test_every_name_of_an_environment_is_one_that_its_service_takes(
    environment: Environment,
) -> None:
    for built in (environment.below, environment.above):
        assert [it.problem for it in names(built.resources) if it.problem] == []


def test_a_name_as_long_as_it_may_be_fits_everywhere() -> None:
    longest = another(LONGEST, boundary=BOUNDARY)
    for built in (longest.below, longest.above):
        assert [it.problem for it in names(built.resources) if it.problem] == []


def test_a_longer_name_is_refused_before_anything_is_made() -> None:
    with pytest.raises(ValueError, match="at most"):
        build_foundation("n" * 60, like="dev-aws")


def test_a_boundary_that_the_account_wants_is_on_every_role() -> None:
    environment = another(LONGEST, boundary=BOUNDARY)
    for built in (environment.below, environment.above):
        for role in of(built, "aws:iam/role:Role"):
            assert role.inputs.get("permissionsBoundary") == BOUNDARY, role.name


# What is there already


@cache
def on_theirs() -> Built:
    return build_foundation("dev-aws", answers=THEIRS, network=THEIR_NETWORK, cluster=THEIR_CLUSTER)


def test_an_existing_network_and_an_existing_cluster_are_used_as_they_are() -> None:
    built = on_theirs()
    made = {it.type for it in built.resources}
    assert not {it for it in made if it.startswith("aws:ec2/")} - {
        "aws:ec2/launchTemplate:LaunchTemplate",
        "aws:ec2/securityGroup:SecurityGroup",
    }
    assert {it for it in made if it.startswith("aws:eks/")} == {"aws:eks/nodeGroup:NodeGroup"}
    for group in built.all("NodeGroup"):
        assert group.inputs["clusterName"] == "theirs"
        assert set(group.inputs["subnetIds"]) == {"subnet-a", "subnet-b"}
    clients = {
        it.inputs["referencedSecurityGroupId"] for it in built.all("SecurityGroupIngressRule")
    }
    assert clients == {"sg-theirs"}
    assert {it.inputs["vpcId"] for it in built.all("SecurityGroup")} == {"vpc-theirs"}
    assert built.exports["cluster_name"] == "theirs"
    assert built.exports["private_subnets"] == "subnet-a,subnet-b"


def test_a_platform_stands_on_what_was_there_already() -> None:
    above = build_platform("dev-aws", on_theirs(), cluster_name="theirs")
    associations = above.all("PodIdentityAssociation")
    assert {it.inputs["clusterName"] for it in associations} == {"theirs"}
    (door,) = above.all("LoadBalancer")
    assert door.inputs["subnets"] == ["subnet-a", "subnet-b"]


def test_each_can_be_there_without_the_other() -> None:
    network = build_foundation("dev-aws", network=THEIR_NETWORK)
    (cluster,) = of(network, "aws:eks/cluster:Cluster")
    assert cluster.inputs["vpcConfig"]["subnetIds"] == ["subnet-a", "subnet-b"]
    assert not network.all("Vpc")
    own = build_foundation("dev-aws", answers=THEIRS, cluster=THEIR_CLUSTER)
    assert own.all("Vpc")
    assert not [it for it in own.resources if it.type == "aws:eks/cluster:Cluster"]
