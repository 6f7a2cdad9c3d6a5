"""Telling how far a transfer is, now and then, from whichever thread moves bytes."""

import threading
import time

import structlog


class Progress:
    """Counts bytes and writes a line every few seconds."""

    def __init__(
        self,
        doing: str,
        total_bytes: int,
        every_seconds: float,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._doing = doing
        self._total = total_bytes
        self._every = every_seconds
        self._log = log
        self._lock = threading.Lock()
        self._done = 0
        self._started = self._said = time.monotonic()

    def add(self, count: int) -> None:
        """Count bytes that were moved."""
        with self._lock:
            self._done += count
            now = time.monotonic()
            if now - self._said < self._every:
                return
            self._said = now
            done = self._done
        self._say(done, now)

    def _say(self, done: int, now: float) -> None:
        seconds = max(now - self._started, 1e-6)
        self._log.info(
            self._doing,
            percent=round(100 * done / self._total) if self._total else 100,
            done_bytes=done,
            total_bytes=self._total,
            mib_per_second=round(done / seconds / 2**20, 1),
        )

    def finish(self) -> None:
        """Write the last line."""
        self._say(self._done, time.monotonic())
