# ruff: noqa: S608  (the tests' own statements, on the tests' own server)
import asyncio
import base64
import datetime
import io
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import boto3
import pytest
import pytest_asyncio
from moto.server import ThreadedMotoServer
from service_harness import (
    KubeApi,
    Postgres,
    RedisServer,
    Service,
    add_endpoint,
    free_port,
    running,
    until,
)
from service_platform import KEYS, gateway_of

from components.domain.keys import DEAD_QUEUE, TASK_QUEUE, task_prefix

pytestmark = pytest.mark.asyncio(loop_scope="session")

BUCKET = "tasks-of-tests"
CALLBACK_HOST = "127.0.0.77"
"""Where callbacks may go in these tests: another host than those that they must not reach."""
BIG = "x" * (65 * 1024)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Sent:
    """A task as a worker gets it."""

    id: str
    token: str
    kwargs: dict[str, Any]
    raw: str


@dataclass
class World:
    """A gateway that takes tasks, with servers of its own that a test may stop."""

    gateway: Service
    postgres: Postgres
    redis: RedisServer
    database: str
    s3: Any
    buckets: ThreadedMotoServer
    endpoint: str = ""
    known: set[str] = field(default_factory=set)

    async def ask(
        self, method: str, path: str, key: str = KEYS["red"], body: Any = None, **how: Any
    ) -> Answer:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        text = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
        async with (
            aiohttp.ClientSession(self.gateway.url) as session,
            session.request(
                method, path, data=io.BytesIO(text), headers={**headers, **how}
            ) as answer,
        ):
            return Answer(answer.status, answer.headers, await answer.read())

    async def post(self, args: Any, key: str = KEYS["red"], **fields: Any) -> Answer:
        path = f"/v1/async-tasks?model_endpoint_id={self.endpoint}"
        return await self.ask("POST", path, key, {"args": args, **fields})

    async def task(self, args: Any = None, **fields: Any) -> Sent:
        """Send a task and take it, as a worker would."""
        answer = await self.post(args or {"y": 1}, **fields)
        assert answer.status == 200, answer.body
        sent = self.take()
        assert sent.id == answer.json["task_id"]
        return sent

    def take(self) -> Sent:
        raw = self.redis.command("RPOP", task_prefix("red", self.endpoint) + TASK_QUEUE)
        _, kwargs, _ = json.loads(base64.b64decode(json.loads(raw)["body"]))
        return Sent(kwargs["task_id"], kwargs["token"], kwargs, raw)

    def waiting(self) -> int:
        return int(self.redis.command("LLEN", task_prefix("red", self.endpoint) + TASK_QUEUE))

    async def get(self, task_id: str, key: str = KEYS["red"]) -> Answer:
        return await self.ask("GET", f"/v1/async-tasks/{task_id}", key)

    async def started(self, sent: Sent, token: str = "") -> Answer:
        return await self.ask("POST", f"/internal/tasks/{sent.id}/started", token or sent.token)

    async def finish(self, sent: Sent, result: Any, status: str = "SUCCESS", code: int = 200):
        document = {"status": status, "status_code": code, "result": result, "traceback": None}
        path = f"/internal/tasks/{sent.id}/result"
        return await self.ask("PUT", path, sent.token, document)

    def objects(self, prefix: str) -> list[str]:
        found = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        return [item["Key"] for item in found]

    def column(self, task_id: str, column: str) -> str:
        return self.postgres.sql(
            f"SELECT {column} FROM tasks WHERE id = '{task_id}'", self.database
        )

    async def add(self, name: str, team: str = "red", **fields: Any) -> None:
        add_endpoint(self.postgres, self.database, name, team, **{"type": "async", **fields})

        async def listed() -> bool:
            self.redis.command("PUBLISH", "llm-platform:endpoints", "[]")
            path = f"/v1/async-tasks?model_endpoint_id={name}"
            return (await self.ask("POST", path, KEYS["admin"], b"{")).status != 404

        await until(listed)


def bucket_environment(port: int) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "us-east-1",
    }


