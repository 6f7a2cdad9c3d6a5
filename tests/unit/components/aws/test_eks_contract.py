"""What holds for every component of AWS' cluster side, whatever it is."""

from collections.abc import Callable
from inspect import get_annotations

import pulumi
import pytest

from components.aws import limits
from components.domain.args import Args
from tests import eks_samples
from tests.eks_outputs import AwsBuilt, build_aws

Make = Callable[[str], pulumi.ComponentResource]
EVERY = pytest.mark.parametrize(
    "make", eks_samples.COMPONENTS.values(), ids=list(eks_samples.COMPONENTS)
)
AUTONAMED = {
    "aws:cloudwatch/eventRule:EventRule": 64,
    "aws:ec2/launchTemplate:LaunchTemplate": limits.LAUNCH_TEMPLATE,
    "aws:ec2/securityGroup:SecurityGroup": limits.SECURITY_GROUP,
    "aws:eks/nodeGroup:NodeGroup": limits.EKS_NODE_GROUP,
    "aws:iam/instanceProfile:InstanceProfile": 128,
    "aws:iam/role:Role": limits.IAM_ROLE,
    "aws:sqs/queue:Queue": limits.SQS_NAME,
}
"""Names that Pulumi makes by adding to the resource's."""
OURS = {
    "capacity", "cluster_addons", "cluster_args", "cluster_autoscaler", "disks", "endpoints",
    "gpu_pool_args", "karpenter", "karpenter_access", "launch_template", "network_args",
    "node_role", "overflow", "system_nodes",
}  # fmt: skip


def made(make: Make, *names: str, preview: bool = False) -> AwsBuilt:
    return build_aws(lambda: [make(name) for name in names], preview=preview)


@EVERY
def test_nothing_is_an_orphan(make: Make) -> None:
    stack = "pulumi:pulumi:Stack"
    resources = made(make, "one").resources
    tops = [it for it in resources if it.parent.split("::")[2] == stack]
    assert [it.custom for it in tops] == [False]


@EVERY
def test_two_of_a_kind_share_no_name(make: Make) -> None:
    urns = [it.urn for it in made(make, "one", "two").resources]
    assert len(urns) == len(set(urns))


@EVERY
def test_the_names_of_children_begin_with_the_component_s_name(make: Make) -> None:
    assert all(it.name == "one" or it.name.startswith("one-") for it in made(make, "one").resources)


@EVERY
def test_every_name_is_within_its_service_s_limit(make: Make) -> None:
    for resource in made(make, "n" * 60).resources:
        if resource.type in AUTONAMED:
            longest = AUTONAMED[resource.type] - limits.AUTONAME_SUFFIX
            assert len(resource.name) <= longest, resource.name


@EVERY
def test_its_outputs_are_the_ones_that_it_declares(make: Make) -> None:
    built = made(make, "one")
    (component,) = built.value
    declared = {
        name
        for name, hint in get_annotations(type(component)).items()
        if getattr(hint, "__origin__", None) is pulumi.Output and not name.startswith("_")
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
def test_two_runs_say_the_same(make: Make) -> None:
    first, second = made(make, "one"), made(make, "one")
    assert [it.inputs for it in first.resources] == [it.inputs for it in second.resources]


@EVERY
def test_every_ignored_path_exists(make: Make) -> None:
    for resource in made(make, "one").resources:
        for path in resource.ignore_changes:
            value = resource.inputs
            for part in path.split("."):
                assert part in value, (resource.name, path)
                value = value[part]


@EVERY
def test_every_component_says_what_it_creates(make: Make) -> None:
    component = made(make, "one").value[0]
    assert "Creates" in (type(component).__doc__ or "")


def arguments() -> list[type[Args]]:
    modules = {f"components.aws.{name}" for name in OURS} | {"components.kube.device_plugin"}
    found = [it for it in Args.__subclasses__() if it.__module__ in modules]
    return sorted(found, key=lambda it: it.__name__)


@pytest.mark.parametrize("kind", arguments(), ids=lambda it: it.__name__)
def test_every_argument_says_what_it_means(kind: type[Args]) -> None:
    assert [name for name, field in kind.model_fields.items() if not field.description] == []


def test_no_right_is_for_all_actions_and_a_star_is_only_where_there_are_no_resources() -> None:
    without_resources = ("Describe", "List", "Get")
    for make in eks_samples.COMPONENTS.values():
        for resource in made(make, "one").resources:
            for statement in aws_statements(resource.inputs):
                actions = statement["Action"]
                if statement["Effect"] == "Deny":
                    continue
                assert all("*" not in action for action in actions), resource.name
                if "*" in statement.get("Resource", []):
                    verbs = [action.partition(":")[2] for action in actions]
                    assert all(verb.startswith(without_resources) for verb in verbs), verbs


def aws_statements(inputs: dict[str, object]) -> list[dict[str, list[str] | str]]:
    import json

    texts = [inputs.get(field) for field in ("policy", "assumeRolePolicy")]
    return [it for text in texts if isinstance(text, str) for it in json.loads(text)["Statement"]]
