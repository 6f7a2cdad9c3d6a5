"""The recording rules that scaling reads: how many requests an endpoint has, whole or not at all.

A figure is only there when every part of it was seen: the cacher (which knows how many workers take
requests), at least that many forwarders, and every gateway. A part that is missing gives no sample,
and both autoscalers hold what they have when there is none. A sum over what happens to be visible
would look like an endpoint that has become idle.

Series of workers come from other people's pods. They are told apart by the labels that Prometheus
itself puts on them (``job``, ``namespace``, ``endpoint``, ``pod``), never by what a pod says.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from .metrics import (
    CACHER_READY_WORKERS,
    CONCURRENCY,
    FORWARDER_IN_FLIGHT,
    GATEWAY_CONCURRENCY,
    GATEWAY_IN_FLIGHT,
    GATEWAY_OPEN_REQUESTS,
    GATEWAY_WAITING,
    GATEWAY_WINDOW,
    HELD_REQUESTS,
    MESH_SECONDS,
    OPEN_REQUESTS,
    SCRAPES_IN_WINDOW,
    WINDOW_LABEL,
)

PLATFORM_JOB = "platform"
WORKERS_JOB = "workers"
MESH_JOB = "mesh"
GATEWAY = "gateway"
"""The value of ``service`` on what gateways answer."""

GROUP = "llm-platform-scaling"
_PLACE = "namespace, endpoint"
_MEMORY = "1m"
"""How long a gateway that can't be asked any more counts as missing, not as gone."""

Rule = dict[str, Any]


class MeshKind(Enum):
    """What carries requests between pods."""

    NONE = "none"
    ISTIO = "istio"


def rule_groups(*, mesh: MeshKind, scrape_seconds: int, windows: Sequence[int]) -> dict[str, Any]:
    """Return the content of a rule file for Prometheus.

    Args:
        mesh: Where concurrency is measured.
        scrape_seconds: How often targets are asked, and so how often rules are reckoned.
        windows: The windows to average over, from ``windows_for``.
    """
    # One group: its rules are reckoned one after the other, so each sees those above it.
    rules = [
        _rule(HELD_REQUESTS, _held()),
        _rule(OPEN_REQUESTS, _open()),
        *(_concurrency(mesh, window) for window in windows),
        _rule(GATEWAY_OPEN_REQUESTS, _gateway_open()),
        _rule(
            GATEWAY_CONCURRENCY,
            _average(
                GATEWAY_OPEN_REQUESTS, max(GATEWAY_WINDOW, SCRAPES_IN_WINDOW * scrape_seconds)
            ),
        ),
    ]
    return {"groups": [{"name": GROUP, "interval": f"{scrape_seconds}s", "rules": rules}]}


def _rule(name: str, expression: str, **labels: str) -> Rule:
    rule: Rule = {"record": name, "expr": expression}
    return {**rule, "labels": labels} if labels else rule


def _ready() -> str:
    return f'max by ({_PLACE}) ({CACHER_READY_WORKERS}{{job="{PLATFORM_JOB}"}})'


def _or_zero(expression: str) -> str:
    """Return 0 for an endpoint that the cacher knows and the expression doesn't."""
    return f"({expression} or 0 * {_ready()})"


def _held() -> str:
    """Requests at gateways; a gateway that holds none of an endpoint's may say nothing of it."""
    waiting = f'sum by ({_PLACE}) ({GATEWAY_WAITING}{{job="{PLATFORM_JOB}"}})'
    every_gateway = f"(max({_gateway_up()}) == 1 unless on () {_lost_gateway()})"
    return f"{_or_zero(waiting)} and on ({_PLACE}) {_ready()} and on () {every_gateway}"


def _gateway_up() -> str:
    return f'up{{job="{PLATFORM_JOB}", service="{GATEWAY}"}}'


def _lost_gateway() -> str:
    """One that answered a moment ago and doesn't now; one that never did holds no request."""
    return f"({_gateway_up()} == 0 and max_over_time({_gateway_up()}[{_MEMORY}]) == 1)"


def _open() -> str:
    series = f'{FORWARDER_IN_FLIGHT}{{job="{WORKERS_JOB}"}}'
    at_workers = f"sum by ({_PLACE}) ({series})"
    # A pod counts once, however many series it makes up.
    seen = f"count by ({_PLACE}) (count by ({_PLACE}, pod) ({series}))"
    return (
        f"({_or_zero(at_workers)} + on ({_PLACE}) {HELD_REQUESTS}) "
        f"and on ({_PLACE}) ({_or_zero(seen)} >= on ({_PLACE}) {_ready()})"
    )


def _average(series: str, window: int) -> str:
    """Average over the moments at which the figure was whole, if it is whole now.

    Averaging the sum and not each worker's own series keeps a rollout flat: a worker that went and
    the one that took its requests over are never counted together.
    """
    return f"avg_over_time({series}[{window}s]) and {series}"


def _concurrency(mesh: MeshKind, window: int) -> Rule:
    expression = _average(OPEN_REQUESTS, window)
    if mesh is MeshKind.ISTIO:
        expression = _mesh_concurrency(window)
    return _rule(CONCURRENCY, expression, **{WINDOW_LABEL: str(window)})


def _mesh_concurrency(window: int) -> str:
    """Seconds of requests per second, by Little's law, as the workers' own proxies count them.

    ``reporter`` keeps out the gateway's proxy, which counts the same requests. Proxies count a
    request when it ends, so a long stream is invisible while it runs: what the forwarders have open
    is the least that the figure may be.
    """
    rate = (
        f"sum by ({_PLACE}) (rate("
        f'{MESH_SECONDS}{{job="{MESH_JOB}", reporter="destination"}}[{window}s])) / 1000'
    )
    held = f"avg_over_time({HELD_REQUESTS}[{window}s])"
    proxies = f'sum by ({_PLACE}) (up{{job="{MESH_JOB}"}})'
    return (
        f"max by ({_PLACE}) ("
        f'label_replace({rate} + on ({_PLACE}) {held}, "source", "mesh", "", "") or '
        f'label_replace(avg_over_time({OPEN_REQUESTS}[{window}s]), "source", "workers", "", "")'
        f") and on ({_PLACE}) {OPEN_REQUESTS} "
        f"and on ({_PLACE}) ({_or_zero(proxies)} >= on ({_PLACE}) {_ready()})"
    )


def _gateway_open() -> str:
    total = f'sum by (namespace, service) ({GATEWAY_IN_FLIGHT}{{job="{PLATFORM_JOB}"}})'
    return f"{total} unless on () {_lost_gateway()}"
