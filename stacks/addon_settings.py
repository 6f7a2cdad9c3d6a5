"""What the settings may say about where the cluster's add-ons come from."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from components.domain.args import Args
from components.domain.images import ImageRef
from components.kube.addon import Chart, Existing, Image, ManifestFile
from components.kube.keda import CHART as KEDA_CHART
from components.kube.keda_manifests import KedaManifests
from components.kube.mesh import ExistingIstio, IstioCharts
from components.kube.prometheus import ExistingPrometheus


class FromChart(Args):
    """An add-on from its own chart."""

    source: Literal["chart"] = "chart"
    """Says so."""
    version: str = Field(default="", pattern=r"^(v?[0-9]+\.[0-9]+\.[0-9]+)?$")
    """The chart's version; the one that this version of the platform was made for by default."""

    def of(self, chart: Chart) -> Chart:
        """Return the chart in the version that is wished."""
        return chart.model_copy(update={"version": self.version}) if self.version else chart


class FromManifests(Args):
    """An add-on from the platform's own manifests, with an image of one's own."""

    source: Literal["manifests"] = "manifests"
    """Says so."""
    image: ImageRef
    """The add-on's image, by digest."""
    command: tuple[str, ...] = ()
    """The program in it; by default where ``make up`` puts it, at the root of the file system."""

    def of(self, program: str) -> Image:
        """Return it as the components take it."""
        return Image(image=self.image, command=self.command or (program,))


class KedaFromManifests(FromManifests):
    """KEDA from its module's manifests; its three programs are in one image."""

    manifests: ManifestFile
    """What ``kubectl kustomize <KEDA's module>/config/default`` printed."""

    def of_keda(self) -> KedaManifests:
        """Return it as the component takes it."""
        return KedaManifests(
            file=self.manifests,
            operator=self.image,
        )


class AlreadyThere(Args):
    """An add-on that the cluster has already: nothing is installed, and nothing removed."""

    source: Literal["existing"] = "existing"
    """Says so."""


class PrometheusAlreadyThere(AlreadyThere):
    """A Prometheus that is there already, asks the platform's pods and has its rules."""

    url: str = Field(pattern=r"^https?://[^/?#\s]+$")
    """Where it answers queries, for programs in the cluster, without a path."""


class IstioAlreadyThere(AlreadyThere):
    """An Istio with sidecars that is there already."""

    revision: str = Field(default="", pattern=r"^[a-z0-9-]*$")
    """Its revision or tag, where it has one."""


def _source_of(value: Any) -> str:
    given: Any = value.get("source", "") if isinstance(value, dict) else value.source
    return str(given)


def one_of(*sources: str) -> Discriminator:
    """Choose between sources of an add-on, and say which there are when none is named."""
    return Discriminator(
        _source_of,
        custom_error_type="addon_source",
        custom_error_message=f"say where it comes from, source: {' or '.join(sources)}",
    )


_Chart = Annotated[FromChart, Tag("chart")]
_Manifests = Annotated[FromManifests, Tag("manifests")]
_Existing = Annotated[AlreadyThere, Tag("existing")]
Addon = Annotated[_Chart | _Manifests | _Existing, one_of("chart", "manifests", "existing")]
KedaAddon = Annotated[
    _Chart | Annotated[KedaFromManifests, Tag("manifests")] | _Existing,
    one_of("chart", "manifests", "existing"),
]
PrometheusAddon = Annotated[
    _Manifests | Annotated[PrometheusAlreadyThere, Tag("existing")],
    one_of("manifests", "existing"),
]
IstioAddon = Annotated[
    _Chart | Annotated[IstioAlreadyThere, Tag("existing")],
    one_of("chart", "existing"),
]


class AddonSettings(Args):
    """Where each add-on of the cluster comes from."""

    prometheus: PrometheusAddon
    """Prometheus, which measures what endpoints scale on."""
    keda: KedaAddon = Field(default_factory=FromChart)
    """KEDA, which scales from zero and by queues."""
    prometheus_adapter: Addon = Field(default_factory=FromChart)
    """The Prometheus adapter, which hands what is measured to autoscalers; installed only when
    ``metrics`` says so."""
    metrics_server: Addon = Field(default_factory=FromChart)
    """The metrics server, which hands them the use of processors and memory."""

    kubelet_insecure_tls: bool = False
    """Whether the metrics server asks kubelets though nobody has signed their certificates."""
    istio: IstioAddon = Field(default_factory=FromChart)
    """Istio; installed only when ``mesh`` says so."""

    def keda_source(self) -> Chart | KedaManifests | Existing:
        """Return KEDA's source as its component takes it."""
        match self.keda:
            case FromChart() as chart:
                return chart.of(KEDA_CHART)
            case KedaFromManifests() as manifests:
                return manifests.of_keda()
            case AlreadyThere():
                return Existing()

    def prometheus_url(self, ours: str) -> str:
        """Return where Prometheus answers, ``ours`` being the platform's own."""
        return ours if isinstance(self.prometheus, FromManifests) else self.prometheus.url

    def prometheus_source(self) -> Image | ExistingPrometheus:
        """Return Prometheus' source as its component takes it."""
        if isinstance(self.prometheus, FromManifests):
            return self.prometheus.of("/prometheus")
        return ExistingPrometheus(url=self.prometheus.url)

    def istio_source(self) -> IstioCharts | ExistingIstio:
        """Return the mesh's source as its component takes it."""
        if isinstance(self.istio, IstioAlreadyThere):
            return ExistingIstio(revision=self.istio.revision)
        return IstioCharts(version=self.istio.version) if self.istio.version else IstioCharts()


def source_of(addon: Addon, chart: Chart, program: str) -> Chart | Image | Existing:
    """Return the source of one of the others as its component takes it.

    Args:
        addon: What the settings say.
        chart: The chart that this version of the platform was made for.
        program: Where its program is in an image that ``make up`` made.
    """
    match addon:
        case FromChart():
            return addon.of(chart)
        case FromManifests():
            return addon.of(program)
        case AlreadyThere():
            return Existing()
