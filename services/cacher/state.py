"""Endpoints' state in Redis: it expires by itself, so a dead cacher's word doesn't last."""

import json

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from services.core import channel

from .records import Row

PREFIX = "llm-platform:endpoint-state:"


class State:
    """Writes what is true now, and tells the gateways when they should look again."""

    def __init__(
        self, redis: Redis, ttl_seconds: int, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._redis = redis
        self._ttl_seconds = ttl_seconds
        self._log = log

    async def publish(self, rows: dict[str, Row], changed: list[str]) -> bool:
        """Write all endpoints' state and the news of those changed; return whether it went."""
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for name, row in rows.items():
                    state = json.dumps({"ready_workers": row.ready_workers})
                    pipeline.set(PREFIX + name, state, ex=self._ttl_seconds)
                for name in set(changed) - rows.keys():
                    pipeline.delete(PREFIX + name)
                if changed:
                    pipeline.publish(channel.ENDPOINTS, json.dumps(changed))
                await pipeline.execute()
        except (RedisError, OSError, TimeoutError) as error:
            self._log.warning("redis is away", error=str(error))
            return False
        return True
