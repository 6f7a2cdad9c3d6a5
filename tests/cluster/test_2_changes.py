"""What a platform engineer and an app team do: nothing twice, endpoints added and removed."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

from deploy.ask import Gateway
from deploy.local import FOUNDATION, PLATFORM

from .conftest import NAMESPACE, TEAM_NAMESPACE, Running, make_up

STACK = f"organization/llm-platform/{PLATFORM}"
OURS = "llm-platform/endpoint=second"


@pytest.mark.parametrize("stack", [FOUNDATION, PLATFORM])
def test_a_preview_after_up_shows_no_change(running: Running, stack: str) -> None:
    preview = running.pulumi("preview", "--stack", stack, "--expect-no-changes")
    assert preview.returncode == 0, preview.stdout + preview.stderr


@pytest.mark.timeout(600)
def test_an_app_team_adds_an_endpoint_and_removes_it(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint as in the README, in a project of the team's own, by a stack reference."""

    def program() -> None:
        from components import (
            EndpointType,
            LlamaCpp,
            LocalPlatform,
            ModelEndpoint,
            ModelEndpointArgs,
            Resources,
            Scaling,
            Weights,
        )

        first = deployed_gemma(running)
        ModelEndpoint(
            "second",
            ModelEndpointArgs(
                platform=LocalPlatform.read(STACK, team="demo"),
                runtime=LlamaCpp(model="gemma-3-270m", image=first["image"], chat_template="plain"),
                weights=Weights(first["weights"]),
                type=EndpointType.SYNC,
                resources=Resources(cpu="100m", memory="768Mi", disk="1Gi"),
                scaling=Scaling(min_workers=1, per_worker=1),
            ),
        )

    monkeypatch.setenv("PATH", running.engine.environ["PATH"])
    stack = automation.create_or_select_stack(
        f"run-{tmp_path.parent.name}",
        project_name="search-team",
        program=program,
        opts=automation.LocalWorkspaceOptions(
            work_dir=str(tmp_path), env_vars=dict(running.engine.environ)
        ),
    )
    try:
        stack.up()
        answer = running.client().chat.completions.create(
            model="second", messages=[{"role": "user", "content": "Say hello."}], max_tokens=10
        )
        assert answer.choices[0].message.content
        assert sorted(m.id for m in running.client().models.list()) == ["gemma", "second"]
    finally:
        stack.destroy()
        stack.workspace.remove_stack(stack.name)
    for kind in ("deployments", "services", "configmaps", "serviceaccounts", "pods", "pdb"):
        left = [o["metadata"]["name"] for o in running.objects(kind, TEAM_NAMESPACE, OURS)]
        assert left == [], f"{kind} are left"
    assert [model.id for model in running.client().models.list()] == ["gemma"]


def deployed_gemma(running: Running) -> dict[str, str]:
    (registration,) = running.objects(
        "configmaps", TEAM_NAMESPACE, "llm-platform/registration=1,llm-platform/endpoint=gemma"
    )
    return json.loads(registration["data"]["registration.json"])


def test_a_second_up_changes_nothing(running: Running, lines_shown: Callable[[], Any]) -> None:
    with lines_shown():
        assert make_up().wait() == 0
    for stack in (FOUNDATION, PLATFORM):
        done = (running.engine.logs / f"up-{stack}.log").read_text()
        assert "unchanged" in done
        assert not re.search(r"\d+ (created|updated|deleted|replaced)", done)


def test_a_teams_kubeconfig_reaches_its_namespace_and_nothing_else(
    running: Running, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(running.engine.outputs(PLATFORM)["team_demo_kubeconfig"])

    def may(*what: str) -> str:
        done = subprocess.run(
            ["kubectl", "--kubeconfig", kubeconfig, "auth", "can-i", *what],
            env=dict(running.engine.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip()

    assert may("create", "deployments", "-n", TEAM_NAMESPACE) == "yes"
    assert may("list", "secrets", "-n", NAMESPACE) == "no"
    assert may("list", "secrets", "-n", "llm-platform-data") == "no"
    assert may("list", "namespaces") == "no"
    for kind in ("resourcequotas", "rolebindings", "networkpolicies", "pods"):
        assert may("create", kind, "-n", TEAM_NAMESPACE) == "no"


def gpu_pod(namespace: str, image: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "asks-for-a-gpu", "namespace": namespace},
            "spec": {
                "securityContext": {
                    "runAsNonRoot": True,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": "sleeper",
                        "image": image,
                        "command": ["sleep", "600"],
                        "resources": {"limits": {"nvidia.com/gpu": "1"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }
                ],
            },
        }
    )


def test_a_gpu_pod_is_scheduled_but_not_beyond_its_teams_quota(
    running: Running, tmp_path: Path
) -> None:
    image = running.objects("deployments", NAMESPACE)[0]["spec"]["template"]["spec"]["containers"][
        0
    ]["image"]
    asked = tmp_path / "pod.json"
    asked.write_text(gpu_pod("default", image))
    running.kubectl("apply", "--filename", str(asked))
    try:
        running.kubectl(
            *("wait", "--for=condition=Ready", "--timeout=120s", "pod/asks-for-a-gpu"),
            *("--namespace", "default"),
        )
    finally:
        running.kubectl("delete", "--filename", str(asked), "--now")
    asked.write_text(gpu_pod(TEAM_NAMESPACE, image))
    with pytest.raises(AssertionError, match="exceeded quota"):
        running.kubectl("apply", "--filename", str(asked))


def test_the_printed_curl_line_answers(running: Running) -> None:
    line = Gateway(running.address, running.team_key).curl(
        "gemma", "What is the capital of France?"
    )
    done = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "LLM_PLATFORM_KEY": running.team_key},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Paris" in json.loads(done.stdout)["choices"][0]["message"]["content"], done.stderr
