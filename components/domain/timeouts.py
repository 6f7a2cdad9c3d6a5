"""Every time limit of an endpoint, derived from the one that people set."""

from dataclasses import dataclass

LINGER_SECONDS = 5
"""How long a stopping process still accepts what routing sends to it."""


@dataclass(frozen=True)
class Timeouts:
    """Time limits that follow from how long one request may take."""

    request_seconds: int
    """The longest that a request or a task may take, its last byte included."""

    @property
    def drain_seconds(self) -> int:
        """How long a stopping worker waits for open requests, the late ones included."""
        return self.request_seconds + 2 * LINGER_SECONDS

    @property
    def grace_period_seconds(self) -> int:
        """How long Kubernetes waits for the pod: longer than the drain, so it is never cut."""
        return self.request_seconds + 30

    @property
    def stop_seconds(self) -> int:
        """How long a model has between the signal to stop and its end, once the drain is over."""
        return self.grace_period_seconds - self.drain_seconds - LINGER_SECONDS
