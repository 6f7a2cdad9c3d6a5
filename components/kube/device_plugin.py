"""GPUs in Kubernetes: the plugin that offers them to pods, and the exporter that measures them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pulumi
from pydantic import Field

from ..domain.args import Args
from ..domain.names import K8sName
from .addon import BY_SOURCE, Chart, ChartSource, Existing, ExistingSource, release

PLUGIN_CHART = Chart(
    repository="https://nvidia.github.io/k8s-device-plugin",
    chart="nvidia-device-plugin",
    version="0.20.0",
)
EXPORTER_CHART = Chart(
    repository="https://nvidia.github.io/dcgm-exporter/helm-charts",
    chart="dcgm-exporter",
    version="4.8.3",
)
EXPORTER_PORT = 9400
"""Where the exporter serves its metrics."""
_GPU_NODES: Mapping[str, str] = {"nvidia.com/gpu.present": "true"}
_EVERY_TAINT: Sequence[Mapping[str, str]] = ({"operator": "Exists"},)
"""A node that no GPU is offered on, since the plugin doesn't tolerate it, is of no use."""


class DevicePluginArgs(Args):
    """Where NVIDIA's device plugin comes from."""

    source: Annotated[ChartSource | ExistingSource, BY_SOURCE] = PLUGIN_CHART
    """The plugin's own chart, or one that is there: some nodes' images have it built in."""
    namespace: K8sName = "kube-system"
    """Where it runs; it reaches into its node, which no restricted namespace allows."""
    describe_gpus: bool = True
    """Whether nodes get labels that say which GPUs they have (GPU feature discovery)."""
    memory: str = Field(default="128Mi", pattern=r"^[1-9][0-9]*(Mi|Gi)$")
    """The memory of each of its pods."""


class DevicePlugin(pulumi.ComponentResource):
    """Offers a node's GPUs to pods as ``nvidia.com/gpu``.

    Creates, from NVIDIA's chart, a pod on every node with the label ``nvidia.com/gpu.present`` and,
    where wanted, others that label nodes with what their GPUs are. With ``existing`` it creates
    nothing. It must never run twice on a node.
    """

    ready: Sequence[pulumi.Resource]
    """What must stand before a pod can have a GPU."""

    def __init__(
        self, name: str, args: DevicePluginArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:DevicePlugin", name, None, opts)
        self.ready = []
        if not isinstance(args.source, Existing):
            self.ready = [
                release(
                    name,
                    args.source,
                    plugin_values(args),
                    namespace=args.namespace,
                    opts=pulumi.ResourceOptions(parent=self),
                )
            ]
        self.register_outputs({})


def plugin_values(args: DevicePluginArgs) -> Mapping[str, Any]:
    """Return the plugin's chart's values."""
    return {
        "nodeSelector": dict(_GPU_NODES),
        "tolerations": [dict(it) for it in _EVERY_TAINT],
        "resources": _resources(args.memory),
        "gfd": {"enabled": args.describe_gpus},
        # The chart's own toleration is of a taint with another value than ours.
        "nfd": {
            "worker": {
                "nodeSelector": dict(_GPU_NODES),
                "tolerations": [dict(it) for it in _EVERY_TAINT],
            }
        },
    }


class GpuMetricsArgs(Args):
    """Where NVIDIA's DCGM exporter comes from."""

    source: Annotated[ChartSource | ExistingSource, BY_SOURCE] = EXPORTER_CHART
    """The exporter's own chart, or one that is there."""
    namespace: K8sName = "kube-system"
    """Where it runs; it reaches into its node, which no restricted namespace allows."""
    memory: str = Field(default="512Mi", pattern=r"^[1-9][0-9]*(Mi|Gi)$")
    """The memory of each of its pods."""


class GpuMetrics(pulumi.ComponentResource):
    """Measures every GPU: use, memory, temperature, errors.

    Creates, from NVIDIA's chart, an exporter (DCGM) on every node with the label
    ``nvidia.com/gpu.present``, which answers at port 9400 and is annotated for a Prometheus that
    goes by that. With ``existing`` it creates nothing.
    """

    ready: Sequence[pulumi.Resource]
    """The exporter."""

    def __init__(
        self, name: str, args: GpuMetricsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:GpuMetrics", name, None, opts)
        self.ready = []
        if not isinstance(args.source, Existing):
            self.ready = [
                release(
                    name,
                    args.source,
                    exporter_values(args),
                    namespace=args.namespace,
                    opts=pulumi.ResourceOptions(parent=self),
                )
            ]
        self.register_outputs({})


def exporter_values(args: GpuMetricsArgs) -> Mapping[str, Any]:
    """Return the exporter's chart's values."""
    return {
        "nodeSelector": dict(_GPU_NODES),
        "tolerations": [dict(it) for it in _EVERY_TAINT],
        "resources": _resources(args.memory),
        "podAnnotations": {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(EXPORTER_PORT),
        },
        # Its kind of object is unknown where there is no Prometheus operator, and the chart then
        # fails as a whole.
        "serviceMonitor": {"enabled": False},
    }


def _resources(memory: str) -> Mapping[str, Any]:
    return {"requests": {"cpu": "20m", "memory": memory}, "limits": {"memory": memory}}
