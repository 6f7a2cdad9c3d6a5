"""How the number of gateways follows the load."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from ..domain import metrics
from ..kube import workload
from . import control
from .autoscaling import LETS_KEDA_TAKE_OVER, SCALED_OBJECT_API, SCALED_OBJECT_KIND
from .gateway_args import NAME, GatewayArgs

_CPU_PERCENT = 80
"""Above it a gateway, which is one process, answers ever later."""
_CALM_SECONDS = 300
"""How long fewer gateways must be enough before one is stopped."""


def scale(name: str, args: GatewayArgs, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """Create what scales the gateway on the requests that are open or wait, and on its processors.

    Args:
        name: What the name of the resource begins with.
        args: The gateway's arguments.
        opts: Its parent, and what it waits for: the Deployment, and with KEDA what defines it.
    """
    metadata = workload.metadata(NAME, args.namespace, component=control.COMPONENT)
    if args.metrics == "keda":
        return k8s.apiextensions.CustomResource(
            f"{name}-scaler",
            api_version=SCALED_OBJECT_API,
            kind=SCALED_OBJECT_KIND,
            metadata=metadata,
            spec=_scaled_object(args),
            opts=opts,
        )
    return k8s.autoscaling.v2.HorizontalPodAutoscaler(
        f"{name}-scaler",
        metadata={**metadata, "annotations": LETS_KEDA_TAKE_OVER},
        spec=_hpa(args),
        opts=opts,
    )


def _hpa(args: GatewayArgs) -> k8s.autoscaling.v2.HorizontalPodAutoscalerSpecArgsDict:
    return {
        "scale_target_ref": {"api_version": "apps/v1", "kind": "Deployment", "name": NAME},
        "min_replicas": args.replicas,
        "max_replicas": args.max_replicas or args.replicas,
        "metrics": [
            {
                "type": "Object",
                "object": {
                    "described_object": {"api_version": "v1", "kind": "Service", "name": NAME},
                    "metric": {"name": metrics.GATEWAY_CUSTOM_METRIC},
                    "target": {
                        "type": "AverageValue",
                        "average_value": str(args.target_concurrency),
                    },
                },
            },
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "average_utilization": _CPU_PERCENT},
                },
            },
        ],
        "behavior": {"scale_down": {"stabilization_window_seconds": _CALM_SECONDS}},
    }


def _scaled_object(args: GatewayArgs) -> Mapping[str, Any]:
    query = pulumi.Output.format(
        '{0}{{{1}="{2}",{3}="{4}"}}',
        metrics.GATEWAY_CONCURRENCY,
        metrics.NAMESPACE_LABEL,
        args.namespace,
        metrics.SERVICE_LABEL,
        NAME,
    )
    return {
        "scaleTargetRef": {"name": NAME},
        "minReplicaCount": args.replicas,
        "maxReplicaCount": args.max_replicas,
        "advanced": {
            "restoreToOriginalReplicaCount": False,
            "horizontalPodAutoscalerConfig": {
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": _CALM_SECONDS}}
            },
        },
        "triggers": [
            {
                "type": "prometheus",
                "metricType": "AverageValue",
                "metadata": {
                    "serverAddress": args.prometheus_url,
                    "query": query,
                    "threshold": str(args.target_concurrency),
                    # Metrics that are missing say nothing, least of all that nobody asks.
                    "ignoreNullValues": "false",
                },
            },
            {
                "type": "cpu",
                "metricType": "Utilization",
                "metadata": {"value": str(_CPU_PERCENT)},
            },
        ],
    }
