"""Add-ons: other people's programs that the platform needs, each with its sources to choose from.

In a cloud they come from their charts. Where charts can't be reached they come from manifests, with
images of one's own. A cluster that has one already keeps it. Whatever the source, what is made has
exactly one owner: two programs that both install an API service or a definition undo each other.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pulumi
import pulumi_kubernetes as k8s
import yaml
from pydantic import AfterValidator, Discriminator, Field, Tag

from ..domain.args import Args
from ..domain.images import ImageRef
from ..domain.names import K8sName

_INSTALL_SECONDS = 600


class Chart(Args):
    """The add-on's own chart, in exactly one version."""

    source: Literal["chart"] = "chart"
    """Says that it is installed from a chart."""
    repository: str = Field(pattern=r"^(https|oci)://")
    """Where the chart is."""
    chart: str
    """Its name there."""
    version: str = Field(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+$")
    """Exactly this version; a range would install another one tomorrow."""
    values: Mapping[str, Any] = Field(default_factory=dict)
    """Values over those of the platform. They shape what is made, so they are plain; secrets don't
    belong here, for charts show them in what they render."""


class Image(Args):
    """The platform's own manifests with an image of one's own."""

    source: Literal["image"] = "image"
    """Says that it runs from an image."""
    image: ImageRef
    """The add-on's image."""
    command: tuple[str, ...] = ()
    """The program in it; the one that the image itself names when left out."""


class Existing(Args):
    """The cluster has it already: nothing is installed, and nothing removed."""

    source: Literal["existing"] = "existing"
    """Says that it isn't installed."""


def _source_of(value: object) -> str:
    if isinstance(value, Mapping):
        return str(cast("Mapping[str, object]", value).get("source", ""))
    return str(getattr(value, "source", ""))


BY_SOURCE = Discriminator(_source_of)
"""Chooses between an add-on's sources, each tagged with the value of its field ``source``."""
ChartSource = Annotated[Chart, Tag("chart")]
ImageSource = Annotated[Image, Tag("image")]
ExistingSource = Annotated[Existing, Tag("existing")]


def _readable(path: str) -> str:
    if not Path(path).is_file():
        raise ValueError(
            f"{path} isn't a file: render the add-on's manifests into it first "
            "(kubectl kustomize <its module>/config/default)"
        )
    return path


ManifestFile = Annotated[str, AfterValidator(_readable)]
"""A file of Kubernetes objects, rendered from the add-on's module."""


def release(
    name: str,
    chart: Chart,
    values: Mapping[str, Any],
    *,
    namespace: K8sName,
    opts: pulumi.ResourceOptions,
) -> k8s.helm.v3.Release:
    """Install a chart: wholly or, when a part of it doesn't come up, not at all."""
    in_registry = chart.repository.startswith("oci://")
    return k8s.helm.v3.Release(
        f"{name}-release",
        # A name of its own length, so that a chart's derived names stay within their limits.
        name=chart.chart,
        # A chart in an image registry has its whole address as its name; the provider would look
        # for a list of charts behind a repository's.
        chart=f"{chart.repository}/{chart.chart}" if in_registry else chart.chart,
        version=chart.version,
        repository_opts=None if in_registry else {"repo": chart.repository},
        namespace=namespace,
        create_namespace=False,
        atomic=True,
        timeout=_INSTALL_SECONDS,
        values=merged(values, chart.values),
        opts=opts,
    )


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with every value that ``over`` has instead; mappings are merged."""
    result = dict(base)
    for key, value in over.items():
        mine = result.get(key)
        if isinstance(mine, Mapping) and isinstance(value, Mapping):
            inner = cast("Mapping[str, Any]", mine), cast("Mapping[str, Any]", value)
            result[key] = merged(*inner)
        else:
            result[key] = value
    return result


def as_yaml(value: Mapping[str, Any]) -> str:
    """Write an add-on's configuration as people would, in the order that it is given in."""
    return str(cast("Any", yaml).safe_dump(value, sort_keys=False, width=1000))
