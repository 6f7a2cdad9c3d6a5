"""What the tool chain is made of, and from which Go modules."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from .commands import run_quietly

_KUBERNETES_VERSION = (
    "-X k8s.io/component-base/version.gitVersion=v1.34.4 "
    "-X k8s.io/component-base/version.gitMajor=1 "
    "-X k8s.io/component-base/version.gitMinor=34"
)
_PULUMI_VERSION = "-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.276.0"
_PROMETHEUS_VERSION = "-X github.com/prometheus/common/version.Version=3.16.0"
_KEDA = "github.com/kedacore/keda/v2"


@dataclass(frozen=True)
class ModuleFiles:
    """Files that a build embeds, and that a module carries somewhere else.

    Args:
        module: The module's path.
        folder: Where they are in it.
        names: Their names.
    """

    module: str
    folder: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Kustomization:
    """What a module says that has to be in a cluster for its programs to run there.

    Args:
        module: The module's path.
        folder: The kustomization in it.
        name: What the file is called that it is rendered to.
    """

    module: str
    folder: str
    name: str


@dataclass(frozen=True)
class Tool:
    """A program that is built from Go modules, if nothing else provides it.

    Args:
        name: The folder with its module files.
        binary: What the program is called.
        package: What is built: a package of a module, or the folder's own `main`.
        flags: More flags for the linker.
        embeds: Files that have to lie beside its `main`.
        on_path: Whether a usable one is installed; default: it is always built, because
            the cluster needs this very version.
        tags: Build tags, separated by commas.
        also: More programs, compiled together with it: what each is called, and its package.
        manifests: What is rendered beside the programs.
    """

    name: str
    binary: str
    package: str = "."
    flags: str = ""
    embeds: ModuleFiles | None = None
    on_path: Callable[[], bool] = lambda: False
    tags: str = ""
    also: tuple[tuple[str, str], ...] = ()
    manifests: Kustomization | None = None

    @property
    def programs(self) -> dict[str, str]:
        """All its programs' packages, by what they are called."""
        return {self.binary: self.package, **dict(self.also)}


def pulumi_works() -> bool:
    """Tell whether a `pulumi` is installed that runs."""
    return bool(run_quietly(["pulumi", "version"]))


def kubectl_works() -> bool:
    """Tell whether a `kubectl` is installed that runs."""
    return bool(run_quietly(["kubectl", "version", "--client"]))


def _kubernetes_plugin_is_there() -> bool:
    if shutil.which("pulumi-resource-kubernetes"):
        return True
    plugins = json.loads(run_quietly(["pulumi", "plugin", "ls", "--json"]) or "[]")
    return any(each["name"] == "kubernetes" and each["kind"] == "resource" for each in plugins)


# In the order in which they are built: the cluster can start while the rest is made.
TOOLS = {
    tool.name: tool
    for tool in (
        Tool("kubernetes", "kube", flags=_KUBERNETES_VERSION),
        Tool("pause", "pause"),
        Tool("registry", "registry", "github.com/distribution/distribution/v3/cmd/registry"),
        Tool("coredns", "coredns", "github.com/coredns/coredns"),
        Tool("versitygw", "versitygw", "github.com/versity/versitygw/cmd/versitygw"),
        # Of the ways to find what to scrape only Kubernetes' is wanted: the other ones are the
        # libraries of two dozen clouds, a fifth of the packages.
        Tool(
            "prometheus",
            "prometheus",
            "github.com/prometheus/prometheus/cmd/prometheus",
            flags=_PROMETHEUS_VERSION,
            tags="remove_all_sd,enable_kubernetes_sd",
            also=(("promtool", "github.com/prometheus/prometheus/cmd/promtool"),),
        ),
        # Each serves an API with the Kubernetes libraries that it was written for, though these
        # would be compiled once if they were the same: with newer ones neither starts.
        Tool("metrics-server", "metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server"),
        Tool("prometheus-adapter", "adapter", "sigs.k8s.io/prometheus-adapter/cmd/adapter"),
        Tool(
            "keda",
            "keda",
            f"{_KEDA}/cmd/operator",
            flags=f"-X {_KEDA}/version.Version=2.21.0",
            also=(
                ("keda-adapter", f"{_KEDA}/cmd/adapter"),
                ("keda-admission-webhooks", f"{_KEDA}/cmd/webhooks"),
            ),
            manifests=Kustomization(_KEDA, "config/default", "keda.yaml"),
        ),
        Tool(
            "pulumi",
            "pulumi",
            "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
            flags=_PULUMI_VERSION,
            on_path=pulumi_works,
        ),
        Tool(
            "provider-kubernetes",
            "pulumi-resource-kubernetes",
            flags="-X main.version=v4.26.0",
            embeds=ModuleFiles(
                "github.com/pulumi/pulumi-kubernetes/provider/v4",
                "cmd/pulumi-resource-kubernetes",
                ("schema.json", "terraform-mapping.json"),
            ),
            on_path=_kubernetes_plugin_is_there,
        ),
    )
}
CLUSTER_TOOLS = ("kubernetes", "pause", "registry", "coredns")
