"""What holds for every exported component, whatever it is."""

import re
from collections.abc import Iterator
from inspect import get_annotations

import pulumi
import pytest
from pydantic import ValidationError

import components
from components.domain.args import Args
from components.domain.names import K8S_NAME_LIMIT
from components.domain.predicates import hardening_problems, uses_token
from tests import samples
from tests.exported import COMPONENTS, made
from tests.harness import Recorded

EVERY = pytest.mark.parametrize("component", COMPONENTS)
LONG = [f"{'n' * 58}{last}" for last in "ab"]
"""As long as an environment's name may be in AWS, and alike but for the last character."""
WRITTEN = tuple(f"components.{room}." for room in ("aws", "kube", "local", "serving"))
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


def exported(base: type) -> dict[str, type]:
    kinds = {name: getattr(components, name) for name in components.__all__}
    return {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, base)
    }


def written(base: type[Args] = Args) -> Iterator[type[Args]]:
    """Yield all that people write, exported or inside of what is."""
    for kind in base.__subclasses__():
        if kind.__module__.startswith(WRITTEN):
            yield kind
        yield from written(kind)


EXPORTED_ARGS = exported(Args)
EVERY_ARGS = sorted(set(written()), key=lambda kind: kind.__name__)


def objects(component: str, *names: str) -> list[Recorded]:
    """Return the objects that Kubernetes gets; what is in a chart is the chart's own."""
    return [it for it in made(component, *names).resources if it.is_object]


def test_every_exported_component_is_checked_here() -> None:
    assert set(exported(pulumi.ComponentResource)) == set(COMPONENTS)


@EVERY
def test_nothing_is_an_orphan(component: str) -> None:
    built = made(component, "one")
    tops = [it for it in built.resources if it.parent.split("::")[2] == "pulumi:pulumi:Stack"]
    assert len(tops) == 1, [it.name for it in tops]
    assert not tops[0].custom


@EVERY
def test_two_of_a_kind_share_no_name(component: str) -> None:
    names = [(it.type, it.name) for it in made(component, *LONG).resources]
    assert len(names) == len(set(names))


@EVERY
def test_the_names_of_children_begin_with_the_component_s_name(component: str) -> None:
    resources = made(component, "one").resources
    assert all(it.name == "one" or it.name.startswith("one-") for it in resources)


@EVERY
def test_names_and_labels_stay_within_their_limits(component: str) -> None:
    for resource in objects(component, *LONG):
        assert len(resource.object_name) <= K8S_NAME_LIMIT, resource.object_name
        assert resource.object_name, resource.name
        for value in resource.inputs["metadata"].get("labels", {}).values():
            assert re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", value), value


@EVERY
def test_its_outputs_are_the_ones_that_it_declares(component: str) -> None:
    built = made(component, "one")
    (shape,) = built.value
    declared = {
        name
        for name, hint in get_annotations(shape.kind).items()
        if getattr(hint, "__origin__", None) is pulumi.Output and not name.startswith("_")
    }
    top = next(it.urn for it in built.resources if it.name == "one" and not it.custom)
    registered = set(built.registered_outputs[top])
    assert registered >= declared, declared - registered
    assert registered <= shape.attributes


@EVERY
def test_the_first_preview_shows_everything_that_will_be_made(component: str) -> None:
    previewed = {(it.type, it.name) for it in made(component, "one", preview=True).resources}
    assert previewed == {(it.type, it.name) for it in made(component, "one").resources}


@EVERY
def test_every_ignored_path_exists(component: str) -> None:
    for resource in made(component, "one").resources:
        for path in resource.ignore_changes:
            assert resource.has(path), f"{resource.name} has no {path}"


@EVERY
def test_every_pod_is_hardened(component: str) -> None:
    for name, pod in made(component, "one").pods():
        assert hardening_problems(pod) == [], name
        assert uses_token(pod) == (name in NEEDS_TOKEN), name
        assert pod["enableServiceLinks"] is False, name


@EVERY
def test_every_container_may_write_to_tmp_and_asks_for_little(component: str) -> None:
    for name, pod in made(component, "one").pods():
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}, name
            assert container["resources"]["requests"]["cpu"].endswith("m"), name


@EVERY
def test_every_long_running_container_is_probed(component: str) -> None:
    for name, pod in made(component, "one").pods():
        if pod.get("restartPolicy") == "OnFailure":
            continue
        for container in pod["containers"]:
            probes = {"startupProbe", "readinessProbe", "livenessProbe"} & container.keys()
            assert probes, f"{name}: {container['name']}"


@EVERY
def test_a_secret_s_content_is_secret_on_its_way_in_and_out(component: str) -> None:
    for secret in objects(component, "one"):
        if secret.kind != "Secret":
            continue
        assert {"data", "stringData"} <= set(secret.secret_outputs), secret.name
        for field in ("data", "stringData"):
            if field in secret.inputs:
                covered = {path.split(".")[0] for path in secret.secret_paths}
                assert field in covered, secret.name


@EVERY
def test_no_canary_is_anywhere_but_in_a_secret(component: str) -> None:
    for resource in made(component, "one").resources:
        if resource.kind != "Secret":
            assert "canary" not in str(resource.inputs), resource.name


@EVERY
def test_every_object_says_that_it_is_the_platform_s(component: str) -> None:
    for resource in objects(component, "one"):
        labels = resource.inputs["metadata"]["labels"]
        assert labels["app.kubernetes.io/part-of"] == "llm-platform", resource.name


@pytest.mark.parametrize("kind", EXPORTED_ARGS.values(), ids=EXPORTED_ARGS)
def test_an_unknown_argument_is_refused_by_its_name(kind: type[Args]) -> None:
    if kind.__init__ is not Args.__init__:
        with pytest.raises(TypeError, match="no_such_argument"):
            kind(no_such_argument=1)
        return
    with pytest.raises(ValidationError) as refused:
        kind(no_such_argument=1)
    assert ("no_such_argument",) in {problem["loc"] for problem in refused.value.errors()}


@pytest.mark.parametrize("kind", EVERY_ARGS, ids=lambda kind: kind.__name__)
def test_every_argument_says_what_it_means(kind: type[Args]) -> None:
    silent = [name for name, field in kind.model_fields.items() if not field.description]
    assert silent == []


@pytest.mark.parametrize("kind", exported(pulumi.ComponentResource).values(), ids=str)
def test_every_component_says_what_it_creates(kind: type) -> None:
    assert kind.__doc__ is not None
    assert "Creates" in kind.__doc__


def test_everything_in_a_namespace_goes_with_it() -> None:
    for built in (samples.published_foundation(), samples.usual_platform()):
        urns = built.by_urn()
        gone_with = [it for it in built.resources if it.deleted_with]
        assert gone_with
        for resource in gone_with:
            namespace = urns[resource.deleted_with].object_name
            if resource.custom:
                assert resource.namespace == namespace, resource.name
