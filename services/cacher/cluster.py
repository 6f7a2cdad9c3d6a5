"""What the cacher knows of the cluster: kept current by watches, looked at as a whole."""

import asyncio
from dataclasses import dataclass

from services.core.kube import Objects, ObjectSource

from .lift import sleeps


@dataclass(frozen=True)
class Sources:
    """Where each kind of objects comes from."""

    namespaces: ObjectSource
    config_maps: ObjectSource
    slices: ObjectSource
    deployments: ObjectSource


class Cluster:
    """The latest state of all watched objects."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.namespaces: Objects | None = None
        self.config_maps: Objects | None = None
        self.slices: Objects | None = None
        self.asleep: Objects = {}
        """Deployments without pods, as far as they are known: waking one may wait."""
        self.changed = asyncio.Event()

    @property
    def synced(self) -> bool:
        """Whether all that decides over registrations was listed at least once."""
        return None not in (self.namespaces, self.config_maps, self.slices)

    async def follow_namespaces(self) -> None:
        """Follow namespaces until cancelled."""
        async for objects in self._sources.namespaces.snapshots():
            self.namespaces = objects
            self.changed.set()

    async def follow_config_maps(self) -> None:
        """Follow ConfigMaps until cancelled."""
        async for objects in self._sources.config_maps.snapshots():
            self.config_maps = objects
            self.changed.set()

    async def follow_slices(self) -> None:
        """Follow EndpointSlices until cancelled."""
        async for objects in self._sources.slices.snapshots():
            self.slices = objects
            self.changed.set()

    async def follow_deployments(self) -> None:
        """Follow workers' Deployments until cancelled; only those that sleep are of interest."""
        async for objects in self._sources.deployments.snapshots():
            asleep = {key: item for key, item in objects.items() if sleeps(item)}
            if asleep != self.asleep:
                self.asleep = asleep
                self.changed.set()
