"""Every metric that scaling, alerts, dashboards and the planner read: its name, labels and unit.

``docs/metrics.md`` shows this table, and a test compares it with what the services answer.
"""

from dataclasses import dataclass
from enum import Enum

from .metrics import (
    CACHER_OUTSTANDING,
    CACHER_READY_WORKERS,
    CONCURRENCY,
    ENDPOINT_LABEL,
    FORWARDER_IN_FLIGHT,
    GATEWAY_CONCURRENCY,
    GATEWAY_IN_FLIGHT,
    GATEWAY_OPEN_REQUESTS,
    GATEWAY_WAITING,
    HELD_REQUESTS,
    NAMESPACE_LABEL,
    OPEN_REQUESTS,
    SERVICE_LABEL,
    WINDOW_LABEL,
)


class Kind(Enum):
    """What a metric is to Prometheus."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Reader(Enum):
    """Who depends on a metric's name, labels and unit."""

    SCALING = "scaling"
    ALERTS = "alerts"
    DASHBOARDS = "dashboards"
    PLANNER = "planner"


@dataclass(frozen=True)
class Metric:
    """One metric as its exporter answers it; Prometheus adds the labels of the pod it asked."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    unit: str
    exporter: str
    meaning: str
    readers: tuple[Reader, ...]


_S, _A, _D, _P = Reader.SCALING, Reader.ALERTS, Reader.DASHBOARDS, Reader.PLANNER
_GAUGE, _COUNTER, _HISTOGRAM = Kind.GAUGE, Kind.COUNTER, Kind.HISTOGRAM
_PLACE = (NAMESPACE_LABEL, ENDPOINT_LABEL)
_ENDPOINT = (ENDPOINT_LABEL,)
_FORWARDER, _GATEWAY, _CACHER = "forwarder", "gateway", "cacher"

EXPORTED = (
    Metric(
        FORWARDER_IN_FLIGHT,
        _GAUGE,
        _ENDPOINT,
        "requests",
        _FORWARDER,
        "Open requests of this worker; a stream is open until its last byte",
        (_S, _D, _P),
    ),
    Metric(
        "llm_platform_forwarder_limit",
        _GAUGE,
        _ENDPOINT,
        "requests",
        _FORWARDER,
        "Open requests at which this worker answers 429",
        (_D,),
    ),
    Metric(
        "llm_platform_forwarder_requests_total",
        _COUNTER,
        (ENDPOINT_LABEL, "code"),
        "requests",
        _FORWARDER,
        "Requests by the status that they were answered with",
        (_A, _D, _P),
    ),
    Metric(
        "llm_platform_forwarder_rejected_total",
        _COUNTER,
        (ENDPOINT_LABEL, "reason"),
        "requests",
        _FORWARDER,
        "Requests that didn't reach the model: full, draining, unready, unreachable",
        (_A, _D),
    ),
    Metric(
        "llm_platform_forwarder_request_seconds",
        _HISTOGRAM,
        _ENDPOINT,
        "seconds",
        _FORWARDER,
        "From a request's arrival to its answer's last byte",
        (_D, _P),
    ),
    Metric(
        "llm_platform_forwarder_first_byte_seconds",
        _HISTOGRAM,
        _ENDPOINT,
        "seconds",
        _FORWARDER,
        "From a request's arrival to its answer's first byte",
        (_A, _D, _P),
    ),
    Metric(
        "llm_platform_forwarder_hooks_total",
        _COUNTER,
        (ENDPOINT_LABEL, "hook", "outcome"),
        "runs",
        _FORWARDER,
        "Runs of hooks by what became of them",
        (_A, _D),
    ),
    Metric(
        "llm_platform_forwarder_tasks_total",
        _COUNTER,
        (ENDPOINT_LABEL, "outcome"),
        "deliveries",
        _FORWARDER,
        "Deliveries of an ASYNC endpoint's tasks by what became of them",
        (_A, _D, _P),
    ),
    Metric(
        GATEWAY_WAITING,
        _GAUGE,
        _PLACE,
        "requests",
        _GATEWAY,
        "Requests that this gateway holds because no worker takes them yet",
        (_S, _A, _D),
    ),
    Metric(
        GATEWAY_IN_FLIGHT,
        _GAUGE,
        (),
        "requests",
        _GATEWAY,
        "Requests that this gateway carries out, those that it holds too",
        (_S, _D),
    ),
    Metric(
        "llm_platform_gateway_requests_total",
        _COUNTER,
        (ENDPOINT_LABEL, "code"),
        "requests",
        _GATEWAY,
        "Requests by the status that they were answered with; no endpoint when none was named",
        (_A, _D, _P),
    ),
    Metric(
        "llm_platform_gateway_request_seconds",
        _HISTOGRAM,
        _ENDPOINT,
        "seconds",
        _GATEWAY,
        "From a request's arrival to its answer's last byte",
        (_A, _D),
    ),
    Metric(
        "llm_platform_gateway_first_byte_seconds",
        _HISTOGRAM,
        _ENDPOINT,
        "seconds",
        _GATEWAY,
        "From a request's arrival to its answer's first byte",
        (_A, _D),
    ),
    Metric(
        "llm_platform_gateway_hold_seconds",
        _HISTOGRAM,
        _ENDPOINT,
        "seconds",
        _GATEWAY,
        "How long requests were held that found no worker at once; cold starts as callers see them",
        (_A, _D, _P),
    ),
    Metric(
        "llm_platform_gateway_retries_total",
        _COUNTER,
        (ENDPOINT_LABEL, "reason"),
        "requests",
        _GATEWAY,
        "Times that a worker refused a request, which then went to another",
        (_A, _D),
    ),
    Metric(
        "llm_platform_gateway_failures_total",
        _COUNTER,
        (ENDPOINT_LABEL, "reason"),
        "requests",
        _GATEWAY,
        "Requests by what ended them before their answer was whole",
        (_A, _D),
    ),
    Metric(
        "llm_platform_gateway_ready_workers",
        _GAUGE,
        _ENDPOINT,
        "workers",
        _GATEWAY,
        "Workers that take requests, as this gateway sees them",
        (_D,),
    ),
    Metric(
        CACHER_READY_WORKERS,
        _GAUGE,
        _PLACE,
        "workers",
        _CACHER,
        "Workers that take requests: how many forwarders must have been asked for a whole picture",
        (_S, _A, _D),
    ),
    Metric(
        CACHER_OUTSTANDING,
        _GAUGE,
        _PLACE,
        "tasks",
        _CACHER,
        "Tasks of an ASYNC endpoint that wait or run",
        (_A, _D, _P),
    ),
    Metric(
        "llm_platform_cacher_active",
        _GAUGE,
        (),
        "1 or 0",
        _CACHER,
        "Whether this cacher is the one that writes",
        (_A, _D),
    ),
    Metric(
        "llm_platform_cacher_endpoints",
        _GAUGE,
        (),
        "endpoints",
        _CACHER,
        "Endpoints in force",
        (_D,),
    ),
    Metric(
        "llm_platform_cacher_problems",
        _GAUGE,
        (),
        "registrations",
        _CACHER,
        "Registrations that aren't in force; each says why in its condition",
        (_A, _D),
    ),
    Metric(
        "llm_platform_cacher_passes_total",
        _COUNTER,
        ("result",),
        "comparisons",
        _CACHER,
        "Comparisons of what is declared with what is recorded",
        (_A,),
    ),
)
"""What the platform's own processes answer at ``/metrics``."""

