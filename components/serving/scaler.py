"""Declares what chooses an endpoint's number of workers, where that isn't fixed."""

import pulumi
import pulumi_kubernetes as k8s

from ..foundation import Queue
from . import autoscaling
from .endpoint_args import ModelEndpointArgs


def declare(
    name: str,
    args: ModelEndpointArgs,
    metadata: k8s.meta.v1.ObjectMetaArgsDict,
    queue: Queue | None,
    opts: pulumi.ResourceOptions,
) -> pulumi.CustomResource | None:
    """Create the one that owns the number of workers; its name is the endpoint's, for life.

    It is never created paused: KEDA doesn't resume such an object reliably. An endpoint is switched
    off by taking it out of its program.

    Args:
        name: The endpoint.
        args: What people wrote.
        metadata: The object's.
        queue: Where the tasks of an ASYNC endpoint wait.
        opts: Its options: what it belongs to, and what must stand before it and go after it.
    """
    match autoscaling.owner(args):
        case autoscaling.Owner.DEPLOYMENT:
            return None
        case autoscaling.Owner.HPA:
            return k8s.autoscaling.v2.HorizontalPodAutoscaler(
                f"{name}-autoscaler",
                metadata={**metadata, "annotations": autoscaling.LETS_KEDA_TAKE_OVER},
                spec=autoscaling.hpa_spec(name, args),
                opts=opts,
            )
        case autoscaling.Owner.KEDA:
            return k8s.apiextensions.CustomResource(
                f"{name}-scaled-object",
                api_version=autoscaling.SCALED_OBJECT_API,
                kind=autoscaling.SCALED_OBJECT_KIND,
                metadata=metadata,
                spec=autoscaling.scaled_object_spec(name, args, queue),
                # It goes when its operator says so: without one, say it rather than wait for ever.
                opts=pulumi.ResourceOptions.merge(
                    opts,
                    pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(delete="2m")),
                ),
            )
