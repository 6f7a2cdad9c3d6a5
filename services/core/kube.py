"""Watching objects of the Kubernetes API: list, then watch, and list again when told to."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import aiohttp
import structlog
from kubernetes_asyncio import client, config

from .backoff import Backoff

Object = dict[str, Any]
Objects = dict[tuple[str, str], Object]
"""Objects by namespace and name."""

_WATCH_SECONDS = 240
_MARGIN_SECONDS = 30
_LIST_SECONDS = 30
_CONNECT_SECONDS = 10
_GONE = 410

ListCall = Callable[..., Awaitable[Any]]


class ObjectSource(Protocol):
    """Something that tells the whole set of objects, again after every change."""

    def snapshots(self) -> AsyncIterator[Objects]:
        """Yield the current set at once, then after each change; it never ends by itself."""
        ...


class _Expired(Exception):  # noqa: N818
    """The API server no longer knows the version that we watch from."""


async def kube_client(kubeconfig: str = "") -> client.ApiClient:
    """Return a client from the pod's service account, or from a kubeconfig for development."""
    configuration = client.Configuration()
    if kubeconfig:
        await config.load_kube_config(kubeconfig, client_configuration=configuration)
    else:
        config.load_incluster_config(client_configuration=configuration)
    return client.ApiClient(configuration)


class Watched:
    """An ObjectSource over the Kubernetes API, which outlives outages of the API server.

    Args:
        call: a list method of kubernetes_asyncio, for all namespaces.
        label_selector: which objects.
        log: where outages are told.
    """

    def __init__(
        self, call: ListCall, label_selector: str, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._call = call
        self._selector = label_selector
        self._log = log

    async def snapshots(self) -> AsyncIterator[Objects]:
        """Yield the objects at once and after each change."""
        backoff = Backoff()
        objects: Objects = {}
        version = ""
        while True:
            try:
                if not version:
                    objects, version = await self._list()
                    yield dict(objects)
                async for kind, item in self._watch(version):
                    backoff.reset()
                    version = item["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        _apply(objects, kind, item)
                        yield dict(objects)
            except _Expired:
                version = ""
                await backoff.wait()
            except (aiohttp.ClientError, client.ApiException, OSError, TimeoutError) as error:
                if isinstance(error, client.ApiException) and error.status == _GONE:
                    version = ""
                self._log.warning("the Kubernetes API is away", error=_brief(error))
                await backoff.wait()

    async def _list(self) -> tuple[Objects, str]:
        async with asyncio.timeout(_LIST_SECONDS):
            response = await self._call(label_selector=self._selector, _preload_content=False)
            _raise_for_status(response)
            body = json.loads(await response.read())
        return {_key(item): item for item in body["items"]}, body["metadata"]["resourceVersion"]

    async def _watch(self, version: str) -> AsyncIterator[tuple[str, Object]]:
        # The server ends a watch itself; one that it doesn't end is a connection gone dead.
        response = await self._call(
            label_selector=self._selector,
            watch=True,
            resource_version=version,
            allow_watch_bookmarks=True,
            timeout_seconds=_WATCH_SECONDS,
            _request_timeout=aiohttp.ClientTimeout(
                total=_WATCH_SECONDS + _MARGIN_SECONDS, sock_connect=_CONNECT_SECONDS
            ),
            _preload_content=False,
        )
        try:
            _raise_for_status(response)
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise _error_of(event["object"])
                    yield event["type"], event["object"]
        finally:
            response.close()


def _raise_for_status(response: Any) -> None:
    if response.status >= 400:
        response.close()
        raise client.ApiException(status=response.status, reason=response.reason)


def _error_of(status: Object) -> Exception:
    if status.get("code") == _GONE:
        return _Expired(status.get("message", ""))
    return client.ApiException(status=status.get("code"), reason=status.get("message"))


def _brief(error: Exception) -> str:
    if isinstance(error, client.ApiException):
        return f"{error.status} {error.reason}"
    return f"{type(error).__name__}: {error}"


def _key(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _apply(objects: Objects, kind: str, item: Object) -> None:
    if kind == "DELETED":
        objects.pop(_key(item), None)
    else:
        objects[_key(item)] = item
