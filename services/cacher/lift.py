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
_SCALED_OBJECTS = ("keda.sh", "v1alpha1")


def sleeps(deployment: Object) -> bool:
    """Return whether a Deployment is told to have no pods."""
    return deployment.get("spec", {}).get("replicas") == 0


class Lift:
    """Gives an endpoint that is meant to have workers its least number when it has none.

    An HPA takes a workload at zero as one that a person switched off, and leaves it alone; an
    endpoint whose ``min_workers`` was raised from 0 would sleep for ever. So would one of a fixed
    number, when its former autoscaler wrote once more before it went.

    KEDA lifts what it scales itself. While an update hands an endpoint over from it, it would put
    to sleep again what is woken here, so its object has to go first.
    """

    def __init__(
        self,
        api: client.AppsV1Api,
        custom: client.CustomObjectsApi,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._api = api
        self._custom = custom
        self._log = log
        self.waiting = False
        """Whether something sleeps that is to be looked at again soon."""

    async def apply(self, claims: Iterable[Claim], deployments: Objects) -> None:
        """Wake what sleeps and shouldn't; failures are tried next time."""
        self.waiting = False
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
        self.waiting = True
        name, workers = claim.registration.name, claim.registration.min_workers
        # With its version: if anybody has scaled it meanwhile, theirs stands.
        version = deployment["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "spec": {"replicas": workers}}
        log = self._log.bind(namespace=claim.namespace, endpoint=name)
        try:
            if await self._is_kedas(claim):
                return
            await self._api.patch_namespaced_deployment_scale(
                name, claim.namespace, patch, _request_timeout=10
            )
        except client.ApiException as error:
            if error.status not in {_CONFLICT, _GONE}:
                log.warning("it can't be woken", error=f"{error.status} {error.reason}")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            log.warning("it can't be woken", error=type(error).__name__)
        else:
            self.waiting = False
            log.info("woken from zero", workers=workers)

    async def _is_kedas(self, claim: Claim) -> bool:
        """Return whether KEDA scales it now; without KEDA in the cluster it doesn't."""
        try:
            await self._custom.get_namespaced_custom_object(
                *_SCALED_OBJECTS,
                claim.namespace,
                "scaledobjects",
                claim.registration.name,
                _request_timeout=10,
            )
        except client.ApiException as error:
            if error.status != _GONE:
                raise
            return False
        return True
