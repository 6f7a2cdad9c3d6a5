"""What the cacher measures."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from components.domain import metrics
from services.core.workers import Target

_PREFIX = "llm_platform_cacher"
_TARGET = (metrics.NAMESPACE_LABEL, metrics.ENDPOINT_LABEL)


class Measures:
    """The cacher's metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.active = Gauge(f"{_PREFIX}_active", "Whether this one writes", registry=registry)
        self.endpoints = Gauge(f"{_PREFIX}_endpoints", "Endpoints in force", registry=registry)
        self.problems = Gauge(
            f"{_PREFIX}_problems", "Registrations not in force", registry=registry
        )
        self.passes = Counter(f"{_PREFIX}_passes", "Comparisons", ["result"], registry=registry)
        self._ready = Gauge(
            metrics.CACHER_READY_WORKERS, "Workers that take requests", _TARGET, registry=registry
        )
        self._outstanding = Gauge(
            metrics.CACHER_OUTSTANDING, "Tasks that wait or run", _TARGET, registry=registry
        )

    def ready_workers(self, counts: Mapping[Target, int]) -> None:
        """Tell how many workers of each endpoint take requests."""
        _replace(self._ready, counts)

    def outstanding(self, counts: Mapping[Target, int]) -> None:
        """Tell how many tasks each queue has; one that can't be asked isn't told of."""
        _replace(self._outstanding, counts)


def _replace(gauge: Gauge, counts: Mapping[Target, int]) -> None:
    gauge.clear()
    for target, count in counts.items():
        gauge.labels(*target).set(count)
