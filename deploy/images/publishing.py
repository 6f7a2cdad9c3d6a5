"""Making images, one run at a time, and bringing them to a registry."""

from collections.abc import Iterable

from lab import toolchain
from lab.commands import alone
from lab.progress import Report

from ..paths import Paths
from .layers import LayerStore
from .recipes import RECIPES, Workshop
from .registry import Registry, publish


def publish_all(
    names: Iterable[str], registry: Registry, paths: Paths, report: Report
) -> dict[str, str]:
    """Make images and push them; return each one's name by digest.

    Args:
        names: Keys of ``RECIPES``; the programs that they need must be built.
        registry: Where they go.
        paths: Where layers and logs are kept.
        report: Takes a line of progress.
    """
    busy = "waiting for another make up to make its images"
    with alone(paths.images / "lock", report, busy):
        store = LayerStore(paths.images)
        store.remove_unfinished()
        workshop = Workshop(store, paths.logs, report, toolchain.program)
        return {name: publish(name, RECIPES[name], workshop, registry) for name in names}
