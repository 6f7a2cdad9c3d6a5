import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis as redis_py
from celery import Celery
from kombu import Message
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError
from service_harness import (
    KubeApi,
    Postgres,
    RedisServer,
    Service,
    running,
    served,
    serving,
    until,
)
from test_cacher import cacher_of

from components.domain.keys import activation_key, task_prefix, team_user
from services.core.broker.base import Broker, BrokerAway, Consuming, PublishedTask, TaskQueue
from services.core.broker.make import make_broker
from services.core.broker.settings import broker_settings

pytestmark = pytest.mark.asyncio(loop_scope="session")

PASSWORDS = {
    "red": "red-password-that-is-long-enough",
    "blue": "blue-password-that-is-long-enough",
}
QUEUE = TaskQueue("red", "e")
# What Redis says of a command, and (7.0 in other words than later ones) of one in a script.
REFUSED = r"(?i)permission|noperm|can't access at least one of the keys"


@dataclass
class World:
    """A cacher that keeps the users of two teams in a Redis of its own."""

    cacher: Service
    redis: RedisServer
    folder: Path
    open: contextlib.ExitStack

    def url(self, team: str) -> str:
        address = f"127.0.0.1:{self.redis.port}/0"
        return f"redis://{team_user(team)}:{PASSWORDS[team]}@{address}"

    def client(self, team: str) -> Any:
        """Return a client that is closed with the world."""
        return self.connect(self.url(team))

    def connect(self, url: str) -> Any:
        return self.open.enter_context(contextlib.closing(redis_py.Redis.from_url(url)))

    def broker(self, team: str = "") -> Broker:
        """Return a broker that is closed with the world."""
        url = self.url(team) if team else self.redis.url
        broker = make_broker(broker_settings("redis", url=url))
        return self.open.enter_context(contextlib.closing(broker))

    def lets_in(self, team: str) -> bool:
        with contextlib.closing(redis_py.Redis.from_url(self.url(team))) as client:
            return client.ping()

    def users(self) -> set[str]:
        lines = self.redis.command("ACL", "LIST").splitlines()
        return {line.split()[1] for line in lines}

    async def applied(self) -> None:
        def connects() -> bool:
            try:
                return all(self.lets_in(file.name) for file in self.folder.iterdir())
            except (AuthenticationError, OSError, redis_py.ConnectionError):
                return False

        await until(connects, 30)


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    # So that DEBUG is refused for want of the right, not because the server has it for nobody.
    options = ("--enable-debug-command", "local")
    with running(RedisServer(tmp_path_factory.mktemp("acl-redis"), *options)) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def world(
    postgres: Postgres,
    migrated: str,
    own_redis: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[World]:
    kube = KubeApi(tmp_path_factory.mktemp("acl-kube"))
    folder = tmp_path_factory.mktemp("team-passwords")
    for team, password in PASSWORDS.items():
        (folder / team).write_text(password)
    cacher = cacher_of(postgres, postgres.copy_of(migrated), own_redis, kube)
    cacher._env["LLM_PLATFORM_REDIS_USERS_DIR"] = str(folder)
    async with serving(kube), served(await cacher.start()):
        await cacher.listening()
        with contextlib.ExitStack() as connections:
            whole = World(cacher, own_redis, folder, connections)
            await whole.applied()
            yield whole


def taken(broker: Broker, queue: TaskQueue) -> Message:
    """Take a task as a worker does, through kombu."""
    consuming = Consuming(queue, 60, 1, 60, lambda: True)
    app = Celery("worker", set_as_current=False)
    app.conf.update(broker.settings_for(consuming))
    with app.connection_for_read() as connection:
        message = connection.default_channel.basic_get(queue.name)
        assert message is not None
        return message


async def test_a_team_can_do_everything_that_its_workers_do(world: World) -> None:
    ours, theirs = world.broker(), world.broker("red")
    theirs.check()
    for number in range(3):
        ours.publish(QUEUE, PublishedTask(f"task-{number}", {"n": number}))
    lease = theirs.lease_of(taken(theirs, QUEUE))
    assert (lease.task_id, lease.deliveries) == ("task-0", 1)
    assert theirs.extend(lease, 60)
    theirs.release(lease)
    lease = theirs.lease_of(taken(theirs, QUEUE))
    assert (lease.task_id, lease.deliveries) == ("task-0", 1)
    theirs.acknowledge(lease)
    dead = theirs.lease_of(taken(theirs, QUEUE))
    theirs.dead_letter(dead)
    assert [letter.task_id for letter in ours.dead_letters(QUEUE, 10)] == ["task-1"]
    lost = theirs.lease_of(taken(theirs, QUEUE))
    assert theirs.extend(lost, 0)
    await until(lambda: theirs.restore_expired(QUEUE) == 1)
    lease = theirs.lease_of(taken(theirs, QUEUE))
    assert (lease.task_id, lease.deliveries) == ("task-2", 2)
    theirs.acknowledge(lease)
    assert ours.outstanding(QUEUE) == 0


async def test_no_team_reaches_anything_elses(world: World) -> None:
    ours, intruder = world.broker(), world.broker("blue")
    ours.publish(QUEUE, PublishedTask("secret", {"n": 1}))
    with pytest.raises((BrokerAway, NoPermissionError)):
        taken(intruder, QUEUE)
    with pytest.raises(BrokerAway):
        intruder.restore_expired(QUEUE)
    assert ours.outstanding(QUEUE) == 1
    client = world.client("blue")
    red = task_prefix("red", "e")
    script = client.script_load("return redis.call('LLEN', ARGV[1])")
    activation = activation_key("team-blue", "e")
    for command in [
        ("LLEN", red + "tasks"),
        ("RPOP", red + "tasks"),
        ("HGET", red + "unacked", "x"),
        ("EVALSHA", script, "0", red + "tasks"),
        ("EVALSHA", script, "1", red + "tasks", red + "tasks"),
        ("LLEN", activation),
        ("LPUSH", activation, "1"),
        ("GET", "llm-platform:endpoint-state:e"),
        ("LLEN", "llm-platform:tasks:blueish:e:tasks"),
    ]:
        with pytest.raises((NoPermissionError, ResponseError), match=REFUSED):
            client.execute_command(*command)
    ours.acknowledge(ours.lease_of(taken(ours, QUEUE)))


@pytest.mark.parametrize(
    "command",
    [
        "KEYS *",
        "SCAN 0",
        "DBSIZE",
        "RANDOMKEY",
        "FLUSHALL",
        "FLUSHDB",
        "CONFIG GET *",
        "ACL LIST",
        "ACL WHOAMI",
        "CLIENT LIST",
        "CLIENT KILL TYPE normal",
        "MONITOR",
        "DEBUG SLEEP 0",
        "INFO",
        "SCRIPT FLUSH",
        "SCRIPT KILL",
        "SHUTDOWN",
        "REPLICAOF no one",
        "SUBSCRIBE llm-platform:endpoints",
        "PSUBSCRIBE *",
        "PUBLISH llm-platform:keys x",
        "SWAPDB 0 1",
        "DEL llm-platform:tasks:red:e:tasks",
    ],
)
async def test_no_team_may_look_around_or_administer(world: World, command: str) -> None:
    with pytest.raises(NoPermissionError):
        world.client("red").execute_command(*command.split())


async def test_what_redis_forgot_is_made_again(world: World) -> None:
    world.redis.stop()
    world.redis.start()
    assert team_user("red") not in world.users()
    await world.applied()
    world.redis.command("ACL", "SETUSER", team_user("red"), "allkeys", "+@all")

    def narrow() -> bool:
        lines = world.redis.command("ACL", "LIST").splitlines()
        line = next(line for line in lines if line.split()[1] == team_user("red"))
        return "~*" not in line.split() and "+@all" not in line.split()

    await until(narrow)
    world.redis.command("ACL", "DELUSER", team_user("blue"))
    await world.applied()


async def test_a_team_that_is_gone_has_no_user(world: World) -> None:
    world.redis.command("ACL", "SETUSER", "somebody", "on", ">not-ours")
    client = world.client("blue")
    assert client.ping()
    (world.folder / "blue").unlink()
    await until(lambda: team_user("blue") not in world.users())
    with pytest.raises((AuthenticationError, redis_py.ConnectionError)):
        client.ping()
    assert "somebody" in world.users()
    (world.folder / "blue").write_text(PASSWORDS["blue"])
    await world.applied()


async def test_a_new_password_replaces_the_old_one(world: World) -> None:
    old = PASSWORDS["blue"]
    PASSWORDS["blue"] = "another-password-that-is-long-enough"
    try:
        (world.folder / "blue").write_text(PASSWORDS["blue"])
        await world.applied()
        address = f"127.0.0.1:{world.redis.port}/0"
        with pytest.raises(AuthenticationError):
            world.connect(f"redis://{team_user('blue')}:{old}@{address}").ping()
    finally:
        PASSWORDS["blue"] = old
        (world.folder / "blue").write_text(old)
        await world.applied()


async def test_files_that_are_no_teams_make_no_users(world: World) -> None:
    before = world.users()
    (world.folder / "*").write_text("a-password-that-is-long-enough")
    (world.folder / "short").write_text("short")
    try:
        await until(lambda: world.cacher.said("team's password can't be used"))
        named = {line["file"] for line in world.cacher.said("team's password can't be used")}
        assert named <= {"*", "short"}
        assert world.users() == before
        assert not any(password in world.cacher.raw for password in PASSWORDS.values())
    finally:
        (world.folder / "*").unlink()
        (world.folder / "short").unlink()
