"""Queues of asynchronous endpoints, and who may touch what of Redis."""

import base64

import pulumi
import pytest

from components.domain import keys
from components.foundation import Queue, Redis
from components.local.broker import RedisBroker
from components.local.identity import LocalIdentity
from tests import samples
from tests.harness import build


def team_redis() -> Redis:
    return samples.redis("team-redis", "team-demo")


def queue_of(redis: Redis) -> Queue:
    return RedisBroker(redis=redis).queue(
        "summarizer",
        team="demo",
        namespace="team-demo",
        cacher_url="http://cacher.llm-platform.svc",
    )


def test_a_worker_takes_tasks_with_its_team_s_own_credentials() -> None:
    queue = queue_of(team_redis())
    assert queue.settings == {"LLM_PLATFORM_BROKER": "redis"}
    built = build(
        lambda: LocalIdentity().bind(
            "app",
            workload_name="app",
            namespace="team-demo",
            grants=queue.grants,
            opts=pulumi.ResourceOptions(),
        )
    )
    assert built.one("Secret").inputs["stringData"] == {
        "LLM_PLATFORM_BROKER_URL": (
            "redis://team-demo:canary-7f3a-team-redis@redis.llm-platform-data.svc:6379/0"
        )
    }


def test_the_autoscaler_reads_a_number_that_counts_running_tasks() -> None:
    def program() -> None:
        trigger = queue_of(team_redis()).trigger
        assert (trigger.type, trigger.authentication) == ("metrics-api", None)
        for key, value in trigger.aimed_at(3).items():
            pulumi.export(key, value)

    assert build(program).exports == {
        "url": "http://cacher.llm-platform.svc/scaling/team-demo/summarizer",
        "valueLocation": "outstanding",
        "targetValue": "3",
    }


def test_a_broker_refuses_a_redis_whose_keys_are_spread_over_servers() -> None:
    with pytest.raises(ValueError, match="turn cluster mode off"):
        RedisBroker(redis=samples.redis(clustered=True))


def test_names_in_redis_keep_teams_and_endpoints_apart() -> None:
    assert keys.activation_key("team-a", "gemma") == "llm-platform:activation:team-a:gemma"
    assert keys.task_prefix("a", "gemma") == "llm-platform:tasks:a:gemma:"
    assert keys.task_prefix("a", "gemma").startswith(keys.team_prefix("a"))
    # "a" may touch nothing of "a-b", although one name begins with the other.
    assert not keys.task_prefix("a-b", "gemma").startswith(keys.team_prefix("a"))
    assert keys.team_user("a") != keys.SCALER_USER


def test_the_autoscaler_s_user_of_redis_sees_the_lengths_of_activation_lists_only() -> None:
    built = samples.published_foundation()
    config = built.one("Secret", "redis-config").inputs["stringData"]["redis.conf"]
    encoded = built.one("Secret", "redis-scaler-password").inputs["data"]["password"]
    password = base64.b64decode(encoded).decode()
    (line,) = [line for line in config.splitlines() if line.startswith("user ")]
    assert line.split() == [
        *("user", "scaler", "on", f">{password}", "~llm-platform:activation:*", "resetchannels"),
        *("-@all", "+eval", "+type", "+llen", "+ping", "+hello", "+select", "+client|setname"),
    ]
    assert built.exports["redis_scaler_password"] == password
    assert f"requirepass {password}" not in config
