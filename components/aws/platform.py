"""The platform of an environment in AWS, as one team sees it."""

from dataclasses import dataclass
from typing import Self

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from ..contracts import PlatformContract
from ..domain.names import K8sName
from ..foundation import Bucket
from ..kube.connection import provider as kubernetes
from ..serving.platform import Metrics, Platform
from .broker import SqsBroker
from .contracts import AwsTeamContract
from .identity import TeamIdentity


@dataclass(frozen=True, kw_only=True)
class AwsPlatform(Platform):
    """A platform whose tasks go over SQS and whose workers have roles of AWS."""

    @classmethod
    def read(
        cls,
        stack: str,
        *,
        team: K8sName,
        environment: K8sName | None = None,
        metrics: Metrics = "prometheus-adapter",
    ) -> Self:
        """Read what the platform's stack hands to a team.

        Whoever can read the platform's stack and use its secrets provider can decrypt every secret
        in it, other teams' too; see ``LocalPlatform.read``.

        Args:
            stack: ``acme/llm-platform/platform.prod-aws``; ``organization/…`` on a self-managed
                backend.
            team: The team, as the platform's settings name it.
            environment: What the names of the environment's queues begin with; what follows
                ``platform.`` in the stack's name when left out.
            metrics: Who reads endpoints' concurrency, as the platform's settings name it.

        Raises:
            ValueError: for a stack whose name tells no environment.
            pulumi.RunError: (when the values are used) naming what the stack doesn't publish.
        """
        reference = pulumi.StackReference(f"platform-{team}", stack_name=stack)
        own = AwsTeamContract.read(reference, AwsTeamContract.prefix(team))
        return cls.of(
            PlatformContract.read(reference),
            own,
            team=team,
            environment=environment or _environment_of(stack),
            metrics=metrics,
            provider=kubernetes(f"team-{team}", own.kubeconfig),
        )

    @classmethod
    def of(
        cls,
        shared: PlatformContract,
        own: AwsTeamContract,
        *,
        team: K8sName,
        environment: K8sName,
        metrics: Metrics = "prometheus-adapter",
        provider: k8s.Provider | None = None,
        cloud_provider: aws.Provider | None = None,
    ) -> Self:
        """Return what the contracts of the platform and of a team tell of.

        Args:
            shared: The platform's contract.
            own: The team's.
            team: The team, as the platform's settings name it.
            environment: What the names of the environment's queues begin with. Plain, for it makes
                names.
            metrics: Who reads endpoints' concurrency.
            provider: The access to the cluster, where the program has none of its own for it.
            cloud_provider: The access to the account that queues are made with; the program's
                default one when left out.
        """
        return cls(
            team=team,
            namespace=own.namespace,
            services_image=shared.services_image,
            gateway_url=shared.gateway_url,
            weights=Bucket(name=own.weights_bucket, region=own.region, read_only=True),
            identity=TeamIdentity(),
            broker=SqsBroker(
                prefix=environment,
                team=team,
                region=own.region,
                key_arn=own.queues_key_arn,
                provider=cloud_provider,
            ),
            prometheus_url=shared.prometheus_url,
            redis_address=shared.redis_address,
            redis_tls=True,
            cacher_url=shared.cacher_url,
            metrics=metrics,
            provider=provider,
        )


def _environment_of(stack: str) -> str:
    layer, dot, environment = stack.rpartition("/")[2].partition(".")
    if layer != "platform" or not dot or not environment:
        raise ValueError(
            f"{stack!r} isn't called platform.<environment>: say environment=…, what the names of "
            "its queues begin with"
        )
    return environment
