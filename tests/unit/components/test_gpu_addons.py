"""What offers GPUs to pods, and what measures them."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.kube.addon import Chart, Existing
from components.kube.device_plugin import (
    DevicePlugin,
    DevicePluginArgs,
    GpuMetrics,
    GpuMetricsArgs,
)
from tests.harness import build

GPU_NODES = {"nvidia.com/gpu.present": "true"}
EVERY_TAINT = [{"operator": "Exists"}]


def plugin(**changes: Any) -> dict[str, Any]:
    built = build(lambda: DevicePlugin("gpus", DevicePluginArgs(**changes)))
    return built.one("Release").inputs


def metrics(**changes: Any) -> dict[str, Any]:
    built = build(lambda: GpuMetrics("measures", GpuMetricsArgs(**changes)))
    return built.one("Release").inputs


def test_both_are_pinned_and_run_on_every_gpu_node_whatever_its_taints() -> None:
    for found in (plugin(), metrics()):
        assert found["version"]
        assert found["values"]["nodeSelector"] == GPU_NODES
        assert found["values"]["tolerations"] == EVERY_TAINT
        assert found["values"]["resources"]["limits"]["memory"]


def test_what_describes_gpus_runs_on_tainted_nodes_too() -> None:
    values = plugin()["values"]
    assert values["gfd"] == {"enabled": True}
    assert values["nfd"]["worker"] == {"nodeSelector": GPU_NODES, "tolerations": EVERY_TAINT}
    assert plugin(describe_gpus=False)["values"]["gfd"] == {"enabled": False}


def test_the_exporter_needs_no_prometheus_operator() -> None:
    values = metrics()["values"]
    assert values["serviceMonitor"] == {"enabled": False}
    assert values["podAnnotations"]["prometheus.io/port"] == "9400"


def test_people_s_own_values_count_more() -> None:
    chart = Chart(
        repository="https://charts.example",
        chart="nvidia-device-plugin",
        version="0.20.1",
        values={"gfd": {"enabled": False}, "image": {"repository": "registry.example/plugin"}},
    )
    found = plugin(source=chart)
    assert found["repositoryOpts"] == {"repo": "https://charts.example"}
    assert found["values"]["gfd"] == {"enabled": False}
    assert found["values"]["image"] == {"repository": "registry.example/plugin"}


@pytest.mark.parametrize(
    ("kind", "args"), [(DevicePlugin, DevicePluginArgs), (GpuMetrics, GpuMetricsArgs)]
)
def test_a_cluster_that_has_one_keeps_it(kind: Any, args: Any) -> None:
    built = build(lambda: kind("it", args(source=Existing())))
    assert [it.custom for it in built.resources] == [False]
    assert built.value.ready == []


def test_an_unfit_memory_is_refused() -> None:
    with pytest.raises(ValidationError, match="memory"):
        DevicePluginArgs(memory="128M")
