"""A ``local`` environment: everything in one cluster that is there already."""

from typing import cast

import pulumi
import pulumi_kubernetes as k8s

from components import Gateway, LocalPlatform, PlatformContract, Team, TeamContract
from components.foundation import Foundation
from components.kube.connection import host_of, provider
from components.local.cluster import load_kubeconfig
from components.local.contracts import LocalFoundationContract, LocalTeamContract
from components.local.foundation import LocalFoundation, LocalFoundationArgs, foundation_from

from .cloud import Cloud
from .reading import SettingsError
from .settings import LocalFoundationSettings, LocalPlatformSettings, TeamSettings


def named_kubeconfig(settings: LocalFoundationSettings) -> str:
    """Return the kubeconfig that the settings name.

    Raises:
        SettingsError: saying what is missing in which file.
    """
    try:
        return load_kubeconfig(settings.kubeconfig_path, settings.context or None)
    except ValueError as error:
        raise SettingsError(f"llm-platform:kubeconfig: {error}") from None


def foundation(
    environment: str, settings: LocalFoundationSettings, kubeconfig: str
) -> LocalFoundationContract:
    """Build the foundation on a cluster that is known to answer."""
    args = LocalFoundationArgs(
        kubeconfig=kubeconfig,
        registry=settings.registry,
        images=settings.images,
        volumes=settings.volumes,
        storage_class=settings.storage_class,
    )
    cluster = provider(f"{environment}-cluster", kubeconfig)
    return LocalFoundation(environment, args, pulumi.ResourceOptions(providers=[cluster])).contract


class LocalCloud(Cloud):
    """An environment whose data services are pods."""

    team_contract = LocalTeamContract

    def __init__(self, settings: LocalPlatformSettings) -> None:
        self._settings = settings

    def read(self, stack: str) -> Foundation:
        """Return what the foundation's stack tells of."""
        self._foundation = foundation_from(LocalFoundationContract.read(stack))
        return self._foundation

    def view(
        self,
        shared: PlatformContract,
        own: TeamContract,
        *,
        team: str,
        provider: k8s.Provider | None,
    ) -> LocalPlatform:
        """Return the platform as a team sees it."""
        return LocalPlatform.of(
            shared,
            cast("LocalTeamContract", own),
            team=team,
            metrics=self._settings.metrics,
            provider=provider,
        )

    def admit(
        self,
        name: str,
        settings: TeamSettings,
        team: Team,
        opts: pulumi.ResourceOptions,
    ) -> LocalTeamContract:
        """Return what is handed to a team."""
        weights = self._foundation.weights
        nothing = pulumi.Output.from_input("")
        return LocalTeamContract(
            namespace=team.namespace,
            gateway_key=team.gateway_key,
            kubeconfig=team.kubeconfig,
            bucket_name=weights.name,
            bucket_region=weights.region,
            bucket_endpoint=weights.endpoint or nothing,
            bucket_access_key=weights.access_key or nothing,
            bucket_secret_key=weights.secret_key or nothing,
            redis_password=team.redis_password or nothing,
        )

    def node_port(self) -> int:
        """Return the port on every node that leads to the gateway."""
        return self._settings.gateway.node_port

    def address(
        self,
        name: str,
        gateway: Gateway,
        opts: pulumi.ResourceOptions,
    ) -> pulumi.Output[str]:
        """Return where programs outside of the cluster reach the gateway."""
        wished = self._settings.gateway
        return pulumi.Output.unsecret(self._foundation.cluster.kubeconfig).apply(
            lambda text: wished.address or f"http://{host_of(text)}:{wished.node_port}"
        )
