"""Where the cluster's add-ons come from: our images and manifests, or what is there already."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from lab import toolchain
from lab.commands import run

from .cluster import STEP, Cluster

ADDONS = ("keda", "prometheus", "prometheus-adapter", "metrics-server")
"""The add-ons: their images, and the tools that these are made of."""

_SERVES = {
    "keda": "v1beta1.external.metrics.k8s.io",
    "prometheus-adapter": "v1beta2.custom.metrics.k8s.io",
    "metrics-server": "v1beta1.metrics.k8s.io",
}
"""What only one in a cluster can serve; Prometheus isn't among them, there may be many."""

_PREFIX = "llm-platform:addons"
_OURS = {"app.kubernetes.io/part-of": "llm-platform"}


def present(cluster: Cluster) -> set[str]:
    """Return the add-ons that the cluster has from somebody else, by the API that each serves."""
    view = ["get", "apiservices", "--output", "json"]
    where = ["--kubeconfig", cluster.kubeconfig, "--context", cluster.context]
    listed: list[dict[str, Any]] = json.loads(run(STEP, ["kubectl", *where, *view]))["items"]
    foreign = {
        item["metadata"]["name"]
        for item in listed
        if not _OURS.items() <= item["metadata"].get("labels", {}).items()
    }
    return {name for name, api in _SERVES.items() if api in foreign}


def addon_settings(images: Mapping[str, str], there: Collection[str] = ()) -> dict[str, str]:
    """Return the settings that say where each add-on comes from.

    Args:
        images: The published images by their names, those of the add-ons among them.
        there: Those that the cluster has already. Another server of custom metrics doesn't know
            ours, so KEDA reads them instead.
    """
    settings = {"llm-platform:metrics": "keda"} if "prometheus-adapter" in there else {}
    for name in ADDONS:
        path = f"{_PREFIX}.{name.replace('-', '_')}"
        if name in there:
            settings[f"{path}.source"] = "existing"
            continue
        settings |= {f"{path}.source": "manifests", f"{path}.image": images[name]}
        if name == "keda":
            settings[f"{path}.manifests"] = str(toolchain.manifests_of("keda"))
    return settings
