"""The broker of tasks for asynchronous code: its library blocks, so it has threads of its own."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .broker.base import Broker, DeadLetter, PublishedTask, TaskQueue
from .broker.make import make_broker
from .broker.settings import RedisSettings, ServiceBusSettings, SqsSettings

_Result = TypeVar("_Result")


class TaskBroker:
    """Calls a broker from threads; every method raises ``BrokerAway`` when it is away.

    Args:
        settings: which broker, and where.
        threads: how many calls may be open at once.
    """

    def __init__(
        self, settings: RedisSettings | SqsSettings | ServiceBusSettings, *, threads: int = 8
    ) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="broker")
        self._lock = threading.Lock()
        self._broker: Broker | None = None

    async def load(self) -> None:
        """Load the broker's library, so that the first call needn't wait for it."""
        await self._call(lambda _broker: None)

    async def publish(self, queue: TaskQueue, task: PublishedTask) -> None:
        """Send a task."""
        await self._call(lambda broker: broker.publish(queue, task))

    async def outstanding(self, queue: TaskQueue) -> int:
        """Return how many tasks wait or are worked on."""
        return await self._call(lambda broker: broker.outstanding(queue))

    async def dead_letters(self, queue: TaskQueue, limit: int) -> list[DeadLetter]:
        """Return tasks that were delivered too often, the oldest first."""
        return await self._call(lambda broker: broker.dead_letters(queue, limit))

    async def redrive(
        self, queue: TaskQueue, task_ids: Sequence[str], expires_at: float
    ) -> list[str]:
        """Put dead letters back to be run until then; return the ids that were there."""
        return await self._call(lambda broker: broker.redrive(queue, task_ids, expires_at))

    def close(self) -> None:
        """Let go of all connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._broker is not None:
            self._broker.close()

    async def _call(self, work: Callable[[Broker], _Result]) -> _Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(self._made()))

    def _made(self) -> Broker:
        with self._lock:
            if self._broker is None:
                self._broker = make_broker(self._settings)
            return self._broker
