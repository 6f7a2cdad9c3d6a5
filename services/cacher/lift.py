"""Waking workloads that an autoscaler leaves at zero."""

from collections.abc import Iterable

import aiohttp
import structlog
from kubernetes_asyncio import client

from components.domain import labels
from services.core.kube import Object, Objects

from .registrations import Claim

_CONFLICT = 409
_GONE = 404


def sleeps(deployment: Object) -> bool:
    """Return whether a Deployment is told to have no pods."""
    return deployment.get("spec", {}).get("replicas") == 0


class Lift:
    """Gives an endpoint that is meant to have workers its least number when it has none.

    An HPA takes a workload at zero as one that a person switched off, and leaves it alone; an
    endpoint whose ``min_workers`` was raised from 0 would sleep for ever. So would one of a fixed
    number, when its former autoscaler wrote once more before it went.
    """

    def __init__(self, api: client.AppsV1Api, log: structlog.typing.FilteringBoundLogger) -> None:
        self._api = api
        self._log = log

    async def apply(self, claims: Iterable[Claim], deployments: Objects) -> None:
        """Wake what sleeps and shouldn't; failures are tried next time."""
        for claim in claims:
            registration = claim.registration
            deployment = deployments.get((claim.namespace, registration.name))
            if deployment is None or not sleeps(deployment):
                continue
            found = deployment["metadata"].get("labels") or {}
            owned = found.get(labels.ENDPOINT) == registration.name
            if owned and registration.min_workers >= 1:
                await self._wake(claim, deployment)

    async def _wake(self, claim: Claim, deployment: Object) -> None:
        name, workers = claim.registration.name, claim.registration.min_workers
        # With its version: if anybody has scaled it meanwhile, theirs stands.
        version = deployment["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "spec": {"replicas": workers}}
        log = self._log.bind(namespace=claim.namespace, endpoint=name)
        try:
            await self._api.patch_namespaced_deployment_scale(
                name, claim.namespace, patch, _request_timeout=10
            )
        except client.ApiException as error:
            if error.status not in {_CONFLICT, _GONE}:
                log.warning("it can't be woken", error=f"{error.status} {error.reason}")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            log.warning("it can't be woken", error=type(error).__name__)
        else:
            log.info("woken from zero", workers=workers)
