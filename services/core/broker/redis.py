"""Tasks on Redis."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from .base import BrokerUnfit, Consuming, DeadLetter, Lease, PublishedTask, TaskQueue
from .celery_app import Publisher, guarded, worker_settings
from .messages import task_id_of, with_expiry
from .redis_scripts import ACKNOWLEDGE, DEAD_LETTER, EXTEND, REDRIVE, RELEASE, RESTORE
from .redis_transport import RedisKeys, Transport, client_for

if TYPE_CHECKING:
    from kombu.message import Message

_AT_ONCE = 1000
_ERRORS = (RedisError, OSError)


class RedisBroker:
    """Sends tasks through Redis and settles them there.

    Args:
        url: ``redis://user:password@host:port/0``.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = client_for(url)
        register = self._client.register_script
        self._extend = register(EXTEND)
        self._acknowledge = register(ACKNOWLEDGE)
        self._release = register(RELEASE)
        self._dead_letter = register(DEAD_LETTER)
        self._restore = register(RESTORE)
        self._redrive = register(REDRIVE)
        self._publisher = Publisher(url, Transport, {"redis_url": url}, _ERRORS)

    def publish(self, queue: TaskQueue, task: PublishedTask) -> None:
        """Send a task; a link that was found dead is made anew once."""
        self._publisher.publish(queue, task)

    def outstanding(self, queue: TaskQueue) -> int:
        """Return how many tasks wait or are worked on."""
        keys = RedisKeys(queue.name)

        def count() -> int:
            with self._client.pipeline(transaction=True) as both:
                both.llen(keys.waiting)
                both.hlen(keys.claims)
                return sum(int(part) for part in both.execute())

        return guarded(_ERRORS, "tasks can't be counted", count)

    def dead_letters(self, queue: TaskQueue, limit: int) -> list[DeadLetter]:
        """Return tasks that were delivered too often, the oldest first."""
        keys = RedisKeys(queue.name)

        def read() -> list[DeadLetter]:
            ids = [_task_id(raw) for raw in self._dead(keys, limit)]
            counts = self._client.hmget(keys.deliveries, ids) if ids else []
            return [
                DeadLetter(task_id, int(count or 0))
                for task_id, count in zip(ids, counts, strict=True)
                if task_id
            ]

        return guarded(_ERRORS, "dead letters can't be read", read)

    def redrive(self, queue: TaskQueue, task_ids: Sequence[str], expires_at: float) -> list[str]:
        """Put dead letters back to be run until ``expires_at``; return the ids that were there."""
        keys = RedisKeys(queue.name)
        wanted = set(task_ids)

        def move() -> list[str]:
            moved: list[str] = []
            for raw in self._dead(keys, -1):
                task_id = _task_id(raw)
                if task_id not in wanted:
                    continue
                again = json.dumps(with_expiry(json.loads(raw), expires_at))
                lists = [keys.dead, keys.waiting, keys.deliveries]
                if self._redrive(keys=lists, args=[raw, again]):
                    moved.append(task_id)
            return moved

        return guarded(_ERRORS, "dead letters can't be put back", move)

    def _dead(self, keys: RedisKeys, limit: int) -> list[Any]:
        start = 0 if limit < 0 else -limit
        return self._client.lrange(keys.dead, start, -1)[::-1] if limit else []

    def settings_for(self, consuming: Consuming) -> dict[str, Any]:
        """Return the settings of the Celery application that takes a queue's tasks."""
        options = {"redis_url": self._url, "lease_seconds": consuming.lease_seconds}
        return worker_settings(consuming, self._url, Transport, options)

    def check(self) -> None:
        """Refuse a Redis in cluster mode.

        Its keys live on different nodes, and one step may only touch keys of one.
        """
        hello = guarded(
            _ERRORS, "redis can't be asked", lambda: self._client.execute_command("HELLO")
        )
        if _mode(hello) == "cluster":
            raise BrokerUnfit(
                "this Redis runs in cluster mode, where a task can't be moved between its lists "
                "in one step: use one with cluster mode off"
            )

    def lease_of(self, message: "Message") -> Lease:
        """Return the lease that a delivered message stands for."""
        info = message.delivery_info
        task_id = str((message.headers or {}).get("id", ""))
        keys = RedisKeys(info["routing_key"])
        return Lease(task_id, str(message.delivery_tag), info["deliveries"], keys)

    def extend(self, lease: Lease, seconds: float) -> bool:
        """Keep a task for ``seconds`` from now; return False when it is another's already."""
        keys: RedisKeys = lease.handle
        return guarded(
            _ERRORS,
            "the lease can't be extended",
            lambda: bool(
                self._extend(keys=[keys.claims, keys.ends], args=[lease.tag, int(1000 * seconds)])
            ),
        )

    def acknowledge(self, lease: Lease) -> None:
        """Say that a task is done."""
        keys: RedisKeys = lease.handle
        names = [keys.claims, keys.ends, keys.deliveries]
        guarded(
            _ERRORS,
            "the task can't be acknowledged",
            lambda: self._acknowledge(keys=names, args=[lease.tag]),
        )

    def release(self, lease: Lease) -> None:
        """Put a task back at once, for any worker."""
        keys: RedisKeys = lease.handle
        names = [keys.waiting, keys.claims, keys.ends, keys.deliveries]
        guarded(
            _ERRORS,
            "the task can't be put back",
            lambda: self._release(keys=names, args=[lease.tag]),
        )

    def dead_letter(self, lease: Lease) -> None:
        """Move a task to the dead letters."""
        keys: RedisKeys = lease.handle
        names = [keys.dead, keys.claims, keys.ends]
        guarded(
            _ERRORS,
            "the task can't be moved to the dead letters",
            lambda: self._dead_letter(keys=names, args=[lease.tag]),
        )

    def restore_expired(self, queue: TaskQueue) -> int:
        """Put back tasks whose leases ended; return how many."""
        keys = RedisKeys(queue.name)
        names = [keys.waiting, keys.claims, keys.ends]
        return guarded(
            _ERRORS,
            "tasks can't be put back",
            lambda: int(self._restore(keys=names, args=[_AT_ONCE])),
        )

    def close(self) -> None:
        """Let go of all connections."""
        self._publisher.close()
        self._client.close()


def _mode(hello: Any) -> str:
    found = hello
    if isinstance(hello, list):  # RESP2 answers with names and values in turn
        found = dict(zip(hello[::2], hello[1::2], strict=True))
    mode = found.get(b"mode") or found.get("mode") or b""
    return mode.decode() if isinstance(mode, bytes) else str(mode)


def _task_id(raw: bytes) -> str:
    try:
        return task_id_of(json.loads(raw))
    except (ValueError, AttributeError):
        return ""
