"""Names of the series that scaling reads, and the windows over which it averages them.

What exports a series and what reads it import its name from here, so that they can't drift apart;
``metric_table`` says what each of them is.
"""

from collections.abc import Iterable

FORWARDER_IN_FLIGHT = "llm_platform_forwarder_in_flight"
GATEWAY_WAITING = "llm_platform_gateway_waiting"
GATEWAY_IN_FLIGHT = "llm_platform_gateway_in_flight"
CACHER_READY_WORKERS = "llm_platform_cacher_ready_workers"
CACHER_OUTSTANDING = "llm_platform_cacher_outstanding_tasks"
MESH_SECONDS = "istio_request_duration_milliseconds_sum"

HELD_REQUESTS = "llm_platform:held_requests"
OPEN_REQUESTS = "llm_platform:open_requests"
CONCURRENCY = "llm_platform:request_concurrency"
GATEWAY_OPEN_REQUESTS = "llm_platform:gateway_open_requests"
GATEWAY_CONCURRENCY = "llm_platform:gateway_concurrency"

CUSTOM_METRIC = "request-concurrency-average"
"""On an endpoint's Service, in the custom metrics API; choose the window with its selector."""
GATEWAY_CUSTOM_METRIC = "gateway-concurrency-average"
"""On the gateway's Service, in the custom metrics API."""

NAMESPACE_LABEL = "namespace"
ENDPOINT_LABEL = "endpoint"
SERVICE_LABEL = "service"
WINDOW_LABEL = "window"

SCRAPE_SECONDS = 5
"""How often every target is asked, unless said otherwise."""
WINDOWS = (20, 60, 120, 300)
"""Seconds over which concurrency is averaged; an endpoint's scaling names one of them."""
GATEWAY_WINDOW = 60
"""Seconds over which the gateway's own concurrency is averaged."""
SCRAPES_IN_WINDOW = 4
"""A window must hold this many scrapes, or a late one makes its average come and go."""


def concurrency_query(namespace: str, endpoint: str, window_seconds: int) -> str:
    """Return the query for an endpoint's concurrency; its answer is one sample or none."""
    return (
        f'{CONCURRENCY}{{{NAMESPACE_LABEL}="{namespace}",{ENDPOINT_LABEL}="{endpoint}",'
        f'{WINDOW_LABEL}="{window_seconds}"}}'
    )


def windows_for(scrape_seconds: int, wanted: Iterable[int] | None = None) -> tuple[int, ...]:
    """Return the windows to average over, each long enough for how often targets are asked.

    Args:
        scrape_seconds: How often every target is asked.
        wanted: The windows to use; those of ``WINDOWS`` that are long enough when left out, or
            the shortest that is when none of them is.

    Raises:
        ValueError: naming the window and the shortest that would do.
    """
    shortest = SCRAPES_IN_WINDOW * scrape_seconds
    if wanted is None:
        return tuple(window for window in WINDOWS if window >= shortest) or (shortest,)
    chosen = tuple(sorted(set(wanted)))
    for window in chosen:
        if window < shortest:
            raise ValueError(
                f"a window of {window} s holds fewer than {SCRAPES_IN_WINDOW} scrapes, one every "
                f"{scrape_seconds} s: make it at least {shortest} s, or scrape more often"
            )
    return chosen
