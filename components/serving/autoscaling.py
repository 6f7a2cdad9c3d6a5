"""Who chooses an endpoint's number of workers, and how: pure functions of what people wrote.

Exactly one of three owns the number: the Deployment itself, a HorizontalPodAutoscaler on the
custom metric, or KEDA's ScaledObject, which alone can go to zero and back.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, cast

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain import keys, metrics
from ..domain.names import safe_name
from ..domain.registration import EndpointType
from ..domain.scaling_source import CLOUDWATCH_DIMENSIONS, CLOUDWATCH_METRIC, CloudWatch, Prometheus
from ..foundation import KedaTrigger, Queue
from ..kube.keda import AUTHENTICATION as ACTIVATION_AUTHENTICATION
from .endpoint_args import ModelEndpointArgs

SCALED_OBJECT_API = "keda.sh/v1alpha1"
SCALED_OBJECT_KIND = "ScaledObject"

LETS_KEDA_TAKE_OVER = {"validations.keda.sh/hpa-ownership": "false"}
"""On our HPA. Pulumi creates the new owner before it deletes the old one; KEDA's webhook would
refuse it as long as the HPA stands. Two HPAs on one target scale nothing meanwhile."""

_FAILURES_UNTIL_FALLBACK = 3
_LIST_LENGTH = 100
"""The activation list holds one element at most: far below, it asks for one worker and no more."""


class Owner(StrEnum):
    """What chooses the number of workers."""

    DEPLOYMENT = "deployment"
    HPA = "hpa"
    KEDA = "keda"


def owner(args: ModelEndpointArgs) -> Owner:
    """Return the one that owns the number of an endpoint's workers."""
    scaling = args.scaling
    if args.type is EndpointType.ASYNC or scaling.sleeps:
        return Owner.KEDA
    if scaling.is_fixed:
        return Owner.DEPLOYMENT
    by_adapter = args.platform.metrics == "prometheus-adapter"
    return Owner.HPA if by_adapter and isinstance(scaling.source, Prometheus) else Owner.KEDA


def hpa_spec(
    name: str, args: ModelEndpointArgs
) -> k8s.autoscaling.v2.HorizontalPodAutoscalerSpecArgsDict:
    """Return the HPA: workers = ceil(concurrency / ``per_worker``).

    The metric is the endpoint's and not its pods', so that pods of a rollout that have no sample
    yet don't count as idle or as busy.
    """
    scaling = args.scaling
    return {
        "scale_target_ref": {"api_version": "apps/v1", "kind": "Deployment", "name": name},
        "min_replicas": scaling.min_workers,
        "max_replicas": scaling.max_workers,
        "metrics": [
            {
                "type": "Object",
                "object": {
                    "described_object": {"api_version": "v1", "kind": "Service", "name": name},
                    "metric": {
                        "name": metrics.CUSTOM_METRIC,
                        "selector": {
                            "match_labels": {metrics.WINDOW_LABEL: str(scaling.window_seconds)}
                        },
                    },
                    "target": {"type": "AverageValue", "average_value": str(scaling.per_worker)},
                },
            }
        ],
        "behavior": _behavior(args),
    }


def _behavior(
    args: ModelEndpointArgs,
) -> k8s.autoscaling.v2.HorizontalPodAutoscalerBehaviorArgsDict:
    """Return how fast: within one cold start as many more as there are, or a few."""
    scaling = args.scaling
    growth = (("Percent", 100), ("Pods", scaling.scale_up_workers))
    return {
        "scale_up": {
            "stabilization_window_seconds": scaling.scale_up_stabilization_seconds,
            "select_policy": "Max",
            "policies": [
                {"type": kind, "value": value, "period_seconds": scaling.cold_start_seconds}
                for kind, value in growth
            ],
        },
        "scale_down": {
            "stabilization_window_seconds": scaling.scale_down_seconds(args.type),
        },
    }


def scaled_object_spec(
    name: str, args: ModelEndpointArgs, queue: Queue | None
) -> Mapping[str, Any]:
    """Return the ScaledObject, in KEDA's own spelling.

    A trigger that can't be asked never counts as nothing to do: KEDA then keeps the workers that
    there are, and the fallback is a lower bound.

    Args:
        name: The endpoint, whose Deployment has the same name.
        args: What people wrote.
        queue: Where its tasks wait, of an ASYNC endpoint.
    """
    scaling = args.scaling
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicaCount": scaling.min_workers,
        "maxReplicaCount": scaling.max_workers,
        **(_sleep(args) if scaling.sleeps else {}),
        "fallback": {
            "failureThreshold": _FAILURES_UNTIL_FALLBACK,
            "replicas": scaling.fallback_workers,
            "behavior": "currentReplicasIfHigher",
        },
        "advanced": {
            # The workers stay as they are when the object goes: another owner takes them over.
            "restoreToOriginalReplicaCount": False,
            "horizontalPodAutoscalerConfig": {
                # KEDA's own choice, but where that is too long for a label.
                "name": safe_name("keda-hpa", name),
                "behavior": _spelled(_behavior(args)),
            },
        },
        "triggers": _triggers(name, args, queue),
    }


