"""The platform: teams, gateway, cacher, and the platform's own endpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pulumi

from components import (
    Cacher,
    CacherArgs,
    FoundationContract,
    Gateway,
    GatewayArgs,
    LocalPlatform,
    ModelEndpoint,
    Namespace,
    NamespaceArgs,
    PlatformContract,
    Team,
    TeamArgs,
    TeamContract,
)
from components.foundation import Bucket, Foundation
from components.local import storage
from components.local.cluster import host_of, provider, require_reachable
from components.local.foundation import foundation_from
from components.local.identity import LocalIdentity

from .endpoints import endpoints
from .settings import PROJECT, LocalPlatformSettings, load

NAMESPACE = "llm-platform"


@dataclass(frozen=True, kw_only=True)
class Published:
    """What the platform hands to others."""

    shared: PlatformContract
    teams: Mapping[str, TeamContract]

    def publish(self) -> None:
        """Export all of it as stack outputs."""
        self.shared.publish()
        for team, contract in self.teams.items():
            contract.publish(TeamContract.prefix(team))


def deploy(environment: str) -> Published:
    """Build the platform of an environment on its foundation.

    Raises:
        SettingsError: when a setting is wrong; nothing is registered then.
        pydantic.ValidationError: when an endpoint is; nothing is registered then either.
        pulumi.RunError: when the cluster can't be reached; nothing is changed then.
    """
    return deploy_with(environment, load(LocalPlatformSettings))


def deploy_with(
    environment: str,
    settings: LocalPlatformSettings,
    reachable: Callable[[str], str] = require_reachable,
) -> Published:
    """Build it with settings that were read before; ``reachable`` checks the kubeconfig."""
    check_endpoints(settings)
    stack = settings.foundation or f"organization/{PROJECT}/foundation.{environment}"
    contract = FoundationContract.read(stack)
    kubeconfig = contract.kubeconfig.apply(reachable)
    return build(environment, settings, foundation_from(contract), kubeconfig)


def build(
    environment: str,
    settings: LocalPlatformSettings,
    foundation: Foundation,
    kubeconfig: pulumi.Output[str],
) -> Published:
    """Build it on a cluster that is known to answer."""
    cluster = provider(f"{environment}-cluster", kubeconfig)
    inherited = pulumi.ResourceOptions(providers=[cluster])
    scope = Namespace(environment, NamespaceArgs(name=NAMESPACE), inherited)
    teams = {
        team.name: Team(
            f"{environment}-{team.name}",
            TeamArgs(
                name=team.name,
                gpus=team.gpus,
                endpoints=team.endpoints,
                workers=team.workers,
                cpu=team.cpu,
                memory=team.memory,
                kubeconfig=kubeconfig,
                platform_namespace=scope.name,
                data_namespace=foundation.namespace,
                weights_port=storage.READER_PORT,
            ),
            inherited,
        )
        for team in settings.teams
    }
    gateway = Gateway(
        f"{environment}-gateway",
        GatewayArgs(
            namespace=scope.name,
            image=settings.images.services,
            foundation=foundation,
            team_keys={name: team.gateway_key for name, team in teams.items()},
            replicas=settings.gateway.replicas,
            memory=settings.gateway.memory,
            node_port=settings.gateway.node_port,
            request_timeout_seconds=settings.gateway.request_timeout_seconds,
        ),
        inherited,
    )
    Cacher(
        f"{environment}-cacher",
        CacherArgs(
            namespace=scope.name,
            image=settings.images.services,
            foundation=foundation,
            team_namespaces={name: team.namespace for name, team in teams.items()},
        ),
        # The database has its tables once the gateway's migration is done.
        pulumi.ResourceOptions(providers=[cluster], depends_on=[gateway.migration]),
    )
    views = {
        name: LocalPlatform(
            team=name,
            namespace=team.namespace,
            services_image=settings.images.services,
            gateway_url=gateway.url,
            weights=foundation.bucket_reader,
            identity=foundation.identity,
            provider=cluster,
        )
        for name, team in teams.items()
    }
    for name, args in endpoints(views, settings).items():
        home = teams[args.platform.team].scope.namespace
        ModelEndpoint(name, args, pulumi.ResourceOptions(deleted_with=home))
    return Published(
        shared=_shared(settings, gateway, scope, kubeconfig),
        teams={name: _contract(team, foundation) for name, team in teams.items()},
    )


def check_endpoints(settings: LocalPlatformSettings) -> None:
    """Make every endpoint's args once, so that a wrong one is found before anything is registered.

    Raises:
        pydantic.ValidationError: naming the endpoint's field.
    """
    nothing = pulumi.Output.from_input("")
    bucket = Bucket(
        name=nothing,
        region=nothing,
        endpoint=nothing,
        access_key=nothing,
        secret_key=nothing,
        read_only=True,
    )
    views = {
        team.name: LocalPlatform(
            team=team.name,
            namespace="",
            services_image=settings.images.services,
            gateway_url="",
            weights=bucket,
            identity=LocalIdentity(),
        )
        for team in settings.teams
    }
    endpoints(views, settings)


def _shared(
    settings: LocalPlatformSettings,
    gateway: Gateway,
    scope: Namespace,
    kubeconfig: pulumi.Output[str],
) -> PlatformContract:
    outside = pulumi.Output.unsecret(kubeconfig).apply(
        lambda text: (
            settings.gateway.address or f"http://{host_of(text)}:{settings.gateway.node_port}"
        )
    )
    return PlatformContract(
        gateway_url=gateway.url,
        gateway_address=outside,
        admin_key=gateway.admin_key,
        namespace=scope.name,
        services_image=pulumi.Output.from_input(settings.images.services),
    )


def _contract(team: Team, foundation: Foundation) -> TeamContract:
    reader = foundation.bucket_reader
    return TeamContract(
        namespace=team.namespace,
        gateway_key=team.gateway_key,
        kubeconfig=team.kubeconfig,
        bucket_name=reader.name,
        bucket_region=reader.region,
        bucket_endpoint=reader.endpoint,
        bucket_access_key=reader.access_key,
        bucket_secret_key=reader.secret_key,
    )
