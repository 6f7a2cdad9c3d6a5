"""What the forwarder measures; the autoscaler reads the gauge of requests in flight."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from components.domain.metrics import FORWARDER_IN_FLIGHT
from services.core.metrics import SECONDS

_PREFIX = "llm_platform_forwarder"


class Measures:
    """The forwarder's metrics, each with the endpoint's name."""

    def __init__(self, registry: CollectorRegistry, endpoint: str, limit: int) -> None:
        self.in_flight = Gauge(
            FORWARDER_IN_FLIGHT, "Open requests", ["endpoint"], registry=registry
        ).labels(endpoint)
        Gauge(
            f"{_PREFIX}_limit", "Open requests that are allowed", ["endpoint"], registry=registry
        ).labels(endpoint).set(limit)
        self._requests = Counter(
            f"{_PREFIX}_requests", "Requests by status", ["endpoint", "code"], registry=registry
        )
        self._rejected = Counter(
            f"{_PREFIX}_rejected",
            "Requests that didn't reach the model; full ones are load too",
            ["endpoint", "reason"],
            registry=registry,
        )
        for reason in ("full", "draining", "unready", "unreachable"):
            self._rejected.labels(endpoint, reason)
        self._seconds = Histogram(
            f"{_PREFIX}_request_seconds",
            "From a request's arrival to its answer's end",
            ["endpoint"],
            buckets=SECONDS,
            registry=registry,
        ).labels(endpoint)
        self._first_byte = Histogram(
            f"{_PREFIX}_first_byte_seconds",
            "From a request's arrival to its answer's first byte",
            ["endpoint"],
            buckets=SECONDS,
            registry=registry,
        ).labels(endpoint)
        self._hooks = Counter(
            f"{_PREFIX}_hooks",
            "Runs of hooks by what became of them",
            ["endpoint", "hook", "outcome"],
            registry=registry,
        )
        self._tasks = Counter(
            f"{_PREFIX}_tasks",
            "Deliveries of tasks by what became of them",
            ["endpoint", "outcome"],
            registry=registry,
        )
        self._endpoint = endpoint

    def request(self, code: int, seconds: float, first_byte: float | None) -> None:
        """Count one request that was taken."""
        self._requests.labels(self._endpoint, str(code)).inc()
        self._seconds.observe(seconds)
        if first_byte is not None:
            self._first_byte.observe(first_byte)

    def rejected(self, code: int, reason: str) -> None:
        """Count one request that was refused."""
        self._requests.labels(self._endpoint, str(code)).inc()
        self._rejected.labels(self._endpoint, reason).inc()

    def hook(self, kind: str, outcome: str) -> None:
        """Count one run of a hook."""
        self._hooks.labels(self._endpoint, kind, outcome).inc()

    def task(self, outcome: str) -> None:
        """Count one delivery of a task."""
        self._tasks.labels(self._endpoint, outcome).inc()
