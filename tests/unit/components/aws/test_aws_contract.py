"""What holds for every component of AWS' data side, whatever it is."""

from collections.abc import Callable
from inspect import get_annotations

import pulumi
import pytest

from components.aws import limits
from components.domain.args import Args
from tests import aws_samples
from tests.aws_outputs import AwsBuilt, build_aws

Make = Callable[[str], pulumi.ComponentResource]
EVERY = pytest.mark.parametrize(
    "make", aws_samples.COMPONENTS.values(), ids=list(aws_samples.COMPONENTS)
)
NAMES = {
    "aws:elasticache/user:User": ("userId", limits.ELASTICACHE_ID),
    "aws:elasticache/userGroup:UserGroup": ("userGroupId", limits.ELASTICACHE_ID),
    "aws:ecr/pullThroughCacheRule:PullThroughCacheRule": (
        "ecrRepositoryPrefix",
        limits.ECR_MIRROR_PREFIX,
    ),
    "aws:ecr/repository:Repository": ("name", limits.ECR_REPOSITORY),
    "aws:kms/alias:Alias": ("name", limits.KMS_ALIAS),
    "aws:sqs/queue:Queue": ("name", limits.SQS_NAME),
}
"""Names that we give ourselves, and their limits."""
AUTONAMED = {
    "aws:ec2/securityGroup:SecurityGroup": limits.SECURITY_GROUP,
    "aws:elasticache/replicationGroup:ReplicationGroup": limits.ELASTICACHE_ID,
    "aws:iam/policy:Policy": limits.IAM_POLICY,
    "aws:iam/role:Role": limits.IAM_ROLE,
    "aws:rds/cluster:Cluster": limits.RDS_IDENTIFIER,
    "aws:rds/clusterInstance:ClusterInstance": limits.RDS_IDENTIFIER,
    "aws:s3/bucket:Bucket": limits.S3_BUCKET,
    "aws:secretsmanager/secret:Secret": limits.SECRET_NAME,
}
"""Names that Pulumi makes by adding to the resource's."""


def made(make: Make, *names: str, preview: bool = False) -> AwsBuilt:
    return build_aws(lambda: [make(name) for name in names], preview=preview)


@EVERY
def test_nothing_is_an_orphan(make: Make) -> None:
    tops = [
        it
        for it in made(make, "one").resources
        if it.parent.split("::")[2] == "pulumi:pulumi:Stack"
    ]
    assert [it.custom for it in tops] == [False]


@EVERY
def test_two_of_a_kind_share_no_name(make: Make) -> None:
    built = made(make, "one", "two")
    urns = [it.urn for it in built.resources]
    assert len(urns) == len(set(urns))
    for kind, (field, _) in NAMES.items():
        physical = [it.inputs[field] for it in built.resources if it.type == kind]
        assert len(physical) == len(set(physical)), kind


@EVERY
def test_the_names_of_children_begin_with_the_component_s_name(make: Make) -> None:
    assert all(it.name == "one" or it.name.startswith("one-") for it in made(make, "one").resources)


@EVERY
def test_every_name_is_within_its_service_s_limit(make: Make) -> None:
    for resource in made(make, "n" * 48).resources:
        if resource.type in NAMES:
            field, limit = NAMES[resource.type]
            assert len(resource.inputs[field]) <= limit, resource.name
        if resource.type in AUTONAMED:
            assert len(resource.name) + limits.AUTONAME_SUFFIX <= AUTONAMED[resource.type], (
                resource.name
            )


@EVERY
def test_its_outputs_are_the_ones_that_it_declares(make: Make) -> None:
    built = made(make, "one")
    (component,) = built.value
    declared = {
        name
        for name, hint in get_annotations(type(component)).items()
        if getattr(hint, "__origin__", None) is pulumi.Output
    }
    top = next(it.urn for it in built.resources if it.name == "one" and not it.custom)
    registered = set(built.registered_outputs[top])
    assert registered >= declared
    assert all(hasattr(component, name) for name in registered)


@EVERY
def test_the_first_preview_shows_everything_that_will_be_made(make: Make) -> None:
    previewed = {(it.type, it.name) for it in made(make, "one", preview=True).resources}
    assert previewed == {(it.type, it.name) for it in made(make, "one").resources}


@EVERY
def test_what_is_random_is_ignored_afterwards(make: Make) -> None:
    first, second = ({it.urn: it for it in made(make, "one").resources} for _ in range(2))
    for urn, resource in first.items():
        for field, value in resource.inputs.items():
            if value != second[urn].inputs[field]:
                sources = {path.split(".")[0] for path in resource.ignore_changes}
                assert field in sources or field == "authenticationMode", (resource.name, field)


@EVERY
def test_every_ignored_path_exists(make: Make) -> None:
    for resource in made(make, "one").resources:
        for path in resource.ignore_changes:
            assert path in resource.inputs, (resource.name, path)


@EVERY
def test_every_component_and_argument_says_what_it_is(make: Make) -> None:
    component = made(make, "one").value[0]
    assert "Creates" in (type(component).__doc__ or "")


def arguments() -> list[type[Args]]:
    found = [
        it
        for it in Args.__subclasses__()
        if it.__module__.startswith("components.aws.") and it.__module__ in OURS
    ]
    return sorted(found, key=lambda it: it.__name__)


OURS = {
    f"components.aws.{name}"
    for name in [
        "account",
        "boundary",
        "bucket",
        "database",
        "doors",
        "fsx",
        "keys",
        "pod_role",
        "redis",
        "registry",
        "storage",
        "stored_secret",
        "team",
    ]
}


@pytest.mark.parametrize("kind", arguments(), ids=lambda it: it.__name__)
def test_every_argument_says_what_it_means(kind: type[Args]) -> None:
    assert [name for name, field in kind.model_fields.items() if not field.description] == []
