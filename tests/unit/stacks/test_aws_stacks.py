"""The two environments in AWS as they are committed, built from their own settings."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from stacks import aws, foundation, platform
from stacks.reading import SettingsError, parse
from tests.aws_stacks import (
    ENVIRONMENTS,
    Environment,
    build_foundation,
    build_platform,
    given,
    needed,
)
from tests.aws_stacks import environment as built_environment
from tests.harness import Built


@pytest.fixture(params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> Environment:
    return built_environment(request.param)


@pytest.fixture
def prod() -> Environment:
    return built_environment("prod-aws")


def test_the_whole_environment_is_built_from_its_committed_settings(
    environment: Environment,
) -> None:
    below, above = environment.below, environment.above
    assert [it.type for it in below.all("Cluster")].count("aws:eks/cluster:Cluster") == 1
    assert above.one("Deployment", "gateway")
    assert above.exports["gateway_address"].startswith("https://llm.")
    assert {"kubeconfig", "redis_password"} <= below.secret_exports


def test_the_first_preview_shows_everything(environment: Environment) -> None:
    name = environment.name
    assert names(build_foundation(name, preview=True)) == names(environment.below)
    previewed = build_platform(name, environment.below, preview=True)
    assert names(previewed) == names(environment.above)


def names(built: Built) -> set[tuple[str, str]]:
    return {(resource.type, resource.name) for resource in built.resources}


def test_nothing_of_aws_is_left_to_a_default_provider(environment: Environment) -> None:
    for built in (environment.below, environment.above):
        for resource in built.resources:
            if resource.custom and resource.type.startswith("aws:"):
                assert f"{environment.name}-aws" in resource.provider, resource.name


def test_the_provider_refuses_every_other_account_and_tags_everything(
    environment: Environment,
) -> None:
    (provider,) = environment.below.all("aws")
    account = given(f"foundation.{environment.name}")["account"]["id"]
    assert provider.inputs["allowedAccountIds"] == f'["{account}"]'
    for tag in ("environment", "owner", "cost-center"):
        assert f"llm-platform:{tag}" in provider.inputs["defaultTags"]


def env_of(built: Built, service: str) -> dict[str, str | None]:
    pod = built.one("Deployment", service).inputs["spec"]["template"]["spec"]
    return {it["name"]: it.get("value") for it in pod["containers"][0]["env"]}


def test_no_password_of_the_database_is_anywhere(prod: Environment) -> None:
    assert not any("password" in name and "redis" not in name for name in prod.below.exports)
    env = env_of(prod.above, "gateway")
    assert str(env["LLM_PLATFORM_DATABASE_URL"]).startswith("postgresql://platform@")
    assert str(env["LLM_PLATFORM_DATABASE_SECRET_ARN"]).startswith("arn:aws:secretsmanager:")
    assert env["LLM_PLATFORM_REDIS_URL"] is None, "it belongs into a Secret"


@pytest.mark.parametrize("service", ["gateway", "cacher"])
def test_services_are_told_where_the_queues_are_and_how_they_are_called(
    prod: Environment, service: str
) -> None:
    env = env_of(prod.above, service)
    assert env["LLM_PLATFORM_BROKER"] == "sqs"
    assert env["LLM_PLATFORM_BROKER_REGION"] == "us-east-1"
    assert env["LLM_PLATFORM_QUEUE_PREFIX"] == (
        "https://sqs.us-east-1.amazonaws.com/444455556666/prod-aws_"
    )


def test_a_team_s_workers_have_an_account_of_aws_and_no_user_of_redis(prod: Environment) -> None:
    assert not [it for it in prod.above.all("Secret") if it.object_name == "redis-password"]
    accounts = [it for it in prod.above.all("ServiceAccount") if it.object_name == "endpoints"]
    assert {it.namespace for it in accounts} == {"team-search", "team-support"}


def test_a_file_that_is_missing_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"database_ca_file.*make up"):
        build_foundation("dev-aws", database_ca_file=str(tmp_path / "nowhere.pem"))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("foundation.dev-aws", {"account": {"id": 1, "region": "eu-west-1"}}, "account.id"),
    ("foundation.dev-aws", {"network": {"zones": ["eu-west-1a"]}}, "at least two"),
    (
        "foundation.dev-aws",
        {"gpu_pools": {"l4": {"accelerator": "l4", "max_nodes": 0}}},
        "max_nodes",
    ),
    ("foundation.dev-aws", {"cluster": {"version": "1.35"}}, "deployer_arn"),
    ("foundation.dev-aws", {"surprise": 1}, "no such setting"),
    ("platform.prod-aws", {"zones": []}, "name the foundation's zones"),
    ("platform.prod-aws", {"gateway": {"domain": "llm.example.com"}}, "clients"),
]


@pytest.mark.parametrize(("stack", "change", "message"), WRONG)
def test_a_wrong_setting_is_named(stack: str, change: dict[str, Any], message: str) -> None:
    layer = foundation if stack.startswith("foundation") else platform
    with pytest.raises(SettingsError, match=message) as refused:
        parse(layer.SETTINGS, {**given(stack), **needed(stack), **change}, stack)
    assert f"stacks/Pulumi.{stack}.yaml" in str(refused.value)


def test_a_pool_in_a_zone_that_the_network_lacks_is_refused() -> None:
    stack = "foundation.dev-aws"
    pools = {"l4": {"accelerator": "l4", "max_nodes": 1, "zones": ["eu-west-1c"]}}
    with pytest.raises(SettingsError, match=r"gpu_pools\.l4\.zones: 'eu-west-1c'"):
        parse(foundation.SETTINGS, {**given(stack), **needed(stack), "gpu_pools": pools}, stack)


def test_the_preview_shows_what_it_costs(prod: Environment) -> None:
    price = prod.below.exports["price"]
    assert price["environment"] == "prod-aws"
    assert price["region"] == "us-east-1"
    # 730 hours of the control plane at 0.10 USD.
    (control_plane,) = [it for it in price["lines"] if "EKS" in it["item"]]
    assert control_plane["idle_per_month"] == 73.0
    # The floor of two g6e.12xlarge at 10.493 USD an hour is most of what it costs idle.
    (floor,) = [it for it in price["lines"] if it["item"] == "l40s: g6e.12xlarge"]
    assert floor["idle_per_month"] == pytest.approx(2 * 10.49264 * 730, rel=1e-3)
    assert price["idle_per_month"] > floor["idle_per_month"]


def test_the_gateway_publishes_in_the_namespace_that_it_may(prod: Environment) -> None:
    assert env_of(prod.above, "gateway")["LLM_PLATFORM_CLOUDWATCH_NAMESPACE"] == "LlmPlatform"
    policies = [str(it.inputs["policy"]) for it in prod.above.all("RolePolicy")]
    (own,) = [it for it in policies if "cloudwatch:PutMetricData" in it]
    assert '"cloudwatch:namespace": "LlmPlatform"' in own


def test_a_public_door_without_public_subnets_is_refused_by_its_setting() -> None:
    with pytest.raises(pulumi.RunError, match=r"gateway\.public is true"):
        aws._some("")
