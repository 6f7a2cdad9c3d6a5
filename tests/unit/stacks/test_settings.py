"""A stack's settings: what is wrong is said by name and file, before anything is registered."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pulumi.runtime import config as pulumi_config
from pydantic import ValidationError

from components import ModelEndpointArgs
from components.kube.addon import Chart
from stacks import endpoints, foundation, platform
from stacks.reading import PROJECT, SettingsError, load, parse, plain_errors
from stacks.settings import LocalFoundationSettings
from tests import samples
from tests.harness import Built, build

ROOT = Path(__file__).resolve().parents[3]
IMAGES = {"services": samples.image("services"), "llamacpp": samples.image("llamacpp")}


NEEDED = {"images": IMAGES, "addons": samples.addon_settings()}


def refusal(**given: Any) -> str:
    with pytest.raises(SettingsError) as refused:
        parse(platform.SETTINGS, {**NEEDED, **given}, "platform.local")
    return str(refused.value)


def addons(**given: Any) -> dict[str, Any]:
    return {"addons": samples.addon_settings(**given)}


def test_images_are_all_that_a_platform_must_be_told() -> None:
    prometheus = {"source": "manifests", "image": samples.image("prometheus")}
    given = {"images": IMAGES, "addons": {"prometheus": prometheus}}
    settings = parse(platform.SETTINGS, given, "platform.local")
    assert isinstance(settings.addons.keda_source(), Chart)
    assert [team.name for team in settings.teams] == ["demo"]
    assert settings.gateway.node_port == 30080


@pytest.mark.parametrize(
    ("given", "setting", "words"),
    [
        ({"gateways": {}}, "llm-platform:gateways", "no such setting"),
        ({"gateway": {"replica": 2}}, "llm-platform:gateway.replica", "no such setting"),
        ({"gateway": {"replicas": 0}}, "llm-platform:gateway.replicas", "greater than or equal"),
        ({"gateway": {"replicas": "two"}}, "llm-platform:gateway.replicas", "'two'"),
        ({"gateway": {"memory": "4GB"}}, "llm-platform:gateway.memory", "4Gi / 4G"),
        ({"teams": [{"name": "a", "gpus": 0}]}, "llm-platform:teams[0].gpus", "or equal to 1"),
        ({"teams": [{"name": "Big Team"}]}, "llm-platform:teams[0].name", "lower-case"),
        ({"teams": [{"name": "admin"}]}, "llm-platform:teams[0].name", "choose another"),
        ({"teams": [{"name": "a"}, {"name": "a"}]}, "llm-platform:", "'a' is there twice"),
        ({"images": {"services": "x:1"}}, "llm-platform:images.services", "by tag"),
        ({"images": {}}, "llm-platform:images.services", "pulumi config set"),
        (
            {"weights": {"gemma": "s3://weights/gemma/latest/"}},
            "llm-platform:weights.gemma",
            "tomorrow",
        ),
        ({"cloud": "gcp"}, "llm-platform:cloud", "known: local, aws"),
        ({"metrics": "guess"}, "llm-platform:metrics", "'keda'"),
        ({"mesh": "linkerd"}, "llm-platform:mesh", "'istio'"),
        (
            {"gateway": {"replicas": 3, "max_replicas": 2}},
            "llm-platform:gateway",
            "max_replicas=2 is below replicas=3",
        ),
        ({"addons": {}}, "llm-platform:addons.prometheus", "missing"),
        (addons(keda={}), "llm-platform:addons.keda", "source: chart or manifests or existing"),
        (
            addons(prometheus={"source": "chart"}),
            "llm-platform:addons.prometheus",
            "source: manifests or existing",
        ),
        (
            addons(metrics_server={"source": "manifests", "image": "metrics-server:1"}),
            "llm-platform:addons.metrics_server.image",
            "by tag",
        ),
        (
            addons(metrics_server={"source": "chart", "image": "x"}),
            "llm-platform:addons.metrics_server.image",
            "no such setting",
        ),
        (
            addons(
                keda={"source": "manifests", "image": IMAGES["services"], "manifests": "nowhere"}
            ),
            "llm-platform:addons.keda.manifests",
            "nowhere isn't a file",
        ),
        (
            addons(keda={"source": "manifests", "image": IMAGES["services"]}),
            "llm-platform:addons.keda.manifests",
            "missing",
        ),
        (
            addons(prometheus={"source": "existing", "url": "prometheus:9090"}),
            "llm-platform:addons.prometheus.url",
            "match",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_file_and_what_to_do(
    given: dict[str, Any], setting: str, words: str
) -> None:
    message = refusal(**given)
    assert setting in message
    assert words in message
    assert "stacks/Pulumi.platform.local.yaml" in message


def test_every_wrong_setting_is_named_at_once() -> None:
    message = refusal(gateway={"replicas": 0}, teams=[{"name": "a", "gpus": 0}])
    assert "gateway.replicas" in message
    assert "teams[0].gpus" in message


def test_a_settings_error_is_printed_without_a_traceback() -> None:
    assert issubclass(SettingsError, pulumi.RunError)
    with pytest.raises(SettingsError, match="gpus=1") as refused, plain_errors():
        samples.llama_endpoint(gpus=1)
    assert refused.value.__cause__ is None


def given_to_pulumi(values: dict[str, str], program: Any, stack: str) -> Built:
    before = pulumi_config.CONFIG.get()
    pulumi_config.CONFIG.set({f"{PROJECT}:{key}": text for key, text in values.items()})
    try:
        return build(program, stack=stack)
    finally:
        pulumi_config.CONFIG.set(before)


def test_settings_are_read_as_pulumi_hands_them_over() -> None:
    values = {
        "registry": "r:5000",
        "images": samples.data_images().model_dump_json(),
        "volumes": '{"postgres": "3Gi"}',
    }
    built = given_to_pulumi(values, lambda: load(foundation.SETTINGS), "foundation.local")
    settings: LocalFoundationSettings = built.value
    assert settings.registry == "r:5000"
    assert settings.volumes.postgres == "3Gi"
    assert settings.volumes.redis == "1Gi"


def test_a_wrong_setting_stops_the_program_before_anything_is_registered() -> None:
    registered: list[Any] = []

    def program() -> None:
        try:
            platform.deploy("local")
        finally:
            registered.append(pulumi.runtime.settings.get_monitor().get_registered_resources())

    values = {"images": '{"services": "x:latest", "llamacpp": "x:latest"}', "addons": "{}"}
    with pytest.raises(SettingsError, match=r"images\.services"):
        given_to_pulumi(values, program, "platform.local")
    assert registered == [{}]


def test_a_wrong_endpoint_stops_the_program_before_anything_is_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(*_: Any) -> dict[str, ModelEndpointArgs]:
        return {"gemma": samples.llama_endpoint(gpus=1)}

    monkeypatch.setattr(platform, "endpoints", wrong)
    registered: list[Any] = []

    def program() -> None:
        try:
            platform.deploy_with("local", samples.platform_settings(), reachable=str)
        finally:
            registered.append(pulumi.runtime.settings.get_monitor().get_registered_resources())

    with pytest.raises(ValidationError, match="say which GPU"):
        build(program, stack="platform.local")
    assert registered == [{}]


def test_the_demo_endpoint_stands_once_its_weights_are_published() -> None:
    assert endpoints.endpoints({}, samples.platform_settings()) == {}
    assert samples.build_platform(weights={}).all("ModelEndpoint") == []
    assert [it.name for it in samples.usual_platform().all("ModelEndpoint")] == ["gemma"]


def test_the_documented_example_is_valid_and_says_every_setting() -> None:
    example = yaml.safe_load((ROOT / "stacks/local.example.yaml").read_text())
    layers = {"foundation.local": foundation.SETTINGS, "platform.local": platform.SETTINGS}
    for stack, by_cloud in layers.items():
        given = {key.removeprefix(f"{PROJECT}:"): v for key, v in example[stack]["config"].items()}
        if "addons" in given:
            # Where it was rendered to on somebody's machine.
            given["addons"]["keda"]["manifests"] = samples.KEDA_MANIFESTS
        parse(by_cloud, given, stack)
        optional = {"cloud", "foundation"}
        assert set(given) == set(by_cloud["local"].model_fields) - optional


def test_the_stack_s_name_says_which_layer_is_built(tmp_path: Path) -> None:
    import runpy
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(samples.KUBECONFIG.replace("10.88.0.1:6443", address))
        built = given_to_pulumi(
            {
                "kubeconfig": str(kubeconfig),
                "registry": samples.REGISTRY,
                "images": samples.data_images().model_dump_json(),
            },
            lambda: runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__") and None,
            "foundation.local",
        )
    assert len(built.all("StatefulSet")) == 3
    assert built.exports["registry"] == samples.REGISTRY
    assert "database_password" in built.secret_exports


def test_a_stack_that_names_no_layer_is_refused_in_words() -> None:
    import runpy

    def program() -> None:
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

    for stack in ("dev", "cluster.local", "platform."):
        with pytest.raises(SettingsError, match="names no layer"):
            build(program, stack=stack)


def test_the_program_is_short() -> None:
    assert len((ROOT / "__main__.py").read_text().splitlines()) <= 20
