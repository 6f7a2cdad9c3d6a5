"""The findings of a preflight: rows, and the table that people read."""

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

_WIDEST = 120


class Result(StrEnum):
    """What a check found."""

    OK = "ok"
    WOULD_FAIL = "would fail"
    CANT_TELL = "can't tell"


@dataclass(frozen=True)
class Row:
    """One finding.

    Args:
        check: What was looked at.
        result: What came of it.
        found: What is there, in words.
        todo: What to do about it; nothing where all is well.
    """

    check: str
    result: Result
    found: str = ""
    todo: str = ""


def ok(check: str, found: str = "") -> Row:
    """All is well."""
    return Row(check, Result.OK, found)


def would_fail(check: str, found: str, todo: str) -> Row:
    """What is planned would fail."""
    return Row(check, Result.WOULD_FAIL, found, todo)


def cant_tell(check: str, found: str, todo: str) -> Row:
    """It can't be said from here."""
    return Row(check, Result.CANT_TELL, found, todo)


def exit_code(rows: Sequence[Row]) -> int:
    """Return 1 when anything would fail, else 0."""
    return int(any(row.result is Result.WOULD_FAIL for row in rows))


def table(rows: Sequence[Row], width: int | None = None) -> str:
    """Return the findings as a table with a summary below it.

    Args:
        rows: What was found.
        width: Columns of the terminal; asked for when left out.
    """
    columns = min(width or shutil.get_terminal_size((100, 24)).columns, _WIDEST)
    heads = ("check", "result", "what is there, and what to do")
    first = max(len(text) for text in (heads[0], *(row.check for row in rows)))
    second = max(len(text) for text in (heads[1], *Result))
    last = max(columns - first - second - 4, 30)
    lines = [f"{heads[0]:<{first}}  {heads[1]:<{second}}  {heads[2]}"]
    for row in rows:
        left = [f"{row.check:<{first}}  {row.result:<{second}}"]
        right = list(_wrapped(row, last)) or [""]
        left += [" " * len(left[0])] * (len(right) - 1)
        lines += [f"{a}  {b}".rstrip() for a, b in zip(left, right, strict=True)]
    return "\n".join([*lines, "", _summary(rows)])


def _wrapped(row: Row, width: int) -> Iterator[str]:
    for text in (row.found, f"→ {row.todo}" if row.todo else ""):
        # A command is copied, so it isn't broken at its hyphens.
        yield from textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


def _summary(rows: Sequence[Row]) -> str:
    counted = [f"{sum(row.result is kind for row in rows)} {kind}" for kind in Result]
    return ", ".join(counted)
