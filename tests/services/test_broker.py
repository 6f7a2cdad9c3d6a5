"""How Celery is set up on each broker, and what doesn't need a running worker."""

import datetime
import json
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError
from service_harness import RedisServer

from services.core.broker.base import Broker, BrokerAway, Consuming, Lease, PublishedTask, TaskQueue
from services.core.broker.redis import RedisBroker
from services.core.broker.servicebus import ServiceBusBroker
from services.core.broker.settings import broker_settings
from services.core.broker.sqs import SqsBroker

BUS = "azureservicebus://policy:key@acme.servicebus.windows.net"
TASK_SECONDS = 3600


@pytest.fixture
def redis_broker(redis_server: RedisServer) -> Iterator[RedisBroker]:
    broker = RedisBroker(redis_server.url)
    yield broker
    broker.close()


@pytest.fixture
def bus() -> Iterator[ServiceBusBroker]:
    broker = ServiceBusBroker(BUS)
    yield broker
    broker.close()


@pytest.fixture
def all_brokers(redis_broker: RedisBroker, bus: ServiceBusBroker) -> Iterator[list[Broker]]:
    sqs = SqsBroker("eu-central-1", "http://127.0.0.1:1")
    yield [redis_broker, sqs, bus]
    sqs.close()


def consuming(address: str = "", concurrency: int = 4) -> Consuming:
    return Consuming(new_queue(address), 60, concurrency, TASK_SECONDS, lambda: True)


def new_queue(address: str = "") -> TaskQueue:
    return TaskQueue("red", f"t{uuid.uuid4().hex[:8]}", address)


def test_workers_take_json_settle_late_and_take_no_more_than_they_work_on(
    all_brokers: list[Broker],
) -> None:
    for broker in all_brokers:
        settings = broker.settings_for(consuming("https://sqs.invalid/1/q"))
        assert settings["accept_content"] == ["json"]
        assert settings["task_serializer"] == "json"
        assert settings["task_acks_late"] is True
        assert settings["task_reject_on_worker_lost"] is True
        assert settings["worker_prefetch_multiplier"] == 1
        assert settings["worker_concurrency"] == 4
        # A queue for remote control or events would have to exist, and be permitted.
        assert settings["worker_enable_remote_control"] is False
        assert settings["worker_send_task_events"] is False
        assert settings["task_create_missing_queues"] is False
        assert settings["broker_pool_limit"] > 0
        (queue,) = settings["task_queues"]
        assert queue.exchange.name == ""


def test_service_bus_keeps_locks_for_as_long_as_a_task_may_take(bus: ServiceBusBroker) -> None:
    options = bus.settings_for(consuming("tasks"))["broker_transport_options"]
    assert options["use_lock_renewal"] is True
    assert options["max_lock_renewal_duration"] >= TASK_SECONDS
    assert options["uamqp_keep_alive_interval"] == 30
    assert options["peek_lock_seconds"] <= 300


def test_service_bus_settles_by_the_lock_of_the_delivery(bus: ServiceBusBroker) -> None:
    done: list[tuple[str, Any]] = []

    def settle(name: str) -> Any:
        return lambda message, **_: done.append((name, message))

    names = ("complete_message", "abandon_message", "dead_letter_message")
    receiver = SimpleNamespace(**{name: settle(name) for name in names})
    channel = SimpleNamespace(_get_asb_receiver=lambda _q: SimpleNamespace(receiver=receiver))
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=60)
    received = SimpleNamespace(delivery_count=2, locked_until_utc=soon)
    message: Any = SimpleNamespace(
        delivery_info={"azure_message": received, "azure_queue_name": "q"},
        delivery_tag="lock",
        headers={"id": "task"},
        channel=channel,
    )
    lease = bus.lease_of(message)
    assert (lease.task_id, lease.tag, lease.deliveries) == ("task", "lock", 3)
    assert bus.extend(lease, 60)
    received.locked_until_utc = soon - datetime.timedelta(seconds=120)
    assert not bus.extend(lease, 60)
    bus.acknowledge(lease)
    bus.release(lease)
    bus.dead_letter(lease)
    assert done == [(name, received) for name in names]


@pytest.mark.parametrize(
    ("kind", "given", "word"),
    [
        ("redis", {"url": "redis://one:6379,two:6379/0"}, "cluster mode"),
        ("redis", {"url": "http://:canary@host"}, "redis://"),
        ("sqs", {}, "region"),
        ("servicebus", {"url": "redis://:canary@host"}, "azureservicebus://"),
        ("kafka", {}, "kafka"),
    ],
)
def test_settings_that_cant_work_are_refused(kind: str, given: dict[str, str], word: str) -> None:
    with pytest.raises(ValidationError) as caught:
        broker_settings(kind, **given)
    assert word in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_link_that_died_in_the_meantime_costs_nothing(
    redis_broker: RedisBroker, redis_server: RedisServer
) -> None:
    queue = new_queue()
    redis_broker.publish(queue, PublishedTask("first", {}))
    redis_server.command("CLIENT", "KILL", "TYPE", "normal")
    redis_broker.publish(queue, PublishedTask("second", {}))
    redis_server.command("CLIENT", "KILL", "TYPE", "normal")
    assert redis_broker.outstanding(queue) == 2


def test_a_broker_that_is_away_is_told_as_such() -> None:
    broker = RedisBroker("redis://127.0.0.1:1/0")
    queue = new_queue()
    with pytest.raises(BrokerAway):
        broker.publish(queue, PublishedTask("id", {}))
    with pytest.raises(BrokerAway):
        broker.outstanding(queue)
    with pytest.raises(BrokerAway):
        broker.check()
    broker.close()


def test_what_is_asked_is_in_no_header_for_people(
    redis_broker: RedisBroker, redis_server: RedisServer
) -> None:
    queue = new_queue()
    redis_broker.publish(queue, PublishedTask("id", {"payload": "canary"}))
    message = json.loads(redis_server.command("LRANGE", queue.name, "0", "-1"))
    assert "canary" not in json.dumps(message["headers"])


def test_who_lost_a_lease_cant_settle_the_task_of_who_has_it(
    redis_broker: RedisBroker, redis_server: RedisServer
) -> None:
    from services.core.broker.redis_transport import RedisKeys

    queue = new_queue()
    keys = RedisKeys(queue.name)
    redis_broker.publish(queue, PublishedTask("id", {}))
    message = redis_server.command("RPOP", queue.name)
    redis_server.command("HSET", keys.claims, "mine", message)
    redis_server.command("ZADD", keys.ends, "1", "mine")
    assert redis_broker.outstanding(queue) == 1
    late = Lease("id", "old", 1, keys)
    assert not redis_broker.extend(late, 60)
    for settle in (redis_broker.acknowledge, redis_broker.release, redis_broker.dead_letter):
        settle(late)
    assert redis_server.command("HKEYS", keys.claims) == "mine"
    assert redis_broker.restore_expired(queue) == 1
    assert redis_broker.restore_expired(queue) == 0
    assert redis_server.command("LLEN", queue.name) == "1"
    assert redis_server.command("EXISTS", keys.claims, keys.ends) == "0"
