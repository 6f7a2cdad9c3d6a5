"""Waiting longer after each failure, with a random part so that replicas don't move in step."""

import asyncio
import random


class Backoff:
    """Delays that double from ``first_seconds`` up to ``limit_seconds``."""

    def __init__(self, first_seconds: float = 0.2, limit_seconds: float = 10) -> None:
        self._first = first_seconds
        self._limit = limit_seconds
        self._next = first_seconds

    async def wait(self) -> None:
        """Sleep for the next delay."""
        delay, self._next = self._next, min(self._next * 2, self._limit)
        await asyncio.sleep(delay * random.uniform(0.7, 1.0))  # noqa: S311

    def reset(self) -> None:
        """Start again with the first delay, after a success."""
        self._next = self._first