@pytest.fixture(scope="module")
def buckets() -> Iterator[ThreadedMotoServer]:
    server = ThreadedMotoServer(port=free_port(), ip_address="127.0.0.1", verbose=False)
    server.start()
    yield server
    server.stop()


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def one_world(  # noqa: PLR0917
    postgres: Postgres,
    migrated: str,
    buckets: ThreadedMotoServer,
    keys_dir: Path,
    kube: KubeApi,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[World]:
    database = postgres.copy_of(migrated)
    port: int = buckets._port
    with running(RedisServer(tmp_path_factory.mktemp("task-redis"))) as redis:
        env = {"BUCKET": BUCKET, "CALLBACK_ALLOW": CALLBACK_HOST}
        gateway = gateway_of(postgres, database, redis, kube, keys_dir, **env)
        gateway._env.update(bucket_environment(port))
        await (await gateway.start()).ready()
        environment = bucket_environment(port)
        s3 = boto3.client(
            "s3",
            endpoint_url=environment["AWS_ENDPOINT_URL_S3"],
            aws_access_key_id="k",
            aws_secret_access_key="s",
            region_name="us-east-1",
        )
        await until(lambda: gateway.said("the bucket keeps results"), 30)
        whole = World(gateway, postgres, redis, database, s3, buckets)
        yield whole
        await gateway.stop()
        s3.close()
        if whole.buckets is not buckets:  # a test has started another one in its place
            whole.buckets.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def world(one_world: World) -> World:
    one_world.endpoint = f"a{uuid.uuid4().hex[:8]}"
    await one_world.add(one_world.endpoint)
    return one_world


async def test_a_tasks_way_by_the_wire_contract(world: World) -> None:
    answer = await world.post({"y": 1})
    assert answer.status == 200
    assert answer.json.keys() == {"task_id"}
    sent = world.take()
    assert sent.kwargs["payload"] == {"y": 1}
    assert sent.kwargs["path"] == "/predict"
    pending = {"status": "PENDING", "result": None, "traceback": None, "status_code": None}
    assert (await world.get(sent.id)).json == {"task_id": sent.id, **pending}
    assert (await world.started(sent)).status == 200
    assert (await world.get(sent.id)).json == {"task_id": sent.id, **pending, "status": "STARTED"}
    assert (await world.finish(sent, {"y": 1})).status == 200
    done = await world.get(sent.id)
    assert done.status == 200
    assert done.json == {
        "task_id": sent.id,
        "status": "SUCCESS",
        "result": {"result": '{"y": 1}'},
        "traceback": None,
        "status_code": 200,
    }


async def test_a_failure_tells_what_the_model_said(world: World) -> None:
    sent = await world.task()
    document = {
        "status": "FAILURE",
        "status_code": 422,
        "result": {"error": "no such thing"},
        "traceback": "The model said no.",
    }
    path = f"/internal/tasks/{sent.id}/result"
    assert (await world.ask("PUT", path, sent.token, document)).status == 200
    assert (await world.get(sent.id)).json == {"task_id": sent.id, **document}


async def test_what_only_python_takes_for_json_is_not_lost(world: World) -> None:
    sent = await world.task()
    assert (await world.finish(sent, {"y": float("nan")})).status == 200
    assert (await world.get(sent.id)).json["result"] == {"result": '{"y": NaN}'}
    failed = await world.task()
    assert (await world.finish(failed, {"y": float("inf")}, "FAILURE", 500)).status == 200
    assert (await world.get(failed.id)).json["result"] == '{"y": Infinity}'


async def test_nothing_secret_or_asked_is_in_the_database_or_the_logs(world: World) -> None:
    auth = {"kind": "basic", "username": "u", "password": "canary-password"}
    sent = await world.task({"prompt": "canary-prompt"}, callback_auth=auth)
    assert sent.kwargs["callback_auth"] == auth
    assert (await world.finish(sent, {"text": "canary-answer"})).status == 200
    dump = world.postgres.dump(world.database)
    for secret in (sent.token, "canary-password", "canary-prompt", "canary-answer"):
        assert secret not in dump
        assert secret not in world.gateway.raw


async def test_the_first_of_many_results_counts(world: World) -> None:
    sent = await world.task()
    answers = await asyncio.gather(*(world.finish(sent, {"number": n}) for n in range(10)))
    statuses = [answer.status for answer in answers]
    assert sorted(statuses) == [200] + [409] * 9
    winner = statuses.index(200)
    result = (await world.get(sent.id)).json["result"]
    assert json.loads(result["result"]) == {"number": winner}
    assert (await world.finish(sent, {"number": 11})).status == 409
    assert (await world.started(sent)).status == 409
    kept = world.objects(f"results/red/{world.endpoint}/{sent.id}/")
    assert kept == [world.column(sent.id, "result_key")]


async def test_a_token_opens_its_own_task_only(world: World) -> None:
    first, second = await world.task(), await world.task()
    for token in (second.token, "wrong", KEYS["red"], KEYS["admin"]):
        assert (await world.started(first, token)).status == 404
    path = f"/internal/tasks/{first.id}/result"
    document = {"status": "SUCCESS", "status_code": 200, "result": 1, "traceback": None}
    assert (await world.ask("PUT", path, second.token, document)).status == 404
    assert (await world.ask("PUT", path, "", document)).status == 401
    nobody = f"/internal/tasks/{uuid.uuid4()}/started"
    assert (await world.ask("POST", nobody, first.token)).status == 404
    assert (await world.ask("POST", "/internal/tasks/%00/started", first.token)).status == 404
    # And a task's token is no key.
    assert (await world.get(first.id, first.token)).status == 401
    assert (await world.get(first.id)).json["status"] == "PENDING"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b"\xff", "JSON"),
        (b"{}", "status"),
        (b'{"status": "PENDING"}', "status"),
        (b'{"status": 1}', "status"),
        (b'{"status": "SUCCESS", "status_code": "x"}', "status_code"),
    ],
)
async def test_a_result_that_is_none_is_refused(world: World, body: bytes, says: str) -> None:
    sent = await world.task()
    answer = await world.ask("PUT", f"/internal/tasks/{sent.id}/result", sent.token, body)
    assert answer.status == 400
    assert says in answer.json["detail"]
    assert (await world.get(sent.id)).json["status"] == "PENDING"


