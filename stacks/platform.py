"""The platform: add-ons, teams, gateway, cacher, and the platform's own endpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import pulumi
import pulumi_kubernetes as k8s

from components import (
    Cacher,
    CacherArgs,
    Contract,
    Gateway,
    GatewayArgs,
    ModelEndpoint,
    Namespace,
    NamespaceArgs,
    PlatformContract,
    Team,
    TeamArgs,
    TeamContract,
)
from components.foundation import Foundation
from components.kube.connection import provider, require_reachable
from components.serving.platform import Platform

from .addons import MONITORING, Addons, install, join_mesh
from .aws import AwsCloud
from .aws_settings import AwsPlatformSettings
from .cloud import Cloud
from .endpoints import endpoints
from .local import LocalCloud
from .reading import PROJECT, load
from .settings import LocalPlatformSettings, PlatformSettings, TeamSettings

NAMESPACE = "llm-platform"
SETTINGS = {"local": LocalPlatformSettings, "aws": AwsPlatformSettings}


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
    return deploy_with(environment, load(SETTINGS))


def deploy_with(
    environment: str,
    settings: PlatformSettings,
    reachable: Callable[[str], str] = require_reachable,
) -> Published:
    """Build it with settings that were read before; ``reachable`` checks the kubeconfig."""
    cloud = cloud_of(environment, settings)
    check_endpoints(cloud, settings)
    stack = settings.foundation or f"organization/{PROJECT}/foundation.{environment}"
    foundation = cloud.read(stack)
    kubeconfig = foundation.cluster.kubeconfig.apply(reachable)
    return build(environment, settings, cloud, foundation, kubeconfig)


def cloud_of(environment: str, settings: PlatformSettings) -> Cloud:
    """Return the cloud that settings are of."""
    match settings:
        case AwsPlatformSettings():
            return AwsCloud(environment, settings)
        case LocalPlatformSettings():
            return LocalCloud(settings)
        case _:
            raise TypeError(f"{type(settings).__name__} are of no cloud")


def build(
    environment: str,
    settings: PlatformSettings,
    cloud: Cloud,
    foundation: Foundation,
    kubeconfig: pulumi.Output[str],
) -> Published:
    """Build it on a cluster that is known to answer."""
    cluster = provider(f"{environment}-cluster", kubeconfig)
    accesses = [cluster, *cloud.providers()]
    operators = cloud.operators(environment, pulumi.ResourceOptions(providers=accesses))
    inherited = pulumi.ResourceOptions(providers=accesses, depends_on=operators)
    scope = Namespace(environment, NamespaceArgs(name=NAMESPACE), inherited)
    addons = install(environment, settings, cloud, foundation, inherited)
    # A namespace waits at its end for KEDA to let go of what is scaled in it, whoever declared it.
    settled = pulumi.ResourceOptions(providers=accesses, depends_on=addons.keda)
    teams = {
        team.name: Team(
            f"{environment}-{team.name}",
            _team(team, scope, foundation, kubeconfig),
            settled,
        )
        for team in settings.teams
    }
    scopes = {NAMESPACE: scope.namespace}
    scopes |= {f"team-{name}": team.scope.namespace for name, team in teams.items()}
    proxies = join_mesh(environment, settings, scopes, inherited)
    gateway = Gateway(
        f"{environment}-gateway",
        _gateway(
            settings, cloud=cloud, scope=scope, foundation=foundation, teams=teams, addons=addons
        ),
        pulumi.ResourceOptions(
            providers=accesses,
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
            team_redis_passwords={
                name: team.redis_password for name, team in teams.items() if team.redis_password
            },
        ),
        # The database has its tables once the gateway's migration is done.
        pulumi.ResourceOptions(providers=accesses, depends_on=[gateway.migration]),
    )
    published = Published(
        shared=PlatformContract(
            gateway_url=gateway.url,
            gateway_address=cloud.address(f"{environment}-gateway", gateway, inherited),
            admin_key=gateway.admin_key,
            namespace=scope.name,
            services_image=pulumi.Output.from_input(settings.images.services),
            prometheus_url=addons.prometheus_url,
            redis_address=foundation.redis.address,
            cacher_url=cacher.url,
        ),
        teams={
            team.name: cloud.admit(f"{environment}-{team.name}", team, teams[team.name], settled)
            for team in settings.teams
        },
    )
    for name, args in endpoints(_views(published, cloud, cluster), settings).items():
        home = teams[args.platform.team].scope.namespace
        ready = [*addons.autoscaling, *proxies]
        ModelEndpoint(name, args, pulumi.ResourceOptions(deleted_with=home, depends_on=ready))
    return published


def check_endpoints(cloud: Cloud, settings: PlatformSettings) -> None:
    """Make every endpoint's args once, so that a wrong one is found before anything is registered.

    Raises:
        pydantic.ValidationError: naming the endpoint's field.
    """
    nowhere = pulumi.Output.from_input("nowhere:0")
    own = cloud.team_contract
    stand_ins = Published(
        shared=PlatformContract(**dict.fromkeys(_fields(PlatformContract), nowhere)),
        teams={team.name: own(**dict.fromkeys(_fields(own), nowhere)) for team in settings.teams},
    )
    endpoints(_views(stand_ins, cloud), settings)


def _fields(contract: type[Contract]) -> list[str]:
    return [field.name for field in fields(contract)]


def _views(
    published: Published, cloud: Cloud, cluster: k8s.Provider | None = None
) -> dict[str, Platform]:
    """Return the platform as each team sees it."""
    return {
        name: cloud.view(published.shared, own, team=name, provider=cluster)
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
        paths=foundation.paths,
        redis_user=foundation.broker == "redis",
    )


def _gateway(
    settings: PlatformSettings,
    *,
    cloud: Cloud,
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
        node_port=cloud.node_port(),
        request_timeout_seconds=wished.request_timeout_seconds,
    )
