"""Progress for people: one line when something starts, and a sign of life until it ends."""

import sys
import time
from collections.abc import Callable

Report = Callable[[str], None]
"""Takes one line of progress."""

SIGN_OF_LIFE_SECONDS = 12.0


def to_terminal() -> Report:
    """Return a report that prints each line with the seconds since now to stderr."""
    started = time.monotonic()

    def report(line: str) -> None:
        print(f"[{time.monotonic() - started:5.0f} s] {line}", file=sys.stderr, flush=True)

    return report


class Heartbeat:
    """Says that a long step is still going, but not more often than is bearable.

    Args:
        report: Where the lines go.
        title: What is being done.
    """

    def __init__(self, report: Report, title: str) -> None:
        self._report = report
        self._title = title
        self._started = self._last = time.monotonic()

    def beat(self, detail: str = "") -> None:
        """Report the title, the elapsed seconds and `detail`, if it is time for it."""
        now = time.monotonic()
        if now - self._last >= SIGN_OF_LIFE_SECONDS:
            self._last = now
            self._report(f"{self._title}: {self.elapsed} s{', ' + detail if detail else ''}")

    @property
    def elapsed(self) -> int:
        """Whole seconds since the step started."""
        return int(time.monotonic() - self._started)
