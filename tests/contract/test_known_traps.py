"""Traps that people have fallen into with Pulumi's Python SDK and its Kubernetes provider.

====================================================  =============================================
what people saw                                       the tests that keep us out of it
====================================================  =============================================
a conflict over the number of replicas with an        ``test_the_number_of_workers_has_one_owner``
autoscaler (pulumi/pulumi-kubernetes#2491)
a preview that shows a whole chart deleted because    ``test_the_first_preview_of_a_stack_shows_…``,
one value wasn't known (pulumi-kubernetes#3699)       ``test_no_chart_is_rendered_…``,
                                                      ``test_what_a_chart_is_told_is_known_…``
secrets in the clear in state, ConfigMaps and         ``test_secrets_are_nowhere_but_in_secrets``,
annotations (pulumi-kubernetes#1353)                  ``tests/engine``: the exported state
resources made inside ``apply`` that the preview      ``test_no_resource_is_made_inside_apply``,
doesn't show (pulumi/pulumi#16140)                    ``test_the_first_preview_of_a_stack_shows_…``
a custom resource before its definition               ``test_custom_resources_wait_for_…``
(pulumi-kubernetes#1735)
a namespace that never ends, since what would let     ``unit/stacks/test_addons.py``:
go of its objects is gone (kedacore/keda#1470)        ``test_a_scaled_object_that_somebody_…``
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
a metric that is away puts endpoints to sleep, or      ``unit/components/test_autoscaling.py``:
keeps them asleep (kedacore/keda#7239)                ``test_a_metric_that_cannot_be_read_…``,
                                                      ``test_a_sleeping_endpoint_is_woken_…``
KEDA's webhook refuses a change of owners             ``test_switching_between_zero_and_one_…``
(kedacore/keda#6597)                                  there
an object created paused never resumes                ``test_nothing_is_created_paused`` there, and
(kedacore/keda#7663)                                  ``max_workers=0`` in ``test_scaling.py``
a new endpoint put to sleep while it loads            ``test_a_fresh_sleeping_endpoint_…`` there
(kedacore/keda#5008)
a rollout or a slow start orders more and more        ``test_what_loads_is_not_ordered_twice_…`` and
(kubernetes/kubernetes#90461)                         ``test_the_hpa_aims_at_…`` there
an engine's metrics change their names                ``test_no_engine_s_own_metric_…`` there, and
(vllm-project/vllm#27341)                             ``unit/components/test_vllm.py``: the warning
a scale-in or a rollout cuts streams                  ``test_vllm.py``: ``test_it_is_told_to_…``
(vllm-project/vllm#24885)
a rollout that waits for GPUs that it holds itself    ``unit/components/test_endpoint.py``:
(defilantech/LLMKube#192)                             ``test_workers_without_gpus_roll_…``,
                                                      ``test_a_rollout_without_spare_gpus_…``
a large model killed while it loads                   ``test_the_start_may_take_as_long_…`` and
(kserve/kserve#5062)                                  ``test_an_engine_that_hangs_…`` there
variables of a Service named like the engine          ``test_a_service_s_name_never_becomes_…``
(vllm-project/vllm#34199)                             there
an engine without a home directory or a name          ``test_a_user_without_a_home_has_one`` there,
(vllm-project/vllm#9118)                              ``test_vllm.py``: its caches
====================================================  =============================================

And those of asynchronous tasks and of the controller, tested in ``tests/services``:

====================================================  =============================================
what people saw                                       the tests that keep us out of it
====================================================  =============================================
results that are never written, tasks PENDING for     ``test_async_gateway``:
ever (scaleapi/llm-engine#333, #346)                  ``test_a_gateway_that_cannot_keep_results_…``,
                                                      ``test_the_buckets_absence_is_told_…``
unknown tasks that read as PENDING                    ``test_what_is_not_yours_does_not_exist``
a first task after a quiet time that fails with the   ``test_the_brokers_absence_is_told_…``,
broker's stale link (scaleapi/llm-engine#765, #790)   ``test_broker_*``: a dead link is made anew
a controller that can't write to Redis and looks      ``test_cacher_scaling``:
healthy (scaleapi/llm-engine, docs/internal; #673)    ``test_a_redis_that_refuses_the_password_…``
an outage of the queue that counts as no work and     ``test_cacher_scaling``:
scales busy workers in (scaleapi/llm-engine)          ``test_what_is_not_known_is_an_error_…``
tasks that run twice since the queue's own timeout    ``test_broker_sqs``: ``test_a_task_longer_…``
counts (celery/celery#7234, celery/kombu#1492)
a worker's end that loses tasks or holds them back    ``test_async_worker``: ``test_sigterm_…``, and
(celery/celery#4002, #9213)                           ``test_a_killed_workers_task_…``
queues listed or made without the right to it         ``test_broker_sqs``: ``test_tasks_have_one_…``
(celery/kombu#1340)                                   ``test_only_queues_that_were_made_…``
a Redis in cluster mode as broker                     ``test_async_worker``: ``test_a_redis_in_…``,
(celery/celery#9019)                                  ``test_broker``: ``test_settings_that_cant_…``
locks of Service Bus that end under long tasks        ``test_broker``: ``test_service_bus_keeps_…``
(Azure/azure-sdk-for-python#37245)
a model that ends with its pod fails its task         ``test_async_worker``:
(scaleapi/llm-engine#664)                             ``test_a_model_that_ends_with_its_worker_…``
a client for each task until memory is used up        ``test_async_worker``:
(scaleapi/llm-engine#850)                             ``test_each_of_two_hundred_tasks_…``
a cloud's refusal told to callers as it is, with      ``test_the_buckets_absence_is_told_…``: the
names of roles (scaleapi/llm-engine#842)              bucket's name is in the log only
====================================================  =============================================
"""

