"""The platform of a ``local`` environment, as one team sees it."""

from dataclasses import dataclass
from typing import Self

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import PlatformContract
from ..domain import keys
from ..domain.names import K8sName
from ..foundation import Bucket, Redis
from ..kube.connection import provider
from ..serving.platform import Metrics, Platform
from .broker import RedisBroker
from .contracts import LocalTeamContract
from .identity import LocalIdentity


@dataclass(frozen=True, kw_only=True)
class LocalPlatform(Platform):
    """A platform whose data services are pods."""

    @classmethod
    def read(cls, stack: str, *, team: K8sName, metrics: Metrics = "prometheus-adapter") -> Self:
        """Read what the platform's stack hands to a team.

        Whoever can read the platform's stack and use its secrets provider can decrypt every secret
        in it: the admin key, the cluster's kubeconfig and other teams' contracts too. Until teams'
        contracts have stacks of their own, let the platform's pipeline hand an app team's CI its
        outputs, or treat that CI as trusted with the whole platform.

        Args:
            stack: ``organization/llm-platform/platform.local`` on a self-managed backend.
            team: The team, as the platform's settings name it.
            metrics: Who reads endpoints' concurrency, as the platform's settings name it.

        Raises:
            pulumi.RunError: (when the values are used) naming what the stack doesn't publish.
        """
        reference = pulumi.StackReference(f"platform-{team}", stack_name=stack)
        own = LocalTeamContract.read(reference, LocalTeamContract.prefix(team))
        return cls.of(
            PlatformContract.read(reference),
            own,
            team=team,
            metrics=metrics,
            provider=provider(f"team-{team}", own.kubeconfig),
        )

    @classmethod
    def of(
        cls,
        shared: PlatformContract,
        own: LocalTeamContract,
        *,
        team: K8sName,
        metrics: Metrics = "prometheus-adapter",
        provider: k8s.Provider | None = None,
    ) -> Self:
        """Return what the contracts of the platform and of a team tell of.

        Args:
            shared: The platform's contract.
            own: The team's.
            team: The team, as the platform's settings name it.
            metrics: Who reads endpoints' concurrency.
            provider: The access to the cluster, where the program has none of its own for it.
        """
        return cls(
            team=team,
            namespace=own.namespace,
            services_image=shared.services_image,
            gateway_url=shared.gateway_url,
            weights=Bucket(
                name=own.bucket_name,
                region=own.bucket_region,
                endpoint=own.bucket_endpoint,
                access_key=own.bucket_access_key,
                secret_key=own.bucket_secret_key,
                read_only=True,
            ),
            identity=LocalIdentity(),
            broker=RedisBroker(redis=_redis(shared, own, team)),
            prometheus_url=shared.prometheus_url,
            redis_address=shared.redis_address,
            cacher_url=shared.cacher_url,
            metrics=metrics,
            provider=provider,
        )


def _redis(shared: PlatformContract, own: LocalTeamContract, team: K8sName) -> Redis:
    """Return Redis as the team's workers use it."""
    return Redis(
        host=shared.redis_address.apply(lambda address: address.rpartition(":")[0]),
        port=shared.redis_address.apply(lambda address: int(address.rpartition(":")[2])),
        user=keys.team_user(team),
        password=own.redis_password,
    )
