"""What holds for everything that an exported component makes in AWS."""

import json
from typing import Any

from tests.aws_names import names
from tests.contract.test_components import EVERY, LONG
from tests.exported import COMPONENTS, made
from tests.harness import Recorded, build

MOST_TAGS, LONGEST_KEY, LONGEST_VALUE = 40, 128, 256
"""AWS takes 50 (Tagging best practices, read 2026-11); the others are for the provider's own."""


def in_aws(component: str, *names: str) -> list[Recorded]:
    return [it for it in made(component, *names).resources if it.is_aws]


@EVERY
def test_every_name_is_one_that_its_service_takes(component: str) -> None:
    for name in names(in_aws(component, *LONG)):
        assert not name.problem, f"{name.kind}: {name.problem}"


@EVERY
def test_two_of_a_kind_share_no_physical_name(component: str) -> None:
    given = [(it.kind, it.text) for it in names(in_aws(component, *LONG)) if it.ours]
    assert len(given) == len(set(given))


@EVERY
def test_tags_are_such_as_aws_takes_and_hide_none_of_the_stack_s(component: str) -> None:
    for resource in in_aws(component, *LONG):
        tags: dict[str, str] = resource.inputs.get("tags", {})
        assert len(tags) <= MOST_TAGS, resource.name
        for key, value in tags.items():
            assert len(key) <= LONGEST_KEY, resource.name
            assert len(value) <= LONGEST_VALUE, resource.name
            assert not key.startswith(("aws:", "llm-platform:")), resource.name


@EVERY
def test_what_is_random_is_secret_and_stays_as_it_was_made(component: str) -> None:
    first = {it.urn: it for it in in_aws(component, "one")}
    if not first:
        return
    second = build(lambda: COMPONENTS[component]("one"))
    for resource in filter(lambda it: it.is_aws, second.resources):
        for field, value in resource.inputs.items():
            if value == first[resource.urn].inputs[field]:
                continue
            assert {path.split(".")[0] for path in resource.secret_paths} >= {field}
            kept = field in resource.ignore_changes
            assert kept or follows(resource, second.resources), (resource.name, field)


def follows(resource: Recorded, others: list[Recorded]) -> bool:
    """Say whether what is random in a resource is a part of a secret that stays as it was made."""
    sources = [it for it in others if it.kind == "SecretVersion"]
    kept = [json.loads(it.inputs["secretString"]) for it in sources if it.ignore_changes]
    return any(secret in str(resource.inputs) for them in kept for secret in them.values())


@EVERY
def test_no_right_is_for_everything(component: str) -> None:
    """A ``*`` stands only where AWS knows no resources, and there for looking alone."""
    for resource in in_aws(component, "one"):
        for statement in statements(resource):
            if statement["Effect"] == "Deny":
                continue
            actions = statement["Action"]
            assert all("*" not in action for action in actions), resource.name
            if "*" in statement.get("Resource", []):
                assert all(map(only_looks, actions)) or "Condition" in statement, actions


def only_looks(action: str) -> bool:
    return action.partition(":")[2].startswith(("Describe", "List", "Get"))


def statements(resource: Recorded) -> list[dict[str, Any]]:
    """Return what its policies say; not a key's own, where ``*`` means that key."""
    if resource.type in {"aws:kms/key:Key", "aws:ecr/lifecyclePolicy:LifecyclePolicy"}:
        return []
    texts = [resource.inputs.get(field) for field in ("policy", "assumeRolePolicy")]
    return [it for text in texts if isinstance(text, str) for it in json.loads(text)["Statement"]]