import ast
import base64
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from components import ModelEndpoint
from tests import aws_stacks, samples
from tests.exported import COMPONENTS, made
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
    "storage.k8s.io",
    "apiregistration.k8s.io",
    "admissionregistration.k8s.io",
    "autoscaling",
    "helm.sh",
}
HOLD_SECRETS = {"Secret", "SecretVersion", "User", "kubernetes"}
GIVE_SECRETS = {"Gateway", "GeneratedSecret", "StoredSecret", "Team"}
"""Components with a secret among their outputs."""
DEFINES = {"CustomResourceDefinition", "Release"}


SCALED: dict[str, Any] = {"metrics": "keda", "gateway": {"max_replicas": 3}}
"""A platform with custom resources of its own."""


def both_stacks(*, preview: bool = False) -> list[Built]:
    return [
        samples.published_foundation(preview=preview),
        samples.usual_platform(preview=preview),
    ]


def in_aws() -> list[Built]:
    return [
        it
        for environment in map(aws_stacks.environment, aws_stacks.ENVIRONMENTS)
        for it in (environment.below, environment.above)
    ]


@cache
def with_charts(*, preview: bool = False, scaled: bool = False) -> Built:
    """Return the platform with its add-ons from charts."""
    names = ("keda", "prometheus_adapter", "metrics_server")
    addons = samples.addon_settings(**{name: {"source": "chart"} for name in names})
    return samples.build_platform(preview=preview, addons=addons, **(SCALED if scaled else {}))


@cache
def scaled_platform() -> Built:
    return samples.build_platform(**SCALED)


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


def test_what_a_chart_is_told_is_known_before_anything_is_made() -> None:
    previewed, updated = with_charts(preview=True), with_charts()
    assert {(it.type, it.name) for it in previewed.resources} == {
        (it.type, it.name) for it in updated.resources
    }
    values = {it.name: it.inputs["values"] for it in updated.all("Release")}
    assert len(values) == 3
    assert values == {it.name: it.inputs["values"] for it in previewed.all("Release")}


def secrets_of(built: Built) -> set[str]:
    """Return every value that a Secret of ours holds, and its base64."""
    texts: set[str] = set()
    for secret in built.all("Secret"):
        for encoded in secret.inputs.get("data", {}).values():
            texts |= {encoded, base64.b64decode(encoded).decode()}
        for plain in secret.inputs.get("stringData", {}).values():
            texts |= {plain, base64.b64encode(plain.encode()).decode()}
    for version in built.all("SecretVersion"):
        texts |= set(json.loads(version.inputs["secretString"]).values())
    # Where the bucket is isn't secret; it stands beside what is.
    return {text for text in texts if len(text) > 12 and not text.startswith("http")}


