"""What tests of AWS' components need around them."""

import asyncio
from collections.abc import Iterator

import pytest
from pulumi.runtime._callbacks import _CallbackServicer

# Reads the AWS SDK before any test does, for it warns of classes that nobody here uses.
from tests import eks_outputs

__all__ = ["eks_outputs"]


@pytest.fixture(autouse=True)
def _no_server_is_left(_own_event_loop: None) -> Iterator[None]:
    """End the server that answers the engine's hooks, while the test's event loop still runs."""
    yield
    asyncio.get_event_loop().run_until_complete(_CallbackServicer.shutdown())