async def test_a_large_payload_goes_through_the_bucket(world: World) -> None:
    sent = await world.task({"prompt": BIG})
    assert "payload" not in sent.kwargs
    assert len(sent.raw) < 8 * 1024
    path = sent.kwargs["payload_url"]
    payload = await world.ask("GET", path, sent.token)
    assert payload.json == {"prompt": BIG}
    assert (await world.ask("GET", path, "wrong")).status == 404
    key = f"tasks/red/{world.endpoint}/{sent.id}/payload"
    assert world.objects("tasks/red/") == [key]
    assert (await world.finish(sent, "done")).status == 200
    assert world.objects("tasks/red/") == []
    assert (await world.ask("GET", path, sent.token)).status == 404


async def test_a_body_over_the_limit_is_refused(world: World) -> None:
    answer = await world.post("x" * (8 * 2**20))
    assert answer.status == 413
    assert "larger" in answer.json["detail"]
    assert world.waiting() == 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "JSON"),
        (b"[1]", "object"),
        (b"{}", "args"),
        (b'{"args": null}', "args"),
        (b'{"args": {"n": 1e999}}', "args"),
        (b'{"args": 1, "callback_url": 5}', "callback_url"),
        (b'{"args": 1, "callback_url": "http://127.0.0.1/x"}', "callback_url"),
        (b'{"args": 1, "callback_url": "http://169.254.169.254/latest"}', "callback_url"),
        (b'{"args": 1, "callback_url": "file:///etc/passwd"}', "callback_url"),
        (b'{"args": 1, "callback_url": "http://localhost:6379/"}', "callback_url"),
        (b'{"args": 1, "callback_auth": {"kind": "magic"}}', "callback_auth"),
        (b'{"args": 1, "cloudpickle": "gASV"}', "cloudpickle"),
        (b'{"args": 1, "return_pickled": true}', "return_pickled"),
        (b'{"args": 1, "destination_path": "no slash"}', "destination_path"),
    ],
)
async def test_what_cannot_be_sent_is_told_with_its_field(
    world: World, body: bytes, says: str
) -> None:
    path = f"/v1/async-tasks?model_endpoint_id={world.endpoint}"
    answer = await world.ask("POST", path, KEYS["red"], body)
    assert answer.status == 400
    assert says in answer.json["detail"]
    assert world.waiting() == 0


