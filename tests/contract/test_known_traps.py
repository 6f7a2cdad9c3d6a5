"""Traps that people have fallen into with Pulumi's Python SDK and its Kubernetes provider.

====================================================  =============================================
what people saw                                       the tests that keep us out of it
====================================================  =============================================
a conflict over the number of replicas with an        ``test_the_number_of_workers_has_one_owner``
autoscaler (pulumi/pulumi-kubernetes#2491)
a preview that shows a whole chart deleted because    ``test_the_first_preview_of_a_stack_shows_…``,
one value wasn't known (pulumi-kubernetes#3699)       ``test_no_chart_is_rendered_…``
secrets in the clear in state, ConfigMaps and         ``test_secrets_are_nowhere_but_in_secrets``,
annotations (pulumi-kubernetes#1353)                  ``tests/engine``: the exported state
resources made inside ``apply`` that the preview      ``test_no_resource_is_made_inside_apply``,
doesn't show (pulumi/pulumi#16140)                    ``test_the_first_preview_of_a_stack_shows_…``
a custom resource before its definition               ``test_custom_resources_wait_for_…``
(pulumi-kubernetes#1735)
"field is immutable" (pulumi-kubernetes#2575)         ``test_selectors_never_change``,
                                                      ``test_another_image_makes_another_job``
a ConfigMap replaced under running pods, or changed   ``test_configuration_changes_in_place_and_…``
without pods noticing (pulumi-kubernetes#1567)
resources forgotten while the cluster couldn't be     ``test_an_unreachable_cluster_stops_…``, and
reached (pulumi-kubernetes#1013)                      ``tests/unit/components/test_cluster.py``
everything made anew after a rename                   ``test_no_resource_changed_its_address``
(pulumi-kubernetes#3110)
an ignored path that ignores nothing                  ``test_every_ignored_path_exists``, and
(pulumi/pulumi#9054)                                  ``tests/engine``: the second run changes none
====================================================  =============================================
"""

import ast
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from components import ModelEndpoint
from tests import samples
from tests.harness import Built, Recorded, build

ROOT = Path(__file__).resolve().parents[2]
OTHER_DIGEST = "sha256:" + "b" * 64
BUILT_IN = {
    "core",
    "apps",
    "batch",
    "policy",
    "networking.k8s.io",
    "rbac.authorization.k8s.io",
    "helm.sh",
}


def both_stacks(**how: Any) -> list[Built]:
    return [samples.build_foundation(**how), samples.build_platform(**how)]


def test_the_number_of_workers_has_one_owner() -> None:
    built = build(lambda: ModelEndpoint("gemma", samples.llama_endpoint()))
    scalers = {"HorizontalPodAutoscaler", "ScaledObject"}
    assert not scalers & {resource.kind for resource in built.resources}
    deployment = built.one("Deployment")
    assert deployment.inputs["spec"]["replicas"] == 2
    assert deployment.ignore_changes == ()


def test_the_first_preview_of_a_stack_shows_everything_that_will_be_made() -> None:
    for previewed, updated in zip(both_stacks(preview=True), both_stacks(), strict=True):
        assert {(it.type, it.name) for it in previewed.resources} == {
            (it.type, it.name) for it in updated.resources
        }


def test_no_chart_is_rendered_from_values_that_may_be_unknown() -> None:
    for built in both_stacks():
        assert not [it.type for it in built.resources if it.type.startswith("kubernetes:helm.sh")]


def secrets_of(built: Built) -> set[str]:
    """Return every value that a Secret of ours holds, and its base64."""
    texts: set[str] = set()
    for secret in built.all("Secret"):
        for encoded in secret.inputs.get("data", {}).values():
            texts |= {encoded, base64.b64decode(encoded).decode()}
        for plain in secret.inputs.get("stringData", {}).values():
            texts |= {plain, base64.b64encode(plain.encode()).decode()}
    # Where the bucket is isn't secret; it stands beside what is.
    return {text for text in texts if len(text) > 12 and not text.startswith("http")}


def test_secrets_are_nowhere_but_in_secrets() -> None:
    for built in [
        *both_stacks(),
        *(build(lambda make=make: make("one")) for make in samples.COMPONENTS.values()),
    ]:
        secrets = secrets_of(built)
        for resource in built.resources:
            if resource.kind in {"Secret", "kubernetes"}:
                continue
            text = json.dumps(resource.inputs)
            assert not [secret for secret in secrets if secret in text], resource.name
        for urn, outputs in built.registered_outputs.items():
            if "GeneratedSecret" in urn or "Gateway" in urn or "Team" in urn:
                continue
            text = json.dumps(outputs)
            assert not [secret for secret in secrets if secret in text], urn


def resource_calls_inside_apply(source: str) -> Iterator[int]:
    """Yield the lines where something that looks like a resource is made inside ``apply``."""
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        is_apply = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if not is_apply or node.func.attr != "apply":  # pyright: ignore[reportAttributeAccessIssue]
            continue
        for argument in node.args:  # pyright: ignore[reportAttributeAccessIssue]
            named = functions.get(argument.id) if isinstance(argument, ast.Name) else argument
            for inner in ast.walk(named or argument):
                if isinstance(inner, ast.Call) and _looks_like_a_resource(inner):
                    yield inner.lineno


