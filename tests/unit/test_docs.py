"""The pages of the components say what the components are."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = runpy.run_path(str(ROOT / "docs" / "tables.py"))
PAGES = TABLES["pages"]()


def test_every_component_has_a_page_and_every_page_a_component() -> None:
    assert {path.stem for path in (ROOT / "docs/components").glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_of_a_page_are_current(name: str) -> None:
    page = (ROOT / "docs/components" / f"{name}.md").read_text()
    assert TABLES["BEGIN"] in page
    assert TABLES["merged"](page, PAGES[name]) == page, "run: python docs/tables.py"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_the_use_and_what_can_fail(name: str) -> None:
    page = (ROOT / "docs/components" / f"{name}.md").read_text()
    assert "## Use" in page
    assert "```python" in page
    assert "## When things fail" in page
