"""Golden files: ``--update-golden`` writes them, and review reads the difference."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness import own_event_loop

RENDERED = Path(__file__).parent / "rendered"
Check = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


@pytest.fixture(autouse=True)
def _own_event_loop() -> Iterator[None]:
    with own_event_loop():
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Check:
    """Compare a text with its golden file, or write it there when told to."""

    def check(name: str, text: str) -> None:
        path = RENDERED / name
        if request.config.getoption("--update-golden", default=False):
            path.write_text(text)
        assert path.exists(), f"{name} is missing: pytest tests/golden --update-golden"
        assert text == path.read_text(), f"{name} differs: pytest tests/golden --update-golden"

    return check
