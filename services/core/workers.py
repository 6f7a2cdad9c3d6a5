"""Workers as EndpointSlices tell them: which there are, and which take requests."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from components.domain import labels

from .pool import Address

_PORT_NAME = "http"


@dataclass(frozen=True)
class WorkerSet:
    """The workers of one endpoint."""

    known: frozenset[Address]
    """All that exist, also those that are starting or ending."""
    ready: frozenset[Address]
    """Those that take new requests."""


Target = tuple[str, str]
"""Namespace and endpoint: two teams' endpoints of one name stay two."""


def workers_of(slices: Iterable[dict[str, Any]]) -> dict[Target, WorkerSet]:
    """Read the workers of every endpoint from its slices."""
    known: dict[Target, set[Address]] = {}
    ready: dict[Target, set[Address]] = {}
    for item in slices:
        metadata = item["metadata"]
        endpoint = metadata.get("labels", {}).get(labels.ENDPOINT)
        port = _port(item)
        if endpoint is None or port is None or item.get("addressType") == "FQDN":
            continue
        target = (metadata["namespace"], endpoint)
        for entry in item.get("endpoints") or []:
            addresses = {Address(address, port) for address in entry.get("addresses") or []}
            known.setdefault(target, set()).update(addresses)
            if _takes_requests(entry.get("conditions") or {}):
                ready.setdefault(target, set()).update(addresses)
    return {
        target: WorkerSet(frozenset(addresses), frozenset(ready.get(target, ())))
        for target, addresses in known.items()
    }


def _port(item: dict[str, Any]) -> int | None:
    ports = item.get("ports") or []
    for port in ports:
        if port.get("name") == _PORT_NAME:
            return port.get("port")
    return ports[0].get("port") if len(ports) == 1 else None


def _takes_requests(conditions: dict[str, Any]) -> bool:
    # An absent "ready" means unknown, which the API asks to be read as true.
    return conditions.get("ready") is not False and not conditions.get("terminating")
