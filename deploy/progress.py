"""One line per step while it runs and when it ended, so that nothing is silent for long."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_HEARTBEAT_SECONDS = 15.0


class Progress:
    """Prints steps to a stream; a long step says every few seconds that it is still at work.

    Args:
        stream: Where the lines go; default standard error, so that answers stay alone on standard
            output.
        heartbeat_seconds: Time between two signs of life of a step, default 15.
    """

    def __init__(
        self, stream: TextIO | None = None, heartbeat_seconds: float = _HEARTBEAT_SECONDS
    ) -> None:
        self._stream = stream or sys.stderr
        self._heartbeat_seconds = heartbeat_seconds
        self._detail = ""

    def say(self, line: str) -> None:
        """Print one line."""
        print(line, file=self._stream, flush=True)

    def detail(self, text: str) -> None:
        """Set what the running step is doing just now, shown with its next sign of life."""
        self._detail = text

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce ``title``, give signs of life while the block runs, and say how long it took."""
        started, done = time.monotonic(), threading.Event()
        self._detail = ""
        self.say(f"==> {title}")
        beat = threading.Thread(target=self._beat, args=(title, started, done), daemon=True)
        beat.start()
        try:
            yield
        except BaseException:
            self.say(f"!!! {title}: failed after {time.monotonic() - started:.0f} s")
            raise
        finally:
            done.set()
            beat.join()
        elapsed = time.monotonic() - started
        if elapsed >= 1:
            self.say(f"    done in {elapsed:.0f} s")

    def _beat(self, title: str, started: float, done: threading.Event) -> None:
        while not done.wait(self._heartbeat_seconds):
            detail = f": {self._detail}" if self._detail else ""
            self.say(f"    ... {title}, {time.monotonic() - started:.0f} s{detail}")
