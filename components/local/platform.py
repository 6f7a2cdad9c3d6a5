"""The platform of a ``local`` environment, as one team sees it."""

from dataclasses import dataclass
from typing import Self

import pulumi

from ..contracts import PlatformContract, TeamContract
from ..domain.names import K8sName
from ..foundation import Bucket
from ..serving.platform import Platform
from .cluster import provider
from .identity import LocalIdentity


@dataclass(frozen=True, kw_only=True)
class LocalPlatform(Platform):
    """A platform whose data services are pods."""

    @classmethod
    def read(cls, stack: str, *, team: K8sName) -> Self:
        """Read what the platform's stack hands to a team.

        Whoever can read the platform's stack and use its secrets provider can decrypt every secret
        in it: the admin key, the cluster's kubeconfig and other teams' contracts too. Until teams'
        contracts have stacks of their own, let the platform's pipeline hand an app team's CI its
        outputs, or treat that CI as trusted with the whole platform.

        Args:
            stack: ``organization/llm-platform/platform.local`` on a self-managed backend.
            team: The team, as the platform's settings name it.

        Raises:
            pulumi.RunError: (when the values are used) naming what the stack doesn't publish.
        """
        reference = pulumi.StackReference(f"platform-{team}", stack_name=stack)
        shared = PlatformContract.read(reference)
        own = TeamContract.read(reference, TeamContract.prefix(team))
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
            provider=provider(f"team-{team}", own.kubeconfig),
        )
