"""The pages of the components say what the components are."""

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

import components
from components.domain.args import Args

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


def examples(page: str) -> Iterator[tuple[type[Args], ast.Call]]:
    """Yield every value of ours that a page's examples write."""
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kind = getattr(components, node.func.id, None)
                if isinstance(kind, type) and issubclass(kind, Args):
                    yield kind, node


@pytest.mark.parametrize("name", PAGES)
def test_an_example_writes_arguments_that_there_are_and_leaves_none_out(name: str) -> None:
    page = (ROOT / "docs/components" / f"{name}.md").read_text()
    for kind, call in examples(page):
        written = {it.arg for it in call.keywords}
        fields = kind.model_fields.items()
        known = {field.alias or name for name, field in fields}
        assert written <= known, f"{kind.__name__}: {written - known}"
        needed = {field.alias or name for name, field in fields if field.is_required()}
        assert call.args or needed <= written, f"{kind.__name__}: {needed - written}"
