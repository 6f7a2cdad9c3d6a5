"""A bill as people read it, and as a stack publishes it."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TypedDict, overload

from .price import Bill, Line
from .price_list import HOURS_PER_MONTH, Price

_SHORT = {"hour": "h", "month": "month", "GiB and month": "GiB·month"}


class LineOutput(TypedDict):
    """A line of a bill as an output."""

    item: str
    idle: float
    maximum: float
    usd: float | None
    per: str | None
    idle_per_month: float | None
    maximum_per_month: float | None
    by_use: bool
    note: str
    region: str | None
    source: str | None
    read: str | None


class BillOutput(TypedDict):
    """A bill as an output: plain values only, money in US dollars and cents."""

    environment: str
    region: str
    hours_per_month: int
    idle_per_month: float
    maximum_per_month: float
    without_price: list[str]
    prices_of_regions: list[str]
    lines: list[LineOutput]


def as_output(bill: Bill) -> BillOutput:
    """Return the bill as plain values."""
    return {
        "environment": bill.environment,
        "region": bill.region,
        "hours_per_month": HOURS_PER_MONTH,
        "idle_per_month": _cents(bill.idle),
        "maximum_per_month": _cents(bill.maximum),
        "without_price": list(bill.without_price),
        "prices_of_regions": sorted({price.region for price in bill.prices}),
        "lines": [_line_output(line) for line in bill.lines],
    }


def as_text(bill: Bill) -> str:
    """Return the bill as a table, with what its sums lack below it."""
    rows = [
        ["", "idle", "max", "each", "idle/month", "max/month"],
        *[_row(line) for line in bill.lines if not line.by_use and line.price],
        ["together", "", "", "", _money(bill.idle), _money(bill.maximum)],
    ]
    where = f"{bill.environment} in {bill.region}"
    head = f"Price of {where}: US dollars, {HOURS_PER_MONTH} hours a month"
    return "\n".join([head, *_aligned(rows), *_notes(bill)])


def _row(line: Line) -> list[str]:
    price = line.price
    each = f"{price.usd.normalize():f}/{_SHORT[price.per]}" if price else ""
    return [
        line.item,
        f"{line.idle.normalize():f}",
        f"{line.maximum.normalize():f}",
        each,
        _money(line.idle_per_month),
        _money(line.maximum_per_month),
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *rest = row
        cells = [text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)]
        yield "  " + "  ".join([first.ljust(widths[0]), *cells]).rstrip()


def _notes(bill: Bill) -> Iterator[str]:
    for line in bill.lines:
        if line.note and line.price and not line.by_use:
            yield f"  {line.item}: {line.note}"
    used = [line for line in bill.lines if line.by_use]
    if used:
        yield "  By use, in no sum:"
        yield from (f"    {_by_use(line)}" for line in used)
    for line in bill.lines:
        if line.price is None and not line.by_use and line.maximum:
            note = f" ({line.note})" if line.note else ""
            yield f"  In no sum: no price known for {line.item} in {bill.region}{note}"
    yield f"  {_origin(bill)}"


def _by_use(line: Line) -> str:
    if line.price is None:
        return f"{line.item} (no price known)"
    note = f", {line.note}" if line.note else ""
    return f"{line.item} ({line.price.usd.normalize():f} per {line.price.per}{note})"


def _origin(bill: Bill) -> str:
    dates = sorted(price.read for price in bill.prices)
    if not dates:
        return "No price is known of anything here"
    when = f"On demand, without taxes and data transfer; prices published {dates[0]} to {dates[-1]}"
    if not bill.elsewhere:
        return when
    return f"{when}, {', '.join(bill.elsewhere)}'s where {bill.region}'s aren't known"


def _line_output(line: Line) -> LineOutput:
    price: Price | None = line.price
    return {
        "item": line.item,
        "idle": float(line.idle),
        "maximum": float(line.maximum),
        "usd": float(price.usd) if price else None,
        "per": price.per if price else None,
        "idle_per_month": _cents(line.idle_per_month),
        "maximum_per_month": _cents(line.maximum_per_month),
        "by_use": line.by_use,
        "note": line.note,
        "region": price.region if price else None,
        "source": price.source if price else None,
        "read": price.read.isoformat() if price else None,
    }


@overload
def _cents(amount: Decimal) -> float: ...
@overload
def _cents(amount: Decimal | None) -> float | None: ...
def _cents(amount: Decimal | None) -> float | None:
    return None if amount is None else float(round(amount, 2))


def _money(amount: Decimal | None) -> str:
    return "" if amount is None else f"{amount:,.2f}"
