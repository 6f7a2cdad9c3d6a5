"""What a platform engineer and an app team do: nothing twice, endpoints added and removed."""

import json
from pathlib import Path

import pytest
from pulumi import automation

from deploy.local import FOUNDATION, PLATFORM

from .conftest import TEAM_NAMESPACE, Running

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
    """The ten lines of the README, in a project of the team's own, by a stack reference."""

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
