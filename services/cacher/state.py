"""Endpoints' state in Redis: it expires by itself, so a dead cacher's word doesn't last."""

import json
import time

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from services.core import channel

PREFIX = "llm-platform:endpoint-state:"


class State:
    """Writes what is true now, and tells the gateways when they should look again."""

    def __init__(
        self, redis: Redis, ttl_seconds: int, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._redis = redis
        self._ttl_seconds = ttl_seconds
        self._log = log
        self._written_at = time.monotonic()

    @property
    def fresh(self) -> bool:
        """Whether what was written last hasn't expired, so that readers find it."""
        return time.monotonic() - self._written_at < self._ttl_seconds

    def begin(self) -> None:
        """Count from now, as the one that has to write."""
        self._written_at = time.monotonic()

    async def publish(self, in_force: dict[str, int], changed: list[str]) -> bool:
        """Write the ready workers of all endpoints, and the news of those changed.

        Returns whether it went.
        """
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                pipeline.ping()  # an empty pipeline isn't sent, and would hide an outage
                for name, ready_workers in in_force.items():
                    state = json.dumps({"ready_workers": ready_workers})
                    pipeline.set(PREFIX + name, state, ex=self._ttl_seconds)
                for name in set(changed) - in_force.keys():
                    pipeline.delete(PREFIX + name)
                if changed:
                    pipeline.publish(channel.ENDPOINTS, json.dumps(changed))
                await pipeline.execute()
        except (RedisError, OSError, TimeoutError) as error:
            self._log.warning("redis is away", error=str(error))
            return False
        self._written_at = time.monotonic()
        return True
