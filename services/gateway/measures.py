"""What the gateway measures."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from components.domain.metrics import (
    ENDPOINT_LABEL,
    GATEWAY_IN_FLIGHT,
    GATEWAY_WAITING,
    NAMESPACE_LABEL,
)
from services.core.metrics import SECONDS
from services.core.server import Lifecycle
from services.core.workers import Target

_PREFIX = "llm_platform_gateway"


class Measures:
    """The gateway's metrics; children are kept, since looking them up costs more than counting."""

    def __init__(self, registry: CollectorRegistry, lifecycle: Lifecycle) -> None:
        self._requests = Counter(
            f"{_PREFIX}_requests",
            "Requests by endpoint and status",
            ["endpoint", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            f"{_PREFIX}_request_seconds",
            "From a request's arrival to its answer's end",
            ["endpoint"],
            buckets=SECONDS,
            registry=registry,
        )
        self._first_byte = Histogram(
            f"{_PREFIX}_first_byte_seconds",
            "From a request's arrival to its answer's first byte",
            ["endpoint"],
            buckets=SECONDS,
            registry=registry,
        )
        self._retries = Counter(
            f"{_PREFIX}_retries",
            "Workers that refused a request",
            ["endpoint", "reason"],
            registry=registry,
        )
        self._broken = Counter(
            f"{_PREFIX}_failures",
            "Requests by what ended them",
            ["endpoint", "reason"],
            registry=registry,
        )
        self._held = Histogram(
            f"{_PREFIX}_hold_seconds",
            "How long requests were held that found no worker at once",
            ["endpoint"],
            buckets=SECONDS,
            registry=registry,
        )
        in_flight = Gauge(GATEWAY_IN_FLIGHT, "Requests being carried out", registry=registry)
        in_flight.set_function(lambda: lifecycle.in_flight)
        self._ready = Gauge(
            f"{_PREFIX}_ready_workers",
            "Workers that take requests, as this gateway sees them",
            ["endpoint"],
            registry=registry,
        )
        self._codes: dict[tuple[str, int], Counter] = {}
        self._histograms: dict[str, tuple[Histogram, Histogram]] = {}

    def request(
        self, endpoint: str, code: int, seconds: float, first_byte: float | None, error: str
    ) -> None:
        """Count one request; ``endpoint`` is empty when it named none that exists."""
        key = (endpoint, code)
        counter = self._codes.get(key)
        if counter is None:
            counter = self._codes[key] = self._requests.labels(endpoint, str(code))
        counter.inc()
        histograms = self._histograms.get(endpoint)
        if histograms is None:
            histograms = self._seconds.labels(endpoint), self._first_byte.labels(endpoint)
            self._histograms[endpoint] = histograms
        histograms[0].observe(seconds)
        if first_byte is not None:
            histograms[1].observe(first_byte)
        if error:
            self._broken.labels(endpoint, error).inc()

    def held(self, endpoint: str, seconds: float) -> None:
        """Tell how long a request was held in all."""
        self._held.labels(endpoint).observe(seconds)

    def retry(self, endpoint: str, reason: bytes) -> None:
        """Count a worker's refusal."""
        known = {b"full", b"draining", b"unready", b"unreachable"}
        name = reason.decode("latin-1") if reason in known else "other"
        self._retries.labels(endpoint, name).inc()

    def workers(self, endpoint: str, ready: int | None) -> None:
        """Tell how many workers take requests; None when the endpoint has no workers at all."""
        if ready is None:
            self._ready.remove(endpoint)
        else:
            self._ready.labels(endpoint).set(ready)


class Waiting(Collector):
    """The number of held requests of every known endpoint: 0 is a figure too, unlike none at all.

    Args:
        count: returns the number for each endpoint, by namespace and name.
    """

    def __init__(self, count: Callable[[], Mapping[Target, int]]) -> None:
        self._count = count

    def collect(self) -> Iterator[Metric]:
        """Yield the gauge as it is now."""
        gauge = GaugeMetricFamily(
            GATEWAY_WAITING,
            "Requests held because no worker takes them yet",
            labels=[NAMESPACE_LABEL, ENDPOINT_LABEL],
        )
        for place, count in self._count().items():
            gauge.add_metric(place, count)
        yield gauge