RECORDED = (
    Metric(
        HELD_REQUESTS,
        _GAUGE,
        _PLACE,
        "requests",
        "recording rule",
        "Requests that all gateways hold for an endpoint now; absent when one of them is unseen",
        (_D,),
    ),
    Metric(
        OPEN_REQUESTS,
        _GAUGE,
        _PLACE,
        "requests",
        "recording rule",
        "Requests open at the workers and held at the gateways now; absent when a part is unseen",
        (_D,),
    ),
    Metric(
        CONCURRENCY,
        _GAUGE,
        (*_PLACE, WINDOW_LABEL),
        "requests",
        "recording rule",
        "The same, averaged over the window's seconds; what endpoints scale on",
        (_S, _A, _D, _P),
    ),
    Metric(
        GATEWAY_OPEN_REQUESTS,
        _GAUGE,
        (NAMESPACE_LABEL, SERVICE_LABEL),
        "requests",
        "recording rule",
        "Requests that all gateways carry out now; absent when one of them is unseen",
        (_D,),
    ),
    Metric(
        GATEWAY_CONCURRENCY,
        _GAUGE,
        (NAMESPACE_LABEL, SERVICE_LABEL),
        "requests",
        "recording rule",
        "The same, averaged over 60 seconds; what the gateway scales on",
        (_S, _A, _D),
    ),
)
"""What Prometheus reckons from it."""


def exported_by(service: str) -> dict[str, Metric]:
    """Return what one of the platform's services answers at ``/metrics``, by name."""
    return {metric.name: metric for metric in EXPORTED if metric.exporter == service}
