"""Who owns the number of an endpoint's workers, and what it is told."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from components import (
    Accelerator,
    CloudWatch,
    EndpointType,
    ManagedPrometheus,
    ModelEndpoint,
    ModelEndpointArgs,
    Scaling,
)
from components.foundation import Grant, KedaTrigger, Queue
from tests import samples
from tests.harness import Built, Recorded, build

SCALERS = {"HorizontalPodAutoscaler", "ScaledObject"}
RANGE = Scaling(min_workers=1, max_workers=4, per_worker=2)
COLD = Scaling(min_workers=0, max_workers=4, per_worker=2)
FIXED = Scaling(min_workers=2, per_worker=2)
WORKSPACE = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1"


def endpoint(args: ModelEndpointArgs, name: str = "gemma", **opts: Any) -> Built:
    return build(lambda: ModelEndpoint(name, args, pulumi.ResourceOptions(**opts)))


def scalers(built: Built) -> list[Recorded]:
    return [resource for resource in built.resources if resource.kind in SCALERS]


def scaled_object(args: ModelEndpointArgs, name: str = "gemma") -> dict[str, Any]:
    return endpoint(args, name).one("ScaledObject").inputs["spec"]


def trigger(spec: dict[str, Any], name: str) -> dict[str, Any]:
    return next(found for found in spec["triggers"] if found["name"] == name)


def with_source(source: Any, **scaling: Any) -> ModelEndpointArgs:
    fields = {"min_workers": 1, "max_workers": 4, "per_worker": 2, **scaling}
    return samples.scaled_endpoint(scaling=Scaling(source=source, **fields))


def on_keda() -> ModelEndpointArgs:
    return samples.scaled_endpoint(platform=samples.platform(metrics="keda"))


OWNERS: dict[str, tuple[Callable[[], ModelEndpointArgs], set[str]]] = {
    "a fixed number": (lambda: samples.llama_endpoint(scaling=FIXED), set()),
    "a fixed number where KEDA reads metrics": (
        lambda: samples.llama_endpoint(platform=samples.platform(metrics="keda"), scaling=FIXED),
        set(),
    ),
    "a fixed number on CloudWatch": (
        lambda: with_source(CloudWatch(region="eu-west-1"), max_workers=1),
        set(),
    ),
    "a range": (samples.scaled_endpoint, {"HorizontalPodAutoscaler"}),
    "a range of a synchronous one": (
        lambda: samples.scaled_endpoint(type=EndpointType.SYNC),
        {"HorizontalPodAutoscaler"},
    ),
    "a range where KEDA reads metrics": (on_keda, {"ScaledObject"}),
    "from zero": (samples.cold_endpoint, {"ScaledObject"}),
    "from zero to one": (
        lambda: samples.cold_endpoint(scaling=Scaling(min_workers=0)),
        {"ScaledObject"},
    ),
    "tasks": (samples.async_endpoint, {"ScaledObject"}),
    "tasks for a fixed number": (
        lambda: samples.async_endpoint(scaling=FIXED),
        {"ScaledObject"},
    ),
    "CloudWatch": (lambda: with_source(CloudWatch(region="eu-west-1")), {"ScaledObject"}),
    "managed Prometheus": (
        lambda: with_source(ManagedPrometheus(url=WORKSPACE, region="eu-west-1")),
        {"ScaledObject"},
    ),
}


@pytest.mark.parametrize("case", OWNERS)
def test_the_number_of_workers_has_one_owner(case: str) -> None:
    make, expected = OWNERS[case]
    built = endpoint(make())
    assert {resource.kind for resource in scalers(built)} == expected
    assert len(scalers(built)) == len(expected)
    deployment = built.one("Deployment")
    scaled = bool(expected)
    assert deployment.ignore_changes == (("spec.replicas",) if scaled else ())
    assert deployment.inputs["spec"]["replicas"] == make().scaling.min_workers
    registration = built.one("ConfigMap").inputs["data"]["registration.json"]
    assert f'"autoscaled": {str(scaled).lower()}' in registration


def in_preview(make: Callable[[], ModelEndpointArgs]) -> Built:
    """Build where nothing that the platform gives is known yet."""

    def program() -> None:
        facts = k8s.core.v1.ConfigMap("facts", metadata={"name": "facts"})
        args = make()
        fields = {
            field.name: getattr(args.platform, field.name)
            for field in dataclasses.fields(args.platform)
        }
        unknown = dict.fromkeys(
            ("namespace", "prometheus_url", "redis_address", "cacher_url", "gateway_url"), facts.id
        )
        platform = type(args.platform)(**{**fields, **unknown})
        ModelEndpoint("gemma", args.model_copy(update={"platform": platform}))

    return build(program, preview=True)


@pytest.mark.parametrize("case", OWNERS)
def test_a_first_preview_shows_what_will_be_made(case: str) -> None:
    make, _ = OWNERS[case]
    previewed = [it for it in in_preview(make).resources if it.name != "facts"]
    updated = endpoint(make()).resources
    assert {(it.type, it.name) for it in previewed} == {(it.type, it.name) for it in updated}


def test_switching_between_zero_and_one_keeps_workers_and_passes_keda_s_webhook() -> None:
    programs = [
        endpoint(samples.llama_endpoint(scaling=scaling)) for scaling in (COLD, RANGE, COLD)
    ]
    assert [[it.kind for it in scalers(built)] for built in programs] == [
        ["ScaledObject"],
        ["HorizontalPodAutoscaler"],
        ["ScaledObject"],
    ]
    assert {it.object_name for built in programs for it in scalers(built)} == {"gemma"}
    assert {built.one("Deployment").urn for built in programs} == {
        programs[0].one("Deployment").urn
    }
    # The webhook skips an HPA that says so; else it refuses a ScaledObject while the HPA stands.
    hpa = programs[1].one("HorizontalPodAutoscaler").inputs["metadata"]
    assert hpa["annotations"]["validations.keda.sh/hpa-ownership"] == "false"
    # When the object goes its workers stay, and nobody but an autoscaler writes their number.
    spec = programs[0].one("ScaledObject").inputs["spec"]
    assert spec["advanced"]["restoreToOriginalReplicaCount"] is False
    assert all(built.one("Deployment").ignore_changes == ("spec.replicas",) for built in programs)


def test_a_fixed_number_is_taken_back_from_an_autoscaler_that_goes() -> None:
    def annotations(scaling: Scaling) -> dict[str, str]:
        built = endpoint(samples.llama_endpoint(scaling=scaling))
        return built.one("Deployment").inputs["metadata"]["annotations"]

    assert annotations(FIXED)["pulumi.com/patchForce"] == "true"
    for scaling in (RANGE, COLD):
        assert "pulumi.com/patchForce" not in annotations(scaling)


def test_an_update_never_waits_for_a_number_that_may_change() -> None:
    def waits_for(args: ModelEndpointArgs) -> str | None:
        annotations = endpoint(args).one("Deployment").inputs["metadata"]["annotations"]
        # Skipping the wait altogether would skip it when the workers go, too.
        assert "pulumi.com/skipAwait" not in annotations
        return annotations.get("pulumi.com/waitFor")

    assert waits_for(samples.llama_endpoint()) is None
    for autoscaled in (samples.scaled_endpoint(), samples.cold_endpoint()):
        assert waits_for(autoscaled) == "jsonpath={.status.observedGeneration}"


def test_the_hpa_aims_at_the_endpoint_s_concurrency_per_worker() -> None:
    spec = endpoint(samples.scaled_endpoint()).one("HorizontalPodAutoscaler").inputs["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 4)
    assert spec["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "gemma",
    }
    # One number of the whole endpoint: pods of a rollout that have no sample yet don't count.
    assert spec["metrics"] == [
        {
            "type": "Object",
            "object": {
                "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "gemma"},
                "metric": {
                    "name": "request-concurrency-average",
                    "selector": {"matchLabels": {"window": "60"}},
                },
                "target": {"type": "AverageValue", "averageValue": "2"},
            },
        }
    ]


def behaviors(scaling: dict[str, Any], **changes: Any) -> Iterator[dict[str, Any]]:
    """Yield what an HPA and a ScaledObject are told of the same choices."""
    args = samples.scaled_endpoint(
        scaling=Scaling(min_workers=1, max_workers=9, **scaling), **changes
    )
    yield endpoint(args).one("HorizontalPodAutoscaler").inputs["spec"]["behavior"]
    keda = samples.platform(metrics="keda")
    advanced = scaled_object(args.model_copy(update={"platform": keda}))["advanced"]
    yield advanced["horizontalPodAutoscalerConfig"]["behavior"]


def test_what_loads_is_not_ordered_twice_and_what_is_there_is_kept_for_a_while() -> None:
    chosen = {"cold_start_seconds": 180, "scale_up_workers": 1}
    for behavior in behaviors(chosen, accelerator=Accelerator.L40S):
        up = behavior["scaleUp"]
        assert up["stabilizationWindowSeconds"] == 0
        assert up["policies"] == [
            {"type": "Percent", "value": 100, "periodSeconds": 180},
            {"type": "Pods", "value": 1, "periodSeconds": 180},
        ]
        assert behavior["scaleDown"]["stabilizationWindowSeconds"] >= 300


def test_every_choice_reaches_who_scales() -> None:
    chosen = {"scale_up_stabilization_seconds": 7, "scale_down_stabilization_seconds": 11}
    for behavior in behaviors(chosen):
        assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 7
        assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 11
    cold = scaled_object(
        samples.cold_endpoint(
            scaling=Scaling(
                min_workers=0,
                max_workers=9,
                per_worker=3,
                window_seconds=20,
                polling_interval_seconds=2,
                scale_down_stabilization_seconds=20,
                cooldown_seconds=25,
                fallback_workers=4,
            )
        )
    )
    assert (cold["minReplicaCount"], cold["maxReplicaCount"]) == (0, 9)
    assert (cold["pollingInterval"], cold["cooldownPeriod"]) == (2, 25)
    assert cold["fallback"]["replicas"] == 4
    concurrency = trigger(cold, "concurrency")["metadata"]
    assert concurrency["threshold"] == "3"
    assert 'window="20"' in concurrency["query"]


def test_a_sleeping_endpoint_is_woken_without_workers_and_without_prometheus() -> None:
    spec = scaled_object(samples.cold_endpoint())
    activation = trigger(spec, "activation")
    assert activation["type"] == "redis"
    assert activation["metadata"] == {
        "address": "redis.llm-platform-data.svc:6379",
        "listName": "llm-platform:activation:team-demo:gemma",
        "listLength": "100",
        "activationListLength": "0",
    }
    assert activation["authenticationRef"] == {
        "name": "llm-platform-activation",
        "kind": "ClusterTriggerAuthentication",
    }


@pytest.mark.parametrize(
    "make",
    [
        samples.cold_endpoint,
        samples.async_endpoint,
        on_keda,
        lambda: with_source(CloudWatch(region="eu-west-1"), min_workers=0),
    ],
)
def test_a_metric_that_cannot_be_read_never_counts_as_nothing_to_do(
    make: Callable[[], ModelEndpointArgs],
) -> None:
    spec = scaled_object(make())
    assert spec["fallback"]["replicas"] >= max(1, spec["minReplicaCount"])
    assert spec["fallback"]["behavior"] == "currentReplicasIfHigher"
    for found in spec["triggers"]:
        if found["type"] in {"prometheus", "aws-cloudwatch"}:
            assert found["metadata"]["ignoreNullValues"] == "false"


def test_a_fresh_sleeping_endpoint_is_not_put_to_sleep_while_its_model_loads() -> None:
    spec = scaled_object(samples.cold_endpoint(startup_timeout_seconds=1200))
    assert spec["initialCooldownPeriod"] >= 1200


def test_times_that_do_nothing_are_left_out() -> None:
    """KEDA warns of them on each update."""
    assert not {"pollingInterval", "cooldownPeriod"} & scaled_object(on_keda()).keys()


def test_nothing_is_created_paused() -> None:
    for make, _ in OWNERS.values():
        for resource in scalers(endpoint(make())):
            assert "paused" not in str(resource.inputs["metadata"])


def test_tasks_that_wait_or_run_are_what_workers_are_chosen_for() -> None:
    spec = scaled_object(samples.async_endpoint())
    assert spec["triggers"] == [
        {
            "name": "outstanding",
            "type": "metrics-api",
            "metadata": {
                "url": "http://cacher.llm-platform.svc/scaling/team-demo/gemma",
                "valueLocation": "outstanding",
                "targetValue": "2",
            },
        }
    ]
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 600
    assert spec["cooldownPeriod"] == 600


class Sqs:
    """A broker whose queue is found by an address that is known only later."""

    kind = "sqs"

    def queue(self, endpoint: str, **_: Any) -> Queue:
        url = samples.known(f"https://sqs.eu-west-1.amazonaws.com/1/{endpoint}")
        return Queue(
            grants=[Grant.consume_queue(samples.redis("team-redis"))],
            settings={"LLM_PLATFORM_BROKER": "sqs", "LLM_PLATFORM_QUEUE": url},
            trigger=KedaTrigger(
                type="aws-sqs-queue",
                metadata={"queueURL": url, "awsRegion": "eu-west-1"},
                target_field="queueLength",
                authentication="team-demo",
                authentication_kind="TriggerAuthentication",
            ),
        )


def test_another_broker_s_queue_reaches_its_workers_its_scaler_and_the_gateway() -> None:
    built = endpoint(samples.async_endpoint(platform=samples.platform(broker=Sqs())))
    (found,) = built.one("ScaledObject").inputs["spec"]["triggers"]
    address = "https://sqs.eu-west-1.amazonaws.com/1/gemma"
    assert found["type"] == "aws-sqs-queue"
    assert (found["metadata"]["queueLength"], found["metadata"]["queueURL"]) == ("2", address)
    assert found["authenticationRef"] == {"name": "team-demo", "kind": "TriggerAuthentication"}
    assert f'"queue": "{address}"' in built.one("ConfigMap").inputs["data"]["registration.json"]


def test_cloudwatch_is_read_a_minute_at_a_time() -> None:
    spec = scaled_object(with_source(CloudWatch(region="eu-west-1"), min_workers=0))
    assert [found["name"] for found in spec["triggers"]] == ["activation", "concurrency"]
    found = trigger(spec, "concurrency")
    assert found["type"] == "aws-cloudwatch"
    assert found["authenticationRef"]["name"] == "llm-platform-aws"
    assert found["metadata"] == {
        "awsRegion": "eu-west-1",
        "namespace": "LlmPlatform",
        "metricName": "RequestConcurrency",
        "dimensionName": "Namespace;Endpoint",
        "dimensionValue": "team-demo;gemma",
        "metricStat": "Sum",
        "metricStatPeriod": "60",
        "metricCollectionTime": "120",
        "metricEndTimeOffset": "0",
        "targetMetricValue": "2",
        "minMetricValue": "0",
        "activationTargetMetricValue": "0",
        "ignoreNullValues": "false",
    }


def test_a_managed_prometheus_is_asked_with_a_role() -> None:
    source = ManagedPrometheus(url=WORKSPACE, region="eu-west-1", authentication="metrics-reader")
    found = trigger(scaled_object(with_source(source)), "concurrency")
    assert found["type"] == "prometheus"
    assert found["metadata"]["serverAddress"] == WORKSPACE
    assert found["metadata"]["awsRegion"] == "eu-west-1"
    assert found["authenticationRef"] == {
        "name": "metrics-reader",
        "kind": "ClusterTriggerAuthentication",
    }


def test_no_engine_s_own_metric_decides_how_many_workers_there_are() -> None:
    """Engines rename theirs; ours are the same for all."""
    for make, _ in OWNERS.values():
        for resource in scalers(endpoint(make())):
            assert "vllm" not in str(resource.inputs["spec"])


def test_long_names_fit_where_keda_puts_them() -> None:
    names = ["a" * 63, "a" * 62 + "b"]
    specs = [scaled_object(samples.cold_endpoint(), name) for name in names]
    hpas = [spec["advanced"]["horizontalPodAutoscalerConfig"]["name"] for spec in specs]
    assert len(set(hpas)) == 2
    assert all(len(hpa) <= 63 for hpa in hpas)
    usual = scaled_object(samples.cold_endpoint())["advanced"]["horizontalPodAutoscalerConfig"]
    assert usual["name"] == "keda-hpa-gemma"


def test_a_scaled_object_waits_for_its_workers_and_for_what_the_endpoint_waits_for() -> None:
    def program() -> None:
        operator = k8s.core.v1.Namespace("operator", metadata={"name": "keda"})
        opts = pulumi.ResourceOptions(depends_on=[operator])
        ModelEndpoint("gemma", samples.cold_endpoint(), opts)

    built = build(program)
    before = {built.by_urn()[urn].name for urn in built.one("ScaledObject").depends_on}
    assert {"operator", "gemma-workers"} <= before
