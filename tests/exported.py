"""Every exported component, made in the way that most use it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pulumi

from tests import aws_samples, eks_samples, samples
from tests.harness import Built, build

COMPONENTS: dict[str, Callable[[str], pulumi.ComponentResource]] = {
    **samples.COMPONENTS,
    **eks_samples.COMPONENTS,
    **aws_samples.COMPONENTS,
}


@dataclass(frozen=True)
class Shape:
    """What a component has; it itself would keep thousands of futures alive."""

    kind: type
    attributes: frozenset[str]


@cache
def made(component: str, *names: str, preview: bool = False) -> Built:
    """Build one of each name; once, for it is only read. The value is the components' shapes."""
    make = COMPONENTS[component]
    built = build(lambda: [make(name) for name in names], preview=preview)
    built.value = [Shape(type(it), frozenset(dir(it))) for it in built.value]
    return built