async def test_only_asynchronous_endpoints_take_tasks(world: World) -> None:
    name = f"s{uuid.uuid4().hex[:8]}"
    await world.add(name, type="sync")
    path = "/v1/async-tasks?model_endpoint_id="
    answer = await world.ask("POST", path + name, KEYS["red"], {"args": 1})
    assert answer.status == 400
    assert "async" in answer.json["detail"]
    assert (await world.ask("POST", path + "nothing", KEYS["red"], {"args": 1})).status == 404
    assert (await world.ask("POST", path, KEYS["red"], {"args": 1})).status == 400


async def test_what_is_not_yours_does_not_exist(world: World) -> None:
    sent = await world.task()
    assert (await world.post(1, KEYS["blue"])).status == 404
    assert (await world.get(sent.id, KEYS["blue"])).status == 404
    assert (await world.get(sent.id, KEYS["admin"])).status == 200
    assert (await world.get(str(uuid.uuid4()))).status == 404
    assert (await world.get("nothing%00like-an-id")).status == 404
    assert (await world.get(sent.id, "")).status == 401
    dead = f"/v1/async-tasks/dead-letters?model_endpoint_id={world.endpoint}"
    assert (await world.ask("GET", dead, KEYS["blue"])).status == 404


async def test_everyones_endpoint_shows_each_its_own_tasks(world: World) -> None:
    world.endpoint = f"e{uuid.uuid4().hex[:8]}"
    await world.add(world.endpoint, access="everyone")
    answer = await world.post(1, KEYS["blue"])
    assert answer.status == 200
    assert (await world.get(answer.json["task_id"], KEYS["blue"])).status == 200
    assert (await world.get(answer.json["task_id"], KEYS["red"])).status == 404
    dead = f"/v1/async-tasks/dead-letters?model_endpoint_id={world.endpoint}"
    assert (await world.ask("GET", dead, KEYS["blue"])).status == 404
    assert (await world.ask("GET", dead, KEYS["red"])).status == 200


async def test_a_key_as_user_name_is_taken(world: World) -> None:
    sent = await world.task()
    basic = base64.b64encode(f"{KEYS['red']}:".encode()).decode()
    answer = await world.ask(
        "GET", f"/v1/async-tasks/{sent.id}", "", authorization=f"Basic {basic}"
    )
    assert answer.status == 200


async def test_a_task_that_nobody_took_in_time_has_failed(world: World) -> None:
    world.endpoint = f"x{uuid.uuid4().hex[:8]}"
    await world.add(world.endpoint, task_expires_seconds=30)
    sent = await world.task()
    now = datetime.datetime.now(datetime.UTC).timestamp()
    assert 0 < sent.kwargs["expires_at"] - now <= 30
    late = "UPDATE tasks SET expires_at = now() - interval '{} s', started_at = {} WHERE id = '{}'"
    world.postgres.sql(late.format(61, "NULL", sent.id), world.database)
    told = (await world.get(sent.id)).json
    assert (told["status"], told["status_code"]) == ("FAILURE", 408)
    assert "expired" in told["result"]
    # Its worker may still say so itself, for the callback's sake; once begun on and then lost,
    # nobody knows what it did.
    assert (await world.started(sent)).status == 200
    assert (await world.get(sent.id)).json["status"] == "STARTED"
    lost = "now() - interval '1000 s'"
    world.postgres.sql(late.format(1000, lost, sent.id), world.database)
    assert (await world.get(sent.id)).json["status"] == "UNDEFINED"
    assert (await world.finish(sent, "late", "FAILURE", 408)).status == 200
    assert (await world.get(sent.id)).json["status"] == "FAILURE"


async def test_a_result_that_is_not_kept_any_more_is_undefined(world: World) -> None:
    sent = await world.task()
    assert (await world.finish(sent, 1)).status == 200
    world.s3.delete_object(Bucket=BUCKET, Key=world.column(sent.id, "result_key"))
    told = (await world.get(sent.id)).json
    assert told["status"] == "UNDEFINED"


