"""Conditions on ConfigMaps: how a person sees why a registration isn't in force."""

import json

import aiohttp
import structlog
from kubernetes_asyncio import client

from services.core.kube import Object

from .errors import Unfit
from .registrations import CONDITION


def condition_of(problem: Unfit) -> str:
    """Return a problem as the annotation's text."""
    return json.dumps(
        {
            "type": "Registered",
            "status": "False",
            "reason": type(problem).__name__,
            "message": str(problem),
        }
    )


class Conditions:
    """Writes the annotation where it isn't right yet, and takes it away when all is well."""

    def __init__(self, api: client.CoreV1Api, log: structlog.typing.FilteringBoundLogger) -> None:
        self._api = api
        self._log = log

    async def apply(
        self, config_maps: dict[tuple[str, str], Object], problems: dict[tuple[str, str], Unfit]
    ) -> None:
        """Bring every ConfigMap's condition to what it should be; failures are tried next time."""
        for key, item in config_maps.items():
            have = (item["metadata"].get("annotations") or {}).get(CONDITION)
            problem = problems.get(key)
            want = condition_of(problem) if problem is not None else None
            if have != want:
                await self._write(key, want)

    async def _write(self, key: tuple[str, str], text: str | None) -> None:
        namespace, name = key
        patch = {"metadata": {"annotations": {CONDITION: text}}}
        log = self._log.bind(namespace=namespace, config_map=name)
        try:
            await self._api.patch_namespaced_config_map(name, namespace, patch, _request_timeout=10)
        except client.ApiException as error:
            if error.status != 404:  # gone meanwhile
                log.warning("condition can't be written", error=f"{error.status} {error.reason}")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            log.warning("condition can't be written", error=type(error).__name__)
        else:
            log.info("condition written" if text else "condition cleared", condition=text)
