"""A model endpoint: what people write, what it refuses, what it creates."""

import json
from typing import Any

import pulumi
import pytest
from pydantic import ValidationError

from components import (
    Accelerator,
    CloudWatch,
    EndpointType,
    Hooks,
    LlamaCpp,
    Logging,
    ModelEndpoint,
    RunnableImage,
    Scaling,
    Tasks,
)
from components.serving.endpoint_args import ModelEndpointArgs
from tests import samples
from tests.harness import Built, build


def endpoint(args: ModelEndpointArgs, name: str = "gemma") -> Built:
    return build(lambda: ModelEndpoint(name, args))


def registered(built: Built) -> dict[str, Any]:
    found = built.one("ConfigMap", "gemma-registration")
    return json.loads(found.inputs["data"]["registration.json"])


def container(built: Built, name: str) -> dict[str, Any]:
    pod = built.one("Deployment").inputs["spec"]["template"]["spec"]
    every = [*pod.get("initContainers", []), *pod["containers"]]
    return next(found for found in every if found["name"] == name)


def environment(found: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in found["env"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"accelerator": Accelerator.L40S, "gpus": 0}, "gpus=0 with accelerator='l40s'"),
        ({"gpus": 1}, "say which GPU"),
        ({"weights": None}, "weights are missing"),
        (
            {"type": EndpointType.ASYNC, "request_timeout_seconds": 60},
            "request_timeout_seconds=60 .*say task_timeout_seconds",
        ),
        (
            {
                "type": EndpointType.ASYNC,
                "scaling": Scaling(source=CloudWatch(region="eu-west-1")),
            },
            "scaling.source='cloudwatch' .*take it out",
        ),
        (
            {"type": EndpointType.ASYNC, "scaling": Scaling(min_workers=0, cooldown_seconds=300)},
            "cooldown_seconds=300 is shorter than",
        ),
        ({"task_timeout_seconds": 60}, "task_timeout_seconds is for type=ASYNC"),
        ({"tasks": Tasks()}, "tasks is for type=ASYNC and this endpoint is STREAMING"),
        ({"tasks": {"lease_seconds": 1}}, "lease_seconds"),
        ({"hold_seconds": -1}, "hold_seconds"),
        ({"hooks": {"pre": [{"kind": "x"}]}}, "hooks.pre"),
        (
            {"runtime": RunnableImage(image=samples.image("own"))},
            "stream_path is missing in runtime=runnable-image",
        ),
        ({"resources": {"memory": "4GB"}}, "did you mean 4Gi / 4G"),
        ({"memory": "4Gi"}, "memory"),
        ({"request_timeout_seconds": 0}, "request_timeout_seconds"),
        ({"runtime": {"image": "x"}}, "runtime"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        samples.llama_endpoint(**change)


@pytest.mark.parametrize("field", ["gpus", "request_timeout_seconds", "weights", "accelerator"])
def test_an_output_that_would_decide_shape_is_refused_by_name(field: str) -> None:
    with pytest.raises(ValidationError, match=f"{field} decides shape"):
        samples.llama_endpoint(**{field: pulumi.Output.from_input(1)})


def test_an_engine_s_image_is_taken_by_digest_only() -> None:
    with pytest.raises(ValidationError, match="by tag"):
        LlamaCpp(model="gemma", image="llamacpp:latest")
    with pytest.raises(ValidationError, match="image decides shape"):
        LlamaCpp(model="gemma", image=pulumi.Output.from_input("x"))  # pyright: ignore[reportArgumentType]


def test_a_wrong_name_is_refused_before_anything_is_registered() -> None:
    built = build(lambda: None)
    with pytest.raises(ValidationError, match="Gemma_3"):
        built = endpoint(samples.llama_endpoint(), name="Gemma_3")
    assert built.resources == []


def test_a_gpu_endpoint_has_one_gpu_unless_told_otherwise() -> None:
    assert samples.gpu_endpoint().gpus == 1
    assert samples.gpu_endpoint(gpus=4).gpus == 4
    limits = container(endpoint(samples.gpu_endpoint(gpus=4)), "model")["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "4"


def test_workers_without_gpus_roll_with_surge_and_those_with_gpus_do_not() -> None:
    def rolling(args: ModelEndpointArgs) -> dict[str, int]:
        return endpoint(args).one("Deployment").inputs["spec"]["strategy"]["rollingUpdate"]

    assert rolling(samples.llama_endpoint()) == {"maxSurge": 1, "maxUnavailable": 0}
    assert rolling(samples.gpu_endpoint()) == {"maxSurge": 0, "maxUnavailable": 1}
    assert rolling(samples.gpu_endpoint(surge=True)) == {"maxSurge": 1, "maxUnavailable": 0}


def test_the_model_stops_only_when_the_forwarder_says_that_its_last_request_is_done() -> None:
    model = container(endpoint(samples.llama_endpoint()), "model")
    assert model["lifecycle"]["preStop"]["httpGet"] == {"path": "/drain", "port": 5000}


def test_every_time_limit_follows_from_the_one_for_a_request() -> None:
    built = endpoint(samples.llama_endpoint(request_timeout_seconds=100))
    pod = built.one("Deployment").inputs["spec"]["template"]["spec"]
    forwarder = environment(container(built, "forwarder"))
    assert forwarder["LLM_PLATFORM_REQUEST_TIMEOUT_SECONDS"] == "100"
    assert pod["terminationGracePeriodSeconds"] > int(forwarder["LLM_PLATFORM_DRAIN_SECONDS"])
    registration = json.loads(built.one("ConfigMap").inputs["data"]["registration.json"])
    assert registration["request_timeout_seconds"] == 100


def test_a_task_may_take_longer_than_a_request() -> None:
    args = samples.async_endpoint(task_timeout_seconds=1800)
    built = endpoint(args)
    pod = built.one("Deployment").inputs["spec"]["template"]["spec"]
    forwarder = environment(container(built, "forwarder"))
    assert forwarder["LLM_PLATFORM_REQUEST_TIMEOUT_SECONDS"] == "1800"
    assert pod["terminationGracePeriodSeconds"] > int(forwarder["LLM_PLATFORM_DRAIN_SECONDS"])
    assert int(forwarder["LLM_PLATFORM_DRAIN_SECONDS"]) >= 1800
    assert registered(built)["request_timeout_seconds"] == 1800
    assert samples.async_endpoint().timeouts.request_seconds == 3600


def test_the_start_may_take_as_long_as_it_was_told() -> None:
    built = endpoint(samples.llama_endpoint(startup_timeout_seconds=301))
    probe = container(built, "model")["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 301
    assert int(built.one("Deployment").timeouts["create"].removesuffix("s")) > 301


def test_an_engine_that_hangs_is_restarted_without_waiting_for_its_streams() -> None:
    pod = endpoint(samples.llama_endpoint()).one("Deployment").inputs["spec"]["template"]["spec"]
    probe = pod["containers"][0]["livenessProbe"]
    assert probe["httpGet"] == {"path": "/livez/model", "port": 5000}
    assert (probe["periodSeconds"], probe["failureThreshold"], probe["timeoutSeconds"]) == (
        10,
        3,
        5,
    )
    assert probe["terminationGracePeriodSeconds"] < pod["terminationGracePeriodSeconds"]


def test_weights_are_written_by_the_loader_and_only_read_by_the_model() -> None:
    built = endpoint(samples.llama_endpoint())
    mounts = {
        name: next(m for m in container(built, name)["volumeMounts"] if m["name"] == "weights")
        for name in ("weights", "model")
    }
    assert mounts["model"]["readOnly"] is True
    assert "readOnly" not in mounts["weights"]
    assert environment(container(built, "weights"))["LLM_PLATFORM_WEIGHTS_SOURCE"] == (
        samples.WEIGHTS
    )


def test_only_the_loader_is_given_the_bucket_s_credentials() -> None:
    built = endpoint(samples.llama_endpoint())
    for name in ("model", "forwarder"):
        assert not any(key.startswith("AWS_") for key in environment(container(built, name)))
    secret = built.one("Secret", "gemma-access")
    assert secret.inputs["stringData"]["AWS_SECRET_ACCESS_KEY"] == "canary-7f3a-reader-secret"
    assert "owner" not in json.dumps(secret.inputs)


def test_an_endpoint_without_weights_is_granted_nothing() -> None:
    built = endpoint(samples.gpu_endpoint(), name="summarizer")
    assert built.all("Secret") == []
    assert "initContainers" not in built.one("Deployment").inputs["spec"]["template"]["spec"]


def test_a_variable_that_may_be_secret_reaches_the_container_through_a_secret() -> None:
    runtime = RunnableImage(
        image=samples.image("own"),
        env={"MODE": "fast", "TOKEN": pulumi.Output.secret("canary-token")},
    )
    built = endpoint(samples.gpu_endpoint(runtime=runtime), name="own")
    variables = environment(container(built, "model"))
    assert variables["MODE"] == "fast"
    assert variables["TOKEN"] == {"secretKeyRef": {"name": "own-env", "key": "TOKEN"}}
    secret = built.one("Secret", "own-env")
    assert secret.inputs["stringData"] == {"TOKEN": "canary-token"}
    assert "stringData" in secret.secret_paths
    assert "canary-token" not in json.dumps(built.one("Deployment").inputs)


def test_an_image_of_one_s_own_runs_its_command_and_is_asked_at_its_path() -> None:
    built = endpoint(samples.gpu_endpoint(), name="summarizer")
    assert container(built, "model")["command"] == ["/serve"]
    assert environment(container(built, "forwarder"))["LLM_PLATFORM_HEALTH_PATH"] == "/up"
    silent = RunnableImage(image=samples.image("own"))
    assert "command" not in container(endpoint(samples.gpu_endpoint(runtime=silent)), "model")


def test_the_registration_stands_before_the_workers_do() -> None:
    built = endpoint(samples.llama_endpoint())
    before = {built.by_urn()[urn].kind for urn in built.one("Deployment").depends_on}
    assert {"ConfigMap", "Service", "ServiceAccount", "Secret"} <= before


def test_the_gateway_is_told_what_the_endpoint_is() -> None:
    built = endpoint(samples.llama_endpoint(scaling=Scaling(min_workers=2, per_worker=3)))
    config_map = built.one("ConfigMap", "gemma-registration")
    assert config_map.inputs["metadata"]["labels"]["llm-platform/registration"] == "1"
    told = json.loads(config_map.inputs["data"]["registration.json"])
    assert told["name"] == told["service"] == "gemma"
    assert told["type"] == "streaming"
    assert (told["min_workers"], told["per_worker"], told["max_concurrency"]) == (2, 3, 6)
    assert told["stack"] == "llm-platform/platform.test"
    assert told["openai"] is True


def test_the_service_selects_the_workers_and_carries_their_label() -> None:
    built = endpoint(samples.llama_endpoint())
    service = built.one("Service", "gemma").inputs
    labels = built.one("Deployment").inputs["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["metadata"]["labels"]["llm-platform/endpoint"] == "gemma"
    assert service["spec"]["ports"] == [{"name": "http", "port": 80, "targetPort": "http"}]


def test_new_credentials_roll_the_workers() -> None:
    def rolled(who: str) -> str:
        platform = samples.platform()
        changed = samples.LocalPlatform(
            **{**vars(platform), "weights": samples.bucket(who, read_only=True)}
        )
        built = endpoint(samples.llama_endpoint(platform=changed))
        template = built.one("Deployment").inputs["spec"]["template"]
        return template["metadata"]["annotations"]["llm-platform/config-hash"]

    assert rolled("reader") == rolled("reader")
    assert rolled("reader") != rolled("owner")


def test_a_worker_takes_tasks_from_the_queue_and_gives_results_to_the_gateway() -> None:
    args = samples.async_endpoint(
        tasks=Tasks(lease_seconds=30, max_deliveries=3, expires_seconds=60)
    )
    built = endpoint(args)
    forwarder = environment(container(built, "forwarder"))
    assert {key: value for key, value in forwarder.items() if key in TASK_SETTINGS} == {
        "LLM_PLATFORM_MODE": "async",
        "LLM_PLATFORM_BROKER": "redis",
        "LLM_PLATFORM_BROKER_URL": {
            "secretKeyRef": {"name": "gemma-forwarder-access", "key": "LLM_PLATFORM_BROKER_URL"}
        },
        "LLM_PLATFORM_TEAM": "demo",
        "LLM_PLATFORM_GATEWAY_URL": "http://gateway.llm-platform.svc",
        "LLM_PLATFORM_PREDICT_PATH": "/predict",
        "LLM_PLATFORM_LEASE_SECONDS": "30",
        "LLM_PLATFORM_MAX_DELIVERIES": "3",
    }
    told = registered(built)
    assert told["type"] == "async"
    assert (told["lease_seconds"], told["max_deliveries"], told["task_expires_seconds"]) == (
        30,
        3,
        60,
    )
    assert told["predict_path"] == "/predict"
    assert (told["queue"], told["hold_seconds"]) == ("", 0)


TASK_SETTINGS = {
    f"LLM_PLATFORM_{name}"
    for name in (
        *("MODE", "BROKER", "BROKER_URL", "QUEUE", "TEAM", "GATEWAY_URL", "PREDICT_PATH"),
        *("LEASE_SECONDS", "MAX_DELIVERIES"),
    )
}


def test_only_the_forwarder_is_given_the_broker_s_credentials_and_only_for_tasks() -> None:
    built = endpoint(samples.async_endpoint())
    secret = built.one("Secret", "gemma-forwarder-access")
    assert "canary-7f3a-team-redis" in secret.inputs["stringData"]["LLM_PLATFORM_BROKER_URL"]
    assert "stringData" in secret.secret_paths
    assert not TASK_SETTINGS & environment(container(built, "model")).keys()
    for args in (samples.llama_endpoint(), samples.cold_endpoint()):
        requests = endpoint(args)
        assert not TASK_SETTINGS & environment(container(requests, "forwarder")).keys()


def test_the_loader_s_and_the_broker_s_credentials_are_kept_apart() -> None:
    built = endpoint(samples.llama_endpoint(type=EndpointType.ASYNC, scaling=Scaling(per_worker=2)))
    secrets = {it.object_name: set(it.inputs["stringData"]) for it in built.all("Secret")}
    assert set(secrets) == {"gemma-access", "gemma-forwarder-access"}
    assert secrets["gemma-forwarder-access"] == {"LLM_PLATFORM_BROKER_URL"}
    before = {built.by_urn()[urn].object_name for urn in built.one("Deployment").depends_on}
    assert set(secrets) <= before


def test_hooks_reach_the_forwarder_of_every_type() -> None:
    hooks = Hooks(post=(Logging(),))
    for kind in EndpointType:
        built = endpoint(
            samples.llama_endpoint(type=kind, hooks=hooks, scaling=Scaling(per_worker=2))
        )
        told = environment(container(built, "forwarder"))["LLM_PLATFORM_HOOKS"]
        assert Hooks.from_json(told) == hooks
    assert "LLM_PLATFORM_HOOKS" not in environment(
        container(endpoint(samples.llama_endpoint()), "forwarder")
    )


def test_a_request_is_held_as_long_as_a_worker_may_take_to_start() -> None:
    def held(**changes: Any) -> int:
        return registered(endpoint(samples.cold_endpoint(**changes)))["hold_seconds"]

    assert held(startup_timeout_seconds=1200) == 1200
    assert held(hold_seconds=30) == 30
    assert held(hold_seconds=0) == 0


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({}, ("/v1/completions", "/v1/completions")),
        ({"type": EndpointType.SYNC}, ("/v1/completions", "")),
        (
            {"runtime": RunnableImage(image=samples.image("own"), stream_path="/stream")},
            ("/predict", "/stream"),
        ),
        (
            {"runtime": RunnableImage(image=samples.image("own"), openai=True)},
            ("/predict", "/v1/completions"),
        ),
        (
            {
                "runtime": RunnableImage(image=samples.image("own"), predict_path="/run"),
                "type": EndpointType.SYNC,
            },
            ("/run", ""),
        ),
    ],
)
def test_the_gateway_is_told_where_tasks_are_posted_to(
    changes: dict[str, Any], paths: tuple[str, str]
) -> None:
    told = registered(endpoint(samples.llama_endpoint(**changes)))
    assert (told["predict_path"], told["stream_path"]) == paths


@pytest.mark.parametrize("path", ["predict", "/a b", "/a\r\nHost: b", "http://x/"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="predict_path"):
        RunnableImage(image=samples.image("own"), predict_path=path)


@pytest.mark.parametrize("name", ["vllm", "redis"])
def test_a_service_s_name_never_becomes_a_variable_of_an_engine(name: str) -> None:
    pod = endpoint(samples.llama_endpoint(), name).one("Deployment").inputs["spec"]["template"]
    assert pod["spec"]["enableServiceLinks"] is False


def test_a_user_without_a_home_has_one() -> None:
    variables = environment(container(endpoint(samples.llama_endpoint()), "model"))
    assert variables["HOME"] == variables["TMPDIR"] == "/tmp"
    assert variables["XDG_CACHE_HOME"].startswith("/tmp/")
    assert variables["USER"] == variables["LOGNAME"] == "model"


def test_there_is_as_much_room_for_what_an_engine_compiles_as_was_said() -> None:
    built = endpoint(samples.llama_endpoint(resources={"scratch": "20Gi"}))
    volumes = built.one("Deployment").inputs["spec"]["template"]["spec"]["volumes"]
    sizes = {volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in volumes}
    assert sizes["model-tmp"] == "20Gi"


def test_a_rollout_without_spare_gpus_is_given_time_to_finish() -> None:
    args = samples.gpu_endpoint(gpus=8, startup_timeout_seconds=900)
    spec = endpoint(args).one("Deployment").inputs["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert spec["progressDeadlineSeconds"] > 900


def test_every_container_says_what_it_runs() -> None:
    for args in (samples.llama_endpoint(), samples.vllm_endpoint(), samples.async_endpoint()):
        for name in ("model", "forwarder"):
            found = container(endpoint(args), name)
            assert found["command"][0] != "sh"
            assert "args" not in found