def _looks_like_a_resource(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name.startswith(("k8s.", "pulumi_kubernetes.")):
        return True
    return name in samples.COMPONENTS or any(word.arg == "opts" for word in call.keywords)


def test_no_resource_is_made_inside_apply() -> None:
    files = [*(ROOT / "components").rglob("*.py"), *(ROOT / "stacks").glob("*.py")]
    assert len(files) > 30
    for file in files:
        assert list(resource_calls_inside_apply(file.read_text())) == [], file


def test_a_resource_made_inside_apply_would_be_found() -> None:
    planted = (
        "def make(x):\n    return k8s.core.v1.Secret('a', opts=o)\n"
        "out.apply(make)\nout.apply(lambda x: Team('a', x))\nout.apply(lambda x: x.upper())\n"
    )
    assert sorted(resource_calls_inside_apply(planted)) == [2, 4]


def custom_resources_without_their_operator(built: Built) -> list[str]:
    """Return custom resources that don't wait, even through others, for what defines them."""
    urns = built.by_urn()

    def waits_for_a_definition(resource: Recorded, seen: set[str]) -> bool:
        for urn in set(resource.depends_on) - seen:
            seen.add(urn)
            found = urns.get(urn)
            if found and (
                found.kind == "CustomResourceDefinition" or waits_for_a_definition(found, seen)
            ):
                return True
        return False

    return [
        resource.name
        for resource in built.resources
        if resource.type.startswith("kubernetes:")
        and resource.type.split(":")[1].split("/")[0] not in BUILT_IN
        and resource.kind != "CustomResourceDefinition"
        and not waits_for_a_definition(resource, set())
    ]


def test_custom_resources_wait_for_what_defines_them() -> None:
    for built in both_stacks():
        assert custom_resources_without_their_operator(built) == []


def test_a_custom_resource_that_does_not_wait_would_be_found() -> None:
    def program() -> None:
        definition = k8s.apiextensions.v1.CustomResourceDefinition(
            "crd",
            metadata={"name": "a"},
            spec={
                "group": "keda.sh",
                "names": {"kind": "A", "plural": "as"},
                "scope": "Namespaced",
                "versions": [],
            },
        )
        for name, waits in {"waits": [definition], "does-not": []}.items():
            k8s.apiextensions.CustomResource(
                name,
                api_version="keda.sh/v1alpha1",
                kind="ScaledObject",
                opts=pulumi.ResourceOptions(depends_on=waits),
            )

    assert custom_resources_without_their_operator(build(program)) == ["does-not"]


def with_image(digest: str) -> Built:
    return samples.build_platform(
        images={
            "services": samples.image("services", digest),
            "llamacpp": samples.image("llamacpp", digest),
        }
    )


def test_selectors_never_change() -> None:
    def selectors(built: Built) -> dict[str, Any]:
        kinds = ("Deployment", "StatefulSet", "Service", "PodDisruptionBudget")
        return {it.name: it.inputs["spec"]["selector"] for kind in kinds for it in built.all(kind)}

    first, second = with_image(samples.DIGEST), with_image(OTHER_DIGEST)
    assert selectors(first) == selectors(second)
    assert selectors(first)["gemma-workers"] == {"matchLabels": {"llm-platform/endpoint": "gemma"}}


def test_another_image_makes_another_job() -> None:
    jobs = [with_image(digest).one("Job") for digest in (samples.DIGEST, OTHER_DIGEST)]
    assert jobs[0].object_name != jobs[1].object_name
    assert jobs[0].name == jobs[1].name
    assert with_image(samples.DIGEST).one("Job").object_name == jobs[0].object_name


def rolls_by(built: Built, kind: str, name: str) -> str:
    template = built.one(kind, name).inputs["spec"]["template"]
    return template["metadata"]["annotations"]["llm-platform/config-hash"]


def test_configuration_changes_in_place_and_rolls_the_pods() -> None:
    before = samples.build_platform()
    after = samples.build_platform(gateway={"request_timeout_seconds": 60})
    assert rolls_by(before, "Deployment", "gateway") == rolls_by(
        samples.build_platform(gateway={"replicas": 2}), "Deployment", "gateway"
    )
    assert rolls_by(before, "Deployment", "gateway") != rolls_by(after, "Deployment", "gateway")
    for built in both_stacks():
        provider = built.one("kubernetes")
        assert provider.inputs["enableConfigMapMutable"] == "true"
        assert provider.inputs["enableSecretMutable"] == "true"
        names = [it.object_name for it in [*built.all("ConfigMap"), *built.all("Secret")]]
        assert all(names), "an object without a fixed name would be replaced"


@pytest.mark.parametrize("name", ["postgres", "redis", "objectstore"])
def test_a_new_password_rolls_what_reads_it_at_its_start(name: str) -> None:
    first, second = samples.build_foundation(), samples.build_foundation()
    assert rolls_by(first, "StatefulSet", name) != rolls_by(second, "StatefulSet", name)


def test_a_migration_that_failed_is_made_anew_by_the_next_update() -> None:
    metadata = samples.build_platform().one("Job").inputs["metadata"]
    assert metadata["annotations"] == {"pulumi.com/replaceUnready": "true"}


def test_an_unreachable_cluster_stops_the_platform_before_anything_is_registered() -> None:
    outputs = samples.published_foundation().exports
    elsewhere = samples.KUBECONFIG.replace("10.88.0.1:6443", "127.0.0.1:1")
    built = build(lambda: None)
    with pytest.raises(pulumi.RunError, match="cluster unreachable"):
        built = samples.build_platform(
            foundation_outputs={**outputs, "kubeconfig": elsewhere}, checked=True
        )
    assert built.resources == []


def test_every_ignored_path_exists() -> None:
    ignored = [it for built in both_stacks() for it in built.resources if it.ignore_changes]
    assert len(ignored) >= 5
    for resource in ignored:
        for path in resource.ignore_changes:
            value: Any = resource.inputs
            for part in path.split("."):
                assert part.isidentifier(), f"{path} would need quoting"
                assert part in value, f"{resource.name} has no {path}"
                value = value[part]
