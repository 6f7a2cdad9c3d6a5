from collections.abc import Iterator

import pytest
from preflight_harness import StubbedAws


@pytest.fixture
def aws() -> Iterator[StubbedAws]:
    with StubbedAws() as stubbed:
        yield stubbed
        stubbed.all_was_asked()
