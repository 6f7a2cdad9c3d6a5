"""News between services over Redis: a hint to look again, never the truth itself."""

import asyncio
from collections.abc import Callable

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from .backoff import Backoff

ENDPOINTS = "llm-platform:endpoints"
KEYS = "llm-platform:keys"

_POLL_SECONDS = 5


def connect(url: str) -> Redis:
    """Return a client for a Redis URL; it connects at the first use."""
    return Redis.from_url(
        url,
        socket_connect_timeout=3,
        socket_timeout=10,
        socket_keepalive=True,
        health_check_interval=10,
    )


async def listen(
    redis: Redis,
    channels: list[str],
    on_news: Callable[[], None],
    log: structlog.typing.FilteringBoundLogger,
) -> None:
    """Call ``on_news`` at every message, and after each reconnect since some may be missed.

    Runs until cancelled; an outage is waited out.
    """
    backoff = Backoff()
    while True:
        try:
            async with redis.pubsub(ignore_subscribe_messages=True) as subscription:
                await subscription.subscribe(*channels)
                on_news()
                backoff.reset()
                while True:
                    if await subscription.get_message(timeout=_POLL_SECONDS) is not None:
                        on_news()
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("redis is away", error=str(error))
            await backoff.wait()
        except asyncio.CancelledError:
            raise
