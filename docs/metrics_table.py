"""Writes the tables in docs/metrics.md: ``python docs/metrics_table.py``."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "metrics.md"
BEGIN, END = "<!-- generated: python docs/metrics_table.py -->", "<!-- /generated -->"


def generated() -> str:
    """Return the tables of what is exported and of what Prometheus reckons from it."""
    sys.path.insert(0, str(ROOT))
    from components.domain.metric_table import EXPORTED, RECORDED  # noqa: PLC0415 - by its path

    head = [
        "| metric | kind | labels | unit | from | read by | meaning |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = [
        f"| `{it.name}` | {it.kind.value} "
        f"| {', '.join(f'`{name}`' for name in it.labels) or 'none'} "
        f"| {it.unit} | {it.exporter} | {', '.join(reader.value for reader in it.readers)} "
        f"| {it.meaning} |"
        for it in (*EXPORTED, *RECORDED)
    ]
    return "\n".join([*head, *rows, ""])


def merged(page: str) -> str:
    """Return the page with its generated part replaced."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{generated()}{END}", page)


def main() -> int:
    """Write the page."""
    PAGE.write_text(merged(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