def _sleep(args: ModelEndpointArgs) -> Mapping[str, int]:
    """Return what concerns the steps from and to zero; elsewhere KEDA warns that it does nothing.

    A new object has never been active, so that only its initial cooldown protects a model that
    still loads.
    """
    cooldown = args.scaling.cooldown(args.type)
    return {
        "pollingInterval": args.scaling.polling_interval_seconds,
        "cooldownPeriod": cooldown,
        "initialCooldownPeriod": max(args.startup_timeout_seconds, cooldown),
    }


def _triggers(
    name: str, args: ModelEndpointArgs, queue: Queue | None
) -> Sequence[Mapping[str, Any]]:
    per_worker = args.scaling.per_worker
    if queue is not None:
        return [_trigger("outstanding", queue.trigger, queue.trigger.aimed_at(per_worker))]
    concurrency = _concurrency(name, args)
    triggers = [_trigger("concurrency", concurrency, concurrency.aimed_at(per_worker))]
    if args.scaling.sleeps:
        # The signal that wakes it is there without workers, and without whoever measures them.
        activation = _activation(name, args)
        triggers.insert(0, _trigger("activation", activation, activation.aimed_at(_LIST_LENGTH)))
    return triggers


def _trigger(name: str, trigger: KedaTrigger, metadata: Mapping[str, In[str]]) -> Mapping[str, Any]:
    shown: dict[str, Any] = {"name": name, "type": trigger.type, "metadata": metadata}
    if trigger.authentication:
        shown["authenticationRef"] = {
            "name": trigger.authentication,
            "kind": trigger.authentication_kind,
        }
    return shown


def _activation(name: str, args: ModelEndpointArgs) -> KedaTrigger:
    encrypted = {"enableTLS": "true"} if args.platform.redis_tls else {}
    return KedaTrigger(
        type="redis",
        metadata={
            **encrypted,
            "address": args.platform.redis_address,
            "listName": _of_namespace(args, lambda it: keys.activation_key(it, name)),
            "activationListLength": "0",
        },
        target_field="listLength",
        authentication=ACTIVATION_AUTHENTICATION,
    )


def _concurrency(name: str, args: ModelEndpointArgs) -> KedaTrigger:
    source = args.scaling.source
    if isinstance(source, CloudWatch):
        return _cloudwatch(name, args, source)
    window = args.scaling.window_seconds
    metadata: dict[str, In[str]] = {
        "query": _of_namespace(args, lambda it: metrics.concurrency_query(it, name, window)),
        "activationThreshold": "0",
        # No answer is an error, not zero.
        "ignoreNullValues": "false",
    }
    if isinstance(source, Prometheus):
        metadata["serverAddress"] = args.platform.prometheus_url
        return KedaTrigger(type="prometheus", metadata=metadata, target_field="threshold")
    return KedaTrigger(
        type="prometheus",
        metadata={**metadata, "serverAddress": source.url, "awsRegion": source.region},
        target_field="threshold",
        authentication=source.authentication,
    )


def _cloudwatch(name: str, args: ModelEndpointArgs, source: CloudWatch) -> KedaTrigger:
    return KedaTrigger(
        type="aws-cloudwatch",
        metadata={
            "awsRegion": source.region,
            "namespace": source.namespace,
            "metricName": CLOUDWATCH_METRIC,
            "dimensionName": ";".join(CLOUDWATCH_DIMENSIONS),
            "dimensionValue": _of_namespace(args, lambda it: f"{it};{name}"),
            # Each gateway publishes its own part, once per period.
            "metricStat": "Sum",
            # Both default to 300 s, with which a burst is over before it is seen.
            "metricStatPeriod": str(source.period_seconds),
            "metricCollectionTime": str(source.collection_seconds),
            "metricEndTimeOffset": str(source.delay_seconds),
            "minMetricValue": "0",
            "activationTargetMetricValue": "0",
            "ignoreNullValues": "false",
        },
        target_field="targetMetricValue",
        authentication=source.authentication,
    )


def _of_namespace(args: ModelEndpointArgs, text: Callable[[str], str]) -> pulumi.Output[str]:
    """Return a text that holds the team's namespace, which may be known only later."""
    return pulumi.Output.from_input(args.platform.namespace).apply(text)


def _spelled(value: Any) -> Any:
    """Return a value with Kubernetes' own spelling of its keys."""
    if isinstance(value, list):
        return [_spelled(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    items = cast("dict[str, Any]", value).items()
    return {re.sub("_(.)", lambda it: it[1].upper(), key): _spelled(item) for key, item in items}
