"""What holds for every exported component, whatever it is."""

import re
from collections.abc import Callable
from inspect import get_annotations

import pulumi
import pytest
from pydantic import ValidationError

import components
from components.domain.args import Args
from components.domain.names import K8S_NAME_LIMIT
from components.domain.predicates import hardening_problems, uses_token
from tests import samples
from tests.harness import Built, build

Make = Callable[[str], pulumi.ComponentResource]
EVERY = pytest.mark.parametrize("make", samples.COMPONENTS.values(), ids=samples.COMPONENTS)
NEEDS_TOKEN = {
    "Deployment/gateway",
    "Deployment/cacher",
    "Deployment/keda-operator",
    "Deployment/keda-metrics-apiserver",
    "Deployment/keda-admission",
    "Deployment/prometheus",
    "Deployment/prometheus-adapter",
    "Deployment/metrics-server",
}


def made(make: Make, *names: str, preview: bool = False) -> Built:
    return build(lambda: [make(name) for name in names], preview=preview)


def exported(base: type) -> dict[str, type]:
    kinds = {name: getattr(components, name) for name in components.__all__}
    return {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, base)
    }


def test_every_exported_component_is_checked_here() -> None:
    assert set(exported(pulumi.ComponentResource)) == set(samples.COMPONENTS)


@EVERY
def test_nothing_is_an_orphan(make: Make) -> None:
    built = made(make, "one")
    tops = [it for it in built.resources if it.parent.split("::")[2] == "pulumi:pulumi:Stack"]
    assert len(tops) == 1, [it.name for it in tops]
    assert not tops[0].custom


@EVERY
def test_two_of_a_kind_share_no_name(make: Make) -> None:
    built = made(make, "one", "two")
    names = [(it.type, it.name) for it in built.resources]
    assert len(names) == len(set(names))


@EVERY
def test_the_names_of_children_begin_with_the_component_s_name(make: Make) -> None:
    assert all(it.name == "one" or it.name.startswith("one-") for it in made(make, "one").resources)


@EVERY
def test_names_and_labels_stay_within_their_limits(make: Make) -> None:
    for resource in made(make, "n" * 48).resources:
        if not resource.custom:
            continue
        assert len(resource.object_name) <= K8S_NAME_LIMIT, resource.object_name
        assert resource.object_name, resource.name
        for value in resource.inputs["metadata"].get("labels", {}).values():
            assert re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", value), value


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
    assert registered >= declared, declared - registered
    assert all(hasattr(component, name) for name in registered)


@EVERY
def test_the_first_preview_shows_everything_that_will_be_made(make: Make) -> None:
    previewed = {(it.type, it.name) for it in made(make, "one", preview=True).resources}
    assert previewed == {(it.type, it.name) for it in made(make, "one").resources}


@EVERY
def test_every_pod_is_hardened(make: Make) -> None:
    for name, pod in made(make, "one").pods():
        assert hardening_problems(pod) == [], name
        assert uses_token(pod) == (name in NEEDS_TOKEN), name
        assert pod["enableServiceLinks"] is False, name


@EVERY
def test_every_container_may_write_to_tmp_and_asks_for_little(make: Make) -> None:
    for name, pod in made(make, "one").pods():
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}, name
            assert container["resources"]["requests"]["cpu"].endswith("m"), name


@EVERY
def test_every_long_running_container_is_probed(make: Make) -> None:
    for name, pod in made(make, "one").pods():
        if pod.get("restartPolicy") == "OnFailure":
            continue
        for container in pod["containers"]:
            probes = {"startupProbe", "readinessProbe", "livenessProbe"} & container.keys()
            assert probes, f"{name}: {container['name']}"


@EVERY
def test_a_secret_s_content_is_secret_on_its_way_in_and_out(make: Make) -> None:
    for secret in made(make, "one").all("Secret"):
        assert {"data", "stringData"} <= set(secret.secret_outputs), secret.name
        for field in ("data", "stringData"):
            if field in secret.inputs:
                covered = {path.split(".")[0] for path in secret.secret_paths}
                assert field in covered, secret.name


@EVERY
def test_no_canary_is_anywhere_but_in_a_secret(make: Make) -> None:
    for resource in made(make, "one").resources:
        if resource.kind != "Secret":
            assert "canary" not in str(resource.inputs), resource.name


@EVERY
def test_every_object_says_that_it_is_the_platform_s(make: Make) -> None:
    for resource in made(make, "one").resources:
        if resource.custom:
            labels = resource.inputs["metadata"]["labels"]
            assert labels["app.kubernetes.io/part-of"] == "llm-platform", resource.name


@pytest.mark.parametrize("kind", exported(Args).values(), ids=exported(Args))
def test_an_unknown_argument_is_refused_by_its_name(kind: type[Args]) -> None:
    if kind.__init__ is not Args.__init__:
        with pytest.raises(TypeError, match="no_such_argument"):
            kind(no_such_argument=1)
        return
    with pytest.raises(ValidationError) as refused:
        kind(no_such_argument=1)
    assert ("no_such_argument",) in {problem["loc"] for problem in refused.value.errors()}


@pytest.mark.parametrize("kind", exported(Args).values(), ids=exported(Args))
def test_every_argument_says_what_it_means(kind: type[Args]) -> None:
    silent = [name for name, field in kind.model_fields.items() if not field.description]
    assert silent == []


@pytest.mark.parametrize("kind", exported(pulumi.ComponentResource).values(), ids=str)
def test_every_component_says_what_it_creates(kind: type) -> None:
    assert kind.__doc__ is not None
    assert "Creates" in kind.__doc__


def test_everything_in_a_namespace_goes_with_it() -> None:
    for built in (samples.build_foundation(), samples.build_platform()):
        urns = built.by_urn()
        gone_with = [it for it in built.resources if it.deleted_with]
        assert gone_with
        for resource in gone_with:
            namespace = urns[resource.deleted_with].object_name
            if resource.custom:
                assert resource.namespace == namespace, resource.name