def test_secrets_are_nowhere_but_in_secrets() -> None:
    every = [made(name, "one") for name in COMPONENTS]
    for built in [*both_stacks(), with_charts(), *in_aws(), *every]:
        secrets = secrets_of(built)
        for resource in built.resources:
            if resource.kind in HOLD_SECRETS:
                continue
            text = json.dumps(resource.inputs)
            assert not [secret for secret in secrets if secret in text], resource.name
        for urn, outputs in built.registered_outputs.items():
            if urn.split("::")[2].rpartition(":")[2] in GIVE_SECRETS:
                continue
            text = json.dumps(outputs)
            assert not [secret for secret in secrets if secret in text], urn


def test_secrets_of_the_foundation_are_nowhere_but_in_secrets_of_the_platform() -> None:
    for environment in map(aws_stacks.environment, aws_stacks.ENVIRONMENTS):
        below, above = environment.below, environment.above
        secrets = {below.exports[name] for name in below.secret_exports}
        assert len(secrets) == 3
        for resource in above.resources:
            if resource.kind not in HOLD_SECRETS:
                text = json.dumps(resource.inputs)
                assert not [secret for secret in secrets if secret in text], resource.name


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
    if name.startswith(("aws.", "pulumi_aws.")) and name.rpartition(".")[2][0].isupper():
        return True
    return name in COMPONENTS or any(word.arg == "opts" for word in call.keywords)


def test_no_resource_is_made_inside_apply() -> None:
    files = [*(ROOT / "components").rglob("*.py"), *(ROOT / "stacks").glob("*.py")]
    assert len(files) > 30
    for file in files:
        assert list(resource_calls_inside_apply(file.read_text())) == [], file


def test_a_resource_made_inside_apply_would_be_found() -> None:
    planted = (
        "def make(x):\n    return k8s.core.v1.Secret('a', opts=o)\n"
        "out.apply(make)\nout.apply(lambda x: Team('a', x))\nout.apply(lambda x: x.upper())\n"
        "out.apply(lambda x: aws.ec2.Eip('a'))\n"
    )
    assert sorted(resource_calls_inside_apply(planted)) == [2, 4, 6]


def custom_resources_without_their_operator(built: Built) -> list[str]:
    """Return custom resources that don't wait, even through others, for what defines them."""
    urns = built.by_urn()

    def waits_for_a_definition(resource: Recorded, seen: set[str]) -> bool:
        for urn in set(resource.depends_on) - seen:
            seen.add(urn)
            found = urns.get(urn)
            if found and (found.kind in DEFINES or waits_for_a_definition(found, seen)):
                return True
        return False

    return [
        resource.name
        for resource in built.resources
        if resource.type.startswith("kubernetes:")
        and resource.type.split(":")[1].split("/")[0] not in BUILT_IN
        and resource.kind not in DEFINES
        and not waits_for_a_definition(resource, set())
    ]


def test_custom_resources_wait_for_what_defines_them() -> None:
    for built in [*both_stacks(), scaled_platform(), with_charts(scaled=True), *in_aws()]:
        assert custom_resources_without_their_operator(built) == []
    assert scaled_platform().all("ScaledObject")


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


@cache
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
    before = samples.usual_platform()
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
    first, second = samples.published_foundation(), samples.build_foundation()
    assert rolls_by(first, "StatefulSet", name) != rolls_by(second, "StatefulSet", name)


def test_a_migration_that_failed_is_made_anew_by_the_next_update() -> None:
    metadata = samples.usual_platform().one("Job").inputs["metadata"]
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
    stacks = [*both_stacks(), *in_aws()]
    ignored = [it for built in stacks for it in built.resources if it.ignore_changes]
    assert len(ignored) >= 5
    for resource in ignored:
        for path in resource.ignore_changes:
            assert resource.has(path), f"{resource.name} has no {path}"
