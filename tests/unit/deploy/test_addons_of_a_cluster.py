"""Add-ons: ours where the cluster has none, and what is there already is left alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from components.kube.addon import Image
from components.kube.keda_manifests import KedaManifests
from deploy import addons
from deploy.addons import ADDONS, addon_settings, present
from deploy.cluster import Cluster
from deploy.images import Registry
from lab import toolchain
from stacks.addon_settings import AddonSettings

IMAGES = {name: f"registry/{name}@sha256:{'1' * 64}" for name in ADDONS}
CLUSTER = Cluster(Path("kubeconfig"), "theirs", Registry("registry.example", False))


def test_the_platform_takes_what_is_set_for_its_add_ons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    manifests = toolchain.manifests_of("keda")
    manifests.parent.mkdir(parents=True)
    manifests.touch()
    given: dict[str, dict[str, str]] = {}
    images = {name: f"registry/{name}@sha256:{'1' * 64}" for name in ADDONS}
    for path, value in addon_settings(images).items():
        _, addon, key = path.split(".")
        given.setdefault(addon, {})[key] = value
    settings = AddonSettings.model_validate(given)
    assert settings.keda_source() == KedaManifests(file=str(manifests), operator=images["keda"])
    assert settings.prometheus_source() == Image(
        image=images["prometheus"], command=("/prometheus",)
    )


def test_add_ons_are_set_to_our_images_and_our_manifests() -> None:
    settings = addon_settings({name: f"registry/{name}@sha256:1" for name in ADDONS})
    prefix = "llm-platform:addons."
    assert settings.pop(f"{prefix}keda.manifests") == str(toolchain.manifests_of("keda"))
    keys = [f"{prefix}{name.replace('-', '_')}" for name in ADDONS]
    assert settings == {
        **{f"{key}.source": "manifests" for key in keys},
        **{
            f"{key}.image": f"registry/{name}@sha256:1"
            for key, name in zip(keys, ADDONS, strict=True)
        },
    }


def test_what_the_cluster_has_is_left_as_it_is() -> None:
    settings = addon_settings(IMAGES, {"keda", "prometheus-adapter", "metrics-server"})
    prefix = "llm-platform:addons."
    # Another server of custom metrics doesn't know ours.
    assert settings.pop("llm-platform:metrics") == "keda"
    assert settings.pop(f"{prefix}prometheus.image") == IMAGES["prometheus"]
    assert settings == {
        f"{prefix}keda.source": "existing",
        f"{prefix}prometheus.source": "manifests",
        f"{prefix}prometheus_adapter.source": "existing",
        f"{prefix}metrics_server.source": "existing",
    }


def test_only_what_others_installed_counts_as_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def service(name: str, **labels: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": labels}}

    listed = [
        service("v1.apps"),
        service("v1beta1.metrics.k8s.io"),
        service("v1beta1.external.metrics.k8s.io", **{"app.kubernetes.io/part-of": "llm-platform"}),
    ]
    monkeypatch.setattr(addons, "run", lambda *_: json.dumps({"items": listed}))
    assert present(CLUSTER) == {"metrics-server"}
