"""What the autoscaler's user of Redis may do, asked of a real Redis with the rights as deployed."""

import pytest
from service_harness import RedisServer

from components.domain import keys
from components.domain.keys import SCALER_RIGHTS

LIST = keys.activation_key("team-demo", "gemma")
PASSWORD = "for-this-test-only"
# How KEDA's scaler asks for a length, whatever kind of key it is.
LENGTH = (
    "local kind = redis.call('type', KEYS[1]).ok; "
    "if kind == 'hash' then return redis.call('hlen', KEYS[1]) end; "
    "return redis.call('llen', KEYS[1])"
)


def as_scaler(redis_server: RedisServer, *command: str) -> str:
    redis_server.command("ACL", "SETUSER", keys.SCALER_USER, "reset", "on", f">{PASSWORD}")
    redis_server.command("ACL", "SETUSER", keys.SCALER_USER, *SCALER_RIGHTS.split())
    login = ("--user", keys.SCALER_USER, "--pass", PASSWORD, "--no-auth-warning")
    return redis_server.command(*login, *command)


def test_it_sees_how_long_an_activation_list_is(redis_server: RedisServer) -> None:
    redis_server.command("DEL", LIST)
    assert as_scaler(redis_server, "EVAL", LENGTH, "1", LIST) == "0"
    redis_server.command("RPUSH", LIST, "wanted")
    assert as_scaler(redis_server, "EVAL", LENGTH, "1", LIST) == "1"
    assert as_scaler(redis_server, "PING") == "PONG"


@pytest.mark.parametrize(
    "command",
    [
        ("EVAL", LENGTH, "1", "llm-platform:tasks:demo:gemma:tasks"),
        ("EVAL", "return redis.call('llen', 'llm-platform:tasks:demo:gemma:tasks')", "0"),
        ("EVAL", f"return redis.call('lpop', '{LIST}')", "0"),
        ("LRANGE", LIST, "0", "-1"),
        ("RPUSH", LIST, "wanted"),
        ("KEYS", "*"),
        ("ACL", "LIST"),
        ("CONFIG", "GET", "requirepass"),
        ("SUBSCRIBE", "news"),
    ],
)
def test_it_sees_and_does_nothing_else(redis_server: RedisServer, command: tuple[str, ...]) -> None:
    answer = as_scaler(redis_server, *command)
    assert "NOPERM" in answer or "can't" in answer, answer
