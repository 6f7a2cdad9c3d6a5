"""Prometheus metrics: one registry for each process, handed to whoever measures."""

from prometheus_client import (
    CollectorRegistry,
    generate_latest,
    platform_collector,
    process_collector,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Buckets from a cache hit to the longest answer."""


def new_registry() -> CollectorRegistry:
    """Make a registry with the figures of the process itself."""
    registry = CollectorRegistry()
    process_collector.ProcessCollector(registry=registry)
    platform_collector.PlatformCollector(registry=registry)
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """Return the metrics in Prometheus' text form."""
    return generate_latest(registry)
