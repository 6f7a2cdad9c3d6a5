"""Kombu's transport over Redis for tasks with leases."""

import uuid
from dataclasses import dataclass
from queue import Empty
from typing import Any

from kombu.transport import virtual
from kombu.utils.json import dumps, loads
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from components.domain.keys import DEAD_QUEUE, TASK_QUEUE

from .celery_app import LeasedChannel, LeasedQoS
from .redis_scripts import CLAIM

_WAIT_SECONDS = 1
_BUSY_SECONDS = 0.05
_SOCKET_SECONDS = 10


@dataclass(frozen=True)
class RedisKeys:
    """The keys of one queue, from the name of its list of waiting tasks."""

    waiting: str

    @property
    def prefix(self) -> str:
        """What all of them begin with."""
        return self.waiting.removesuffix(TASK_QUEUE)

    @property
    def claims(self) -> str:
        """Messages that workers hold, by claim."""
        return self.prefix + "unacked"

    @property
    def ends(self) -> str:
        """When each claim's lease ends."""
        return self.prefix + "unacked_index"

    @property
    def deliveries(self) -> str:
        """How often each task was delivered."""
        return self.prefix + "deliveries"

    @property
    def dead(self) -> str:
        """Tasks that were delivered too often."""
        return self.prefix + DEAD_QUEUE


def client_for(url: str) -> Redis:
    """Return a client that notices a dead link; it connects at the first use."""
    return Redis.from_url(
        url,
        socket_connect_timeout=3,
        socket_timeout=_SOCKET_SECONDS,
        socket_keepalive=True,
        health_check_interval=10,
    )


class Channel(LeasedChannel):
    """Takes one task at a time from a list, and notes who has it in the same step."""

    QoS = LeasedQoS

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        options = connection.client.transport_options
        self._lease_milliseconds = int(1000 * options.get("lease_seconds", 60))
        self._client = client_for(options["redis_url"])
        self._claim = self._client.register_script(CLAIM)
        try:
            self._client.ping()
        except BaseException:
            self._client.close()
            raise

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        del timeout
        # Moving the last element to where it is takes nothing away, but waits until there is one.
        if self._client.blmove(queue, queue, _WAIT_SECONDS, "RIGHT", "RIGHT") is None:
            raise Empty
        if not self.qos.can_consume():  # what stopped us came while we waited
            raise Empty
        keys = RedisKeys(queue)
        claim = uuid.uuid4().hex
        claimed = self._claim(
            keys=[keys.waiting, keys.claims, keys.ends, keys.deliveries],
            args=[claim, self._lease_milliseconds],
        )
        if claimed is None:  # another worker was faster
            raise Empty
        raw, deliveries = claimed
        return _message(raw, queue, claim, deliveries)

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        self._client.lpush(queue, dumps(message))

    def _size(self, queue: str) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return int(self._client.llen(queue))

    def _purge(self, queue: str) -> int:
        raise NotImplementedError(f"tasks of {queue} aren't thrown away")

    def close(self) -> None:
        """Close the link too."""
        super().close()
        self._client.close()


def _message(raw: bytes, queue: str, claim: str, deliveries: int) -> dict[str, Any]:
    try:
        message = loads(raw)
        properties = message["properties"]
        message["headers"]["id"]
        given = {"exchange": "", "routing_key": queue, "priority": 0}
        properties["delivery_info"] = {**given, "deliveries": deliveries}
        properties["delivery_tag"] = claim
    except (ValueError, TypeError, KeyError):
        # Celery is told of a message without a task, and hands it to who moves it away.
        info = {"exchange": "", "routing_key": queue, "deliveries": deliveries}
        return {
            "body": "",
            "headers": {},
            "content-type": "application/json",
            "content-encoding": "utf-8",
            "properties": {"delivery_info": info, "delivery_tag": claim, "body_encoding": None},
        }
    return message


class Transport(virtual.Transport):
    """Hands out channels to Redis."""

    Channel = Channel
    polling_interval = _BUSY_SECONDS
    default_port = 6379
    driver_type = "redis"
    driver_name = "redis"
    connection_errors = (*virtual.Transport.connection_errors, RedisError, OSError)
    channel_errors = (*virtual.Transport.channel_errors, ResponseError)
