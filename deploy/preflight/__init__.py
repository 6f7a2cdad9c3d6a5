"""What must be known before a plan: credentials, quotas, instances by zone, roles, reach."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Timer

from lab.progress import Report

from . import (
    credentials,
    domain,
    offerings,
    pieces,
    processors,
    reach,
    reservations,
    roles,
    tools,
    version,
)
from .aws import Aws, Check, rows_of
from .plan import PreflightPlan, WantedNodes
from .reading import read
from .report import Result, Row, cant_tell, exit_code, table

__all__ = [
    "Aws",
    "PreflightPlan",
    "Result",
    "Row",
    "WantedNodes",
    "announced",
    "exit_code",
    "read",
    "run",
    "table",
]

SILENCE_SECONDS = 2.0
"""How long a check may take before it is said that it still runs."""


def run(plan: PreflightPlan, aws: Aws, report: Report) -> list[Row]:
    """Check everything that is planned, and return what was found.

    Args:
        plan: What is wanted.
        aws: Who is asked.
        report: Takes a line of progress.
    """
    rows = list(tools.check())
    (who,) = _asked(aws, report, "credentials", lambda: credentials.check(plan, aws))
    if who.result is not Result.OK:
        # Whatever the reason, nothing can be brought up from here.
        return [*rows, replace(who, result=Result.WOULD_FAIL), _ALL_ELSE]
    rows.append(who)
    cluster: list[str | None] = [None]

    def find_cluster() -> Iterable[Row]:
        cluster[0] = reach.own_cluster(plan, aws)
        return reach.check(plan, aws, cluster[0])

    checks: tuple[tuple[str, Check], ...] = (
        ("cluster", find_cluster),
        ("Kubernetes version", lambda: version.check(plan, aws)),
        ("zones", lambda: offerings.check_zones(plan, aws)),
        ("instance types by zone", lambda: offerings.check_types(plan, aws)),
        ("vCPU quotas", lambda: processors.check(plan, aws, cluster[0])),
        ("other quotas", lambda: pieces.check(plan, aws, cluster[0])),
        ("reserved capacity", lambda: reservations.check(plan, aws)),
        ("service-linked roles", lambda: roles.check(plan, aws)),
        ("domain", lambda: domain.check(plan, aws)),
    )
    for title, ask in checks:
        rows += _asked(aws, report, title, ask)
    return rows


_ALL_ELSE = cant_tell("all else", "nobody may look yet", "mend the credentials first")


def _asked(aws: Aws, report: Report, title: str, ask: Check) -> list[Row]:
    with announced(report, title):
        return rows_of(aws, title, ask)


@contextmanager
def announced(report: Report, title: str, after: float = SILENCE_SECONDS) -> Iterator[None]:
    """Say that something still runs, once it has been silent for a while."""
    timer = Timer(after, report, [f"looking at {title}"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
