"""The real engine: state, previews, order, and what a destroy leaves."""

import base64
import re
from typing import Any

import pulumi
import pytest
from pulumi import automation

from components import (
    GeneratedSecret,
    GeneratedSecretArgs,
    LocalDatabase,
    LocalDatabaseArgs,
    ModelEndpoint,
)
from tests import samples
from tests.engine.conftest import Engine

pytestmark = pytest.mark.timeout(300)


def changes(stack: automation.Stack) -> dict[str, int]:
    summary = stack.preview().change_summary
    return {str(kind): n for kind, n in summary.items() if kind != "same" and n}


def spellings(canary: str) -> set[str]:
    """Return a canary as it would look in clear, and in base64 wherever it begins in a text."""
    shifted = {base64.b64encode(b"." * n + canary.encode()).decode()[4:-4] for n in range(3)}
    return {canary, *shifted}


def test_the_exported_state_holds_no_secret_in_clear(deployed: Engine, canaries: list[str]) -> None:
    assert len(canaries) >= 8
    others = ["canary-admin-token", "canary-7f3a-token"]
    for stack in ("foundation.local", "platform.local"):
        state = deployed.state(stack)
        assert "gateway-access" in state or "postgres-password" in state
        for canary in [*canaries, *others]:
            assert not [text for text in spellings(canary) if text in state], canary


def test_a_canary_in_clear_would_be_found(canaries: list[str]) -> None:
    hidden = base64.b64encode(f"password: {canaries[0]}\n".encode()).decode()
    assert [text for text in spellings(canaries[0]) if text in hidden]


def test_a_second_preview_of_both_stacks_shows_no_change(
    deployed: Engine, canaries: list[str]
) -> None:
    before = len(canaries)
    assert changes(deployed.foundation()) == {}
    assert changes(deployed.platform()) == {}
    assert len(canaries) > before, "the program proposed no other values"


def test_outputs_are_flat_and_only_the_secret_ones_are_secret(deployed: Engine) -> None:
    outputs = deployed.platform().outputs()
    assert outputs["gateway_url"].value == "http://gateway.llm-platform.svc"
    assert outputs["gateway_address"].value == "http://127.0.0.1:30080"
    secret = {name for name, output in outputs.items() if output.secret}
    assert secret == {
        "admin_key",
        "team_demo_gateway_key",
        "team_demo_kubeconfig",
        "team_demo_bucket_access_key",
        "team_demo_bucket_secret_key",
        "team_demo_redis_password",
    }
    assert outputs["admin_key"].value.startswith("lp-canary-7f3a-")


def test_what_the_program_reads_is_what_the_cluster_holds(deployed: Engine) -> None:
    objects = deployed.cluster["objects"]
    held = objects["Secret/llm-platform-data/postgres-password"]["data"]["password"]
    password = deployed.foundation().outputs()["database_password"].value
    assert base64.b64decode(held).decode() == password
    url = objects["Secret/llm-platform/gateway-access"]["stringData"]["LLM_PLATFORM_DATABASE_URL"]
    assert f":{password}@postgres.llm-platform-data.svc:5432/" in url


def test_the_order_is_tables_then_gateway_and_registration_then_workers(deployed: Engine) -> None:
    log = deployed.cluster["log"]

    def at(beginning: str) -> int:
        return next(i for i, line in enumerate(log) if line.startswith(f"create {beginning}"))

    assert at("Job/llm-platform/gateway-migrate-") < at("Deployment/llm-platform/gateway")
    assert at("Job/llm-platform/gateway-migrate-") < at("Deployment/llm-platform/cacher")
    assert at("ConfigMap/team-demo/gemma-registration") < at("Deployment/team-demo/gemma")


def test_another_image_migrates_anew_before_the_gateway_rolls(deployed: Engine) -> None:
    other = samples.image("services", "sha256:" + "c" * 64)
    seen = len(deployed.cluster["log"])
    stack = deployed.platform(images={"services": other, "llamacpp": samples.image("llama")})
    stack.up()
    calls = deployed.cluster["log"][seen:]
    jobs = [line for line in calls if " Job/" in line]
    assert [line.split()[0] for line in jobs] == ["create", "delete"]
    assert calls.index(jobs[0]) < calls.index("update Deployment/llm-platform/gateway")
    replaced = {line.split("/")[0] for line in calls if line.startswith(("create", "delete"))}
    assert replaced == {"create Job", "delete Job"}
    deployed.platform().up()