async def test_dead_letters_are_seen_and_sent_again(world: World) -> None:
    sent = await world.task({"prompt": BIG})
    prefix = task_prefix("red", world.endpoint)
    # As a worker does after the last delivery.
    text = "dead-lettered after 6 deliveries"
    assert (await world.finish(sent, text, "FAILURE", 500)).status == 200
    world.redis.command("LPUSH", prefix + DEAD_QUEUE, sent.raw)
    world.redis.command("HSET", prefix + "deliveries", sent.id, "6")
    assert (await world.get(sent.id)).json["result"] == text
    path = "/v1/async-tasks/dead-letters{}?model_endpoint_id=" + world.endpoint
    letters = await world.ask("GET", path.format(""))
    assert letters.json == {"dead_letters": [{"task_id": sent.id, "deliveries": 6}]}
    redriven = await world.ask("POST", path.format("/redrive"))
    assert redriven.json == {"redriven": [sent.id]}
    assert (await world.ask("GET", path.format(""))).json == {"dead_letters": []}
    assert (await world.get(sent.id)).json["status"] == "PENDING"
    again = world.take()
    assert again.id == sent.id
    assert again.kwargs["expires_at"] > sent.kwargs["expires_at"]
    assert (await world.ask("GET", sent.kwargs["payload_url"], again.token)).status == 200
    assert (await world.finish(again, "at last")).status == 200
    assert (await world.get(sent.id)).json["result"] == {"result": '"at last"'}
    assert (await world.ask("POST", path.format("/redrive"))).json == {"redriven": []}


async def test_the_brokers_absence_is_told_and_leaves_nothing(world: World) -> None:
    sent = await world.task()
    count = f"SELECT count(*) FROM tasks WHERE endpoint = '{world.endpoint}'"
    world.redis.stop()
    try:
        answer = await world.post({"prompt": BIG})
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        assert "detail" in answer.json
        assert world.postgres.sql(count, world.database) == "1"
        assert world.objects(f"tasks/red/{world.endpoint}/") == []
        # What is known already is told without it.
        assert (await world.get(sent.id)).status == 200
        assert (await world.finish(sent, 1)).status == 200
    finally:
        world.redis.start()
    assert (await world.post(1)).status == 200


async def test_the_databases_absence_is_told(world: World) -> None:
    sent = await world.task()
    world.postgres.stop()
    try:
        for answer in (
            await world.post(1),
            await world.get(sent.id),
            await world.started(sent),
            await world.finish(sent, 1),
        ):
            assert answer.status == 503
            assert int(answer.headers["retry-after"]) > 0
            assert "detail" in answer.json
    finally:
        world.postgres.start()
    assert (await world.finish(sent, 1)).status == 200
    assert world.waiting() == 0


async def test_the_buckets_absence_is_told_and_the_result_comes_later(world: World) -> None:
    sent = await world.task()
    world.s3.put_bucket_versioning  # noqa: B018  (the client is there; the server goes)
    port: int = world.buckets._port
    world.buckets.stop()
    try:
        answer = await world.finish(sent, {"y": 2})
        assert answer.status == 503
        assert BUCKET not in answer.json["detail"]
        assert any(BUCKET in line["error"] for line in world.gateway.said("the bucket failed"))
        assert (await world.get(sent.id)).json["status"] == "PENDING"
    finally:
        world.buckets = ThreadedMotoServer(port=port, ip_address="127.0.0.1", verbose=False)
        world.buckets.start()
    assert (await world.finish(sent, {"y": 2})).status == 200
    assert (await world.get(sent.id)).json["result"] == {"result": '{"y": 2}'}


async def test_a_gateway_that_cannot_keep_results_takes_no_tasks(
    world: World, keys_dir: Path, kube: KubeApi
) -> None:
    gateway = gateway_of(
        world.postgres, world.database, world.redis, kube, keys_dir, BUCKET="not_mine"
    )
    gateway._env.update(bucket_environment(free_port()))
    await (await gateway.start()).ready()
    mine, world.gateway = world.gateway, gateway
    try:
        answer = await world.post(1)
        assert answer.status == 503
        assert "not_mine" not in answer.json["detail"]
        await until(lambda: gateway.said("the bucket can't keep results"), 60)
        assert "not_mine" in gateway.said("the bucket can't keep results")[0]["error"]
        assert world.waiting() == 0
    finally:
        world.gateway = mine
        await gateway.stop()
