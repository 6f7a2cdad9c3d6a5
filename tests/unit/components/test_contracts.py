"""What one stack hands to another."""

from typing import Any

import pulumi
import pytest

from components import (
    LocalFoundationContract,
    LocalPlatform,
    LocalTeamContract,
    ModelEndpoint,
    PlatformContract,
)
from tests import samples
from tests.harness import Built, build


def contracts() -> dict[str, Any]:
    return dict(samples.usual_platform().exports)


def read_as_team(outputs: dict[str, Any]) -> Built:
    stack = "organization/llm-platform/platform.local"
    return build(
        lambda: ModelEndpoint(
            "summarizer",
            samples.gpu_endpoint(platform=LocalPlatform.read(stack, team="demo")),
        ),
        stack="search.prod",
        foreign={stack: outputs},
        secrets=samples.usual_platform().secret_exports,
    )


def test_what_is_published_is_what_the_contract_lists() -> None:
    published = samples.published_foundation()
    assert set(published.exports) == set(LocalFoundationContract._field_types())
    assert published.secret_exports == LocalFoundationContract.secret_fields


def test_the_platform_publishes_its_own_and_each_team_s_outputs() -> None:
    published = samples.build_platform(teams=[{"name": "demo"}, {"name": "search", "gpus": 2}])
    teams = {
        LocalTeamContract.prefix(team) + name
        for team in ("demo", "search")
        for name in LocalTeamContract._field_types()
    }
    assert set(published.exports) == set(PlatformContract._field_types()) | teams
    assert "admin_key" in published.secret_exports
    assert "team_search_kubeconfig" in published.secret_exports
    assert "gateway_address" not in published.secret_exports


def test_an_app_team_deploys_with_its_own_access_into_its_own_namespace() -> None:
    built = read_as_team(contracts())
    deployment = built.one("Deployment", "summarizer")
    assert deployment.namespace == "team-demo"
    assert deployment.provider.split("::")[-2] == "team-demo"
    provider = built.one("kubernetes")
    assert "canary-token" in provider.inputs["kubeconfig"]
    assert "canary-admin-token" not in provider.inputs["kubeconfig"]
    assert "kubeconfig" in provider.secret_paths


def test_a_provider_that_the_caller_brings_is_used_instead() -> None:
    stack = "organization/llm-platform/platform.local"

    def program() -> None:
        import pulumi_kubernetes as k8s

        own = k8s.Provider("own")
        ModelEndpoint(
            "summarizer",
            samples.gpu_endpoint(platform=LocalPlatform.read(stack, team="demo")),
            pulumi.ResourceOptions(providers=[own]),
        )

    built = build(program, foreign={stack: contracts()})
    assert built.one("Deployment", "summarizer").provider.split("::")[-2] == "own"


def test_a_missing_output_names_the_stack_the_output_and_whom_to_ask() -> None:
    outputs = contracts()
    del outputs["team_demo_kubeconfig"]
    with pytest.raises(pulumi.RunError) as refused:
        read_as_team(outputs)
    message = str(refused.value)
    assert "organization/llm-platform/platform.local" in message
    assert "team_demo_kubeconfig" in message
    assert "Ask the platform team" in message


def test_a_number_arrives_as_a_whole_number_and_a_secret_stays_one() -> None:
    stack = samples.FOUNDATION_STACK
    published = samples.published_foundation()
    outputs = {**published.exports, "database_port": 5432.0}

    def program() -> None:
        contract = LocalFoundationContract.read(stack)
        pulumi.export("port", contract.database_port.apply(repr))
        pulumi.export("password", contract.database_password)
        pulumi.export("host", contract.database_host)

    built = build(program, foreign={stack: outputs}, secrets=published.secret_exports)
    assert built.exports["port"] == "5432"
    assert built.secret_exports == {"password"}
