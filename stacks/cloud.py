"""What a cloud is to the platform's program, which asks no more of it than this."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import pulumi
import pulumi_kubernetes as k8s

from components import Gateway, PlatformContract, Team, TeamContract
from components.foundation import Foundation
from components.serving.platform import Platform

from .settings import TeamSettings


class Cloud(ABC):
    """One environment in one cloud."""

    team_contract: ClassVar[type[TeamContract]]
    """What a team is handed in this cloud."""
    pod_identity: ClassVar[Literal["aws"] | None] = None
    """The cloud whose identities pods have; none where they are given credentials."""

    @abstractmethod
    def read(self, stack: str) -> Foundation:
        """Return what the environment's foundation gives; called once, before all that follows."""

    def providers(self) -> Sequence[pulumi.ProviderResource]:
        """Return the accesses that the environment's components need besides the cluster's."""
        return []

    @abstractmethod
    def view(
        self,
        shared: PlatformContract,
        own: TeamContract,
        *,
        team: str,
        provider: k8s.Provider | None,
    ) -> Platform:
        """Return the platform as a team sees it; needs nothing that was read."""

    @abstractmethod
    def admit(
        self, name: str, settings: TeamSettings, team: Team, opts: pulumi.ResourceOptions
    ) -> TeamContract:
        """Create what a team needs in this cloud, and return what is handed to it."""

    @abstractmethod
    def address(
        self, name: str, gateway: Gateway, opts: pulumi.ResourceOptions
    ) -> pulumi.Output[str]:
        """Create what leads to the gateway from outside, and return its address there."""

    def node_port(self) -> int | None:
        """Return the port on every node that leads to the gateway, where there is one."""
        return None

    def operators(
        self,
        name: str,
        opts: pulumi.ResourceOptions,
    ) -> Sequence[pulumi.Resource]:
        """Create what the cluster needs in this cloud before add-ons and workloads.

        Args:
            name: What the names of the resources begin with.
            opts: The access to the cluster.

        Returns:
            What must stand before them, and goes after them.
        """
        return []
