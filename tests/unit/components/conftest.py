"""Every test here builds Pulumi programs, each in an event loop of its own."""

from collections.abc import Iterator

import pytest

from tests.harness import own_event_loop


@pytest.fixture(autouse=True)
def _own_event_loop() -> Iterator[None]:
    with own_event_loop():
        yield