def test_an_endpoint_comes_and_goes_alone(deployed: Engine, monkeypatch: Any) -> None:
    from stacks import platform

    usual = platform.endpoints

    def with_second(teams: Any, settings: Any) -> Any:
        second = samples.gpu_endpoint(platform=teams["demo"])
        return {**usual(teams, settings), "second": second}

    before = set(deployed.cluster["objects"])
    with monkeypatch.context() as patch:
        patch.setattr(platform, "endpoints", with_second)
        deployed.platform().up()
        added = set(deployed.cluster["objects"]) - before
        assert {key.split("/")[1] for key in added} == {"team-demo"}
        assert "Deployment/team-demo/second" in added
    deployed.platform().up()
    assert set(deployed.cluster["objects"]) == before


def recorded(engine: Engine) -> list[Any]:
    """Return the foundation's resources; what is encrypted looks different after each writing."""
    text = re.sub(r'"ciphertext": ?"[^"]*"', "", engine.state("foundation.local"))
    text = text.replace(",}", "}").replace("{,", "{")
    return [line for line in text.splitlines() if "time" not in line and "modified" not in line]


def test_an_unreachable_cluster_is_an_error_and_changes_no_state(deployed: Engine) -> None:
    good = deployed.kubeconfig.read_text()
    before = recorded(deployed)
    deployed.kubeconfig.write_text(samples.KUBECONFIG.replace("10.88.0.1:6443", "127.0.0.1:1"))
    try:
        with pytest.raises(automation.CommandError) as failed:
            deployed.foundation().up()
    finally:
        deployed.kubeconfig.write_text(good)
    assert "cluster unreachable: https://127.0.0.1:1" in str(failed.value)
    assert recorded(deployed) == before


def test_a_destroy_leaves_nothing_and_does_not_delete_a_namespace_piece_by_piece(
    deployed: Engine,
) -> None:
    seen = len(deployed.cluster["log"])
    deployed.platform().destroy()
    deployed.foundation().destroy()
    calls = deployed.cluster["log"][seen:]
    assert deployed.cluster["objects"] == {}
    assert "delete Namespace//team-demo" in calls
    inside = [line for line in calls if "/team-demo/" in line or "/llm-platform-data/" in line]
    # What another namespace's component put there is deleted by itself.
    assert {line.rpartition("/")[2] for line in inside} <= {"llm-platform-cacher"}
    assert [line for line in calls if "ClusterRole/" in line]


def test_the_values_of_a_generated_secret_stay_and_its_keys_are_fixed(
    engine: Engine, canaries: list[str]
) -> None:
    def program(*keys: str) -> Any:
        def run() -> None:
            args = GeneratedSecretArgs(namespace="apps", name="own", keys=keys)
            secret = GeneratedSecret("own", args)
            for key in keys:
                pulumi.export(key, secret.values[key])

        return run

    first = engine.stack("own", program("first")).up().outputs["first"]
    assert first.secret
    assert first.value in canaries
    assert engine.stack("own", program("first")).up().outputs["first"].value == first.value
    with pytest.raises(automation.CommandError, match="made without the key 'second'"):
        engine.stack("own", program("first", "second")).up()


def test_two_endpoints_of_one_name_are_refused(engine: Engine) -> None:
    def program() -> None:
        for _ in range(2):
            ModelEndpoint("same", samples.gpu_endpoint())

    with pytest.raises(automation.CommandError, match="Duplicate resource URN"):
        engine.stack("twice", program).up()


def test_protecting_a_component_protects_what_it_is_made_of(engine: Engine) -> None:
    def program() -> None:
        LocalDatabase(
            "kept",
            LocalDatabaseArgs(namespace="data", image=samples.image("postgres")),
            pulumi.ResourceOptions(protect=True),
        )

    stack = engine.stack("kept", program)
    stack.up()
    with pytest.raises(automation.CommandError, match="protect"):
        stack.destroy()
    assert "StatefulSet/data/postgres" in engine.cluster["objects"]


def test_a_wrong_setting_stops_the_program_before_anything_is_registered(engine: Engine) -> None:
    stack = engine.foundation()
    stack.set_config("llm-platform:volumes", automation.ConfigValue('{"postgres": "4GB"}'))
    with pytest.raises(automation.CommandError) as failed:
        stack.up()
    assert "llm-platform:volumes.postgres" in str(failed.value)
    assert "did you mean 4Gi / 4G?" in str(failed.value)
    assert engine.cluster["objects"] == {}
