"""The platform: add-ons, teams, gateway, cacher, and the platform's own endpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import pulumi
import pulumi_kubernetes as k8s

from components import (
    Cacher,
    CacherArgs,
    Contract,
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
from components.foundation import Foundation
from components.local import storage
from components.local.cluster import host_of, provider, require_reachable
from components.local.foundation import foundation_from

from .addons import MONITORING, Addons, install, join_mesh
from .endpoints import endpoints
from .settings import PROJECT, LocalPlatformSettings, TeamSettings, load

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
    addons = install(environment, settings, foundation, inherited)
    teams = {
        team.name: Team(
            f"{environment}-{team.name}",
            _team(team, scope, foundation, kubeconfig),
            # A namespace waits at its end for KEDA to let go of what is scaled in it, whoever
            # declared that.
            pulumi.ResourceOptions(providers=[cluster], depends_on=addons.keda),
        )
        for team in settings.teams
    }
    scopes = {NAMESPACE: scope.namespace}
    scopes |= {f"team-{name}": team.scope.namespace for name, team in teams.items()}
    proxies = join_mesh(environment, settings, scopes, inherited)
    gateway = Gateway(
        f"{environment}-gateway",
        _gateway(settings, scope, foundation, teams, addons),
        pulumi.ResourceOptions(
            providers=[cluster],
            depends_on=[*proxies, *(addons.keda if settings.metrics == "keda" else [])],
        ),
    )
    cacher = Cacher(
        f"{environment}-cacher",
        CacherArgs(
            namespace=scope.name,
            image=settings.images.services,
            foundation=foundation,
            team_namespaces={name: team.namespace for name, team in teams.items()},
            team_redis_passwords={name: team.redis_password for name, team in teams.items()},
            bucket_port=storage.PORT,
        ),
        # The database has its tables once the gateway's migration is done.
        pulumi.ResourceOptions(providers=[cluster], depends_on=[gateway.migration]),
    )
    published = Published(
        shared=PlatformContract(
            gateway_url=gateway.url,
            gateway_address=_outside(settings, kubeconfig),
            admin_key=gateway.admin_key,
            namespace=scope.name,
            services_image=pulumi.Output.from_input(settings.images.services),
            prometheus_url=addons.prometheus_url,
            redis_address=foundation.redis.address,
            cacher_url=cacher.url,
        ),
        teams={name: _contract(team, foundation) for name, team in teams.items()},
    )
    for name, args in endpoints(_views(published, settings, cluster), settings).items():
        home = teams[args.platform.team].scope.namespace
        ready = [*addons.autoscaling, *proxies]
        ModelEndpoint(name, args, pulumi.ResourceOptions(deleted_with=home, depends_on=ready))
    return published


def check_endpoints(settings: LocalPlatformSettings) -> None:
    """Make every endpoint's args once, so that a wrong one is found before anything is registered.

    Raises:
        pydantic.ValidationError: naming the endpoint's field.
    """
    nowhere = pulumi.Output.from_input("nowhere:0")
    stand_ins = Published(
        shared=PlatformContract(**dict.fromkeys(_fields(PlatformContract), nowhere)),
        teams={
            team.name: TeamContract(**dict.fromkeys(_fields(TeamContract), nowhere))
            for team in settings.teams
        },
    )
    endpoints(_views(stand_ins, settings), settings)


def _fields(contract: type[Contract]) -> list[str]:
    return [field.name for field in fields(contract)]


def _views(
    published: Published, settings: LocalPlatformSettings, cluster: k8s.Provider | None = None
) -> dict[str, LocalPlatform]:
    """Return the platform as each team sees it."""
    return {
        name: LocalPlatform.of(
            published.shared, own, team=name, metrics=settings.metrics, provider=cluster
        )
        for name, own in published.teams.items()
    }


def _team(
    team: TeamSettings, scope: Namespace, foundation: Foundation, kubeconfig: pulumi.Output[str]
) -> TeamArgs:
    return TeamArgs(
        name=team.name,
        gpus=team.gpus,
        endpoints=team.endpoints,
        workers=team.workers,
        cpu=team.cpu,
        memory=team.memory,
        callbacks=team.callbacks,
        kubeconfig=kubeconfig,
        platform_namespace=scope.name,
        monitoring_namespace=MONITORING,
        data_namespace=foundation.namespace,
        weights_port=storage.READER_PORT,
    )


def _gateway(
    settings: LocalPlatformSettings,
    scope: Namespace,
    foundation: Foundation,
    teams: Mapping[str, Team],
    addons: Addons,
) -> GatewayArgs:
    wished = settings.gateway
    return GatewayArgs(
        namespace=scope.name,
        image=settings.images.services,
        foundation=foundation,
        team_keys={name: team.gateway_key for name, team in teams.items()},
        replicas=wished.replicas,
        max_replicas=wished.max_replicas,
        target_concurrency=wished.target_concurrency,
        metrics=settings.metrics,
        prometheus_url=addons.prometheus_url,
        routing="workers" if settings.mesh == "none" else "service",
        memory=wished.memory,
        bucket_port=storage.PORT,
        node_port=wished.node_port,
        request_timeout_seconds=wished.request_timeout_seconds,
    )


def _outside(settings: LocalPlatformSettings, kubeconfig: pulumi.Output[str]) -> pulumi.Output[str]:
    """Return where programs outside of the cluster reach the gateway."""
    return pulumi.Output.unsecret(kubeconfig).apply(
        lambda text: (
            settings.gateway.address or f"http://{host_of(text)}:{settings.gateway.node_port}"
        )
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
        redis_password=team.redis_password,
    )
