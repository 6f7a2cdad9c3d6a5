"""Permissions in AWS: a role for each workload by EKS Pod Identity, or its team's role."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pulumi

from ..contracts import In
from ..foundation import Binding, Bucket, Database, Grant, Permission, Redis, SqsQueues
from . import policies, rights
from .account import AwsAccount
from .pod_role import PodRole, PodRoleArgs
from .wiring import wire

TEAM_ACCOUNT = "endpoints"
"""The service account of all endpoints of a team; the team's role is associated with it."""
WITHOUT_CREDENTIALS = {"eks.amazonaws.com/skip-containers": "model"}
"""On a pod: the ``model`` container, which runs others' code, gets no credentials, while the
others do (README of aws/amazon-eks-pod-identity-webhook, read 2026-11; EKS's own agent is
installed with the same annotation)."""


@dataclass(frozen=True, kw_only=True)
class PodIdentity:
    """Binds grants by giving a workload's service account a role of its own.

    The role may do exactly what was granted. What has to stay secret all the same, Redis' password,
    becomes a Secret beside the workload.
    """

    account: AwsAccount
    """Where everything is."""
    cluster_name: In[str]
    """The EKS cluster."""
    boundary_arn: In[str] | None = None
    """The permissions boundary of every role."""
    more: Mapping[str, policies.Statements] = field(default_factory=dict[str, policies.Statements])
    """What some workloads may do beyond their grants, by the workload's name."""

    def bind(
        self,
        name: str,
        *,
        workload_name: str,
        namespace: In[str],
        grants: Sequence[Grant],
        opts: pulumi.ResourceOptions,
        container: str = "",
    ) -> Binding:
        """Create the role, and return what leads to what was granted."""
        wiring = wire(
            name,
            workload_name=workload_name,
            namespace=namespace,
            grants=grants,
            opts=opts,
            container=container,
        )
        statements = [
            statement for grant in grants for statement in statements_of(self.account, grant)
        ]
        statements.extend(self.more.get(workload_name, ()))
        if not statements:
            return wiring
        role = PodRole(
            f"{name}-identity",
            PodRoleArgs(
                account=self.account,
                cluster_name=self.cluster_name,
                namespace=namespace,
                service_account=workload_name,
                policy=policies.document(statements),
                boundary_arn=self.boundary_arn,
            ),
            opts,
        )
        return replace(wiring, needs=[*wiring.needs, *role.ready])


@dataclass(frozen=True, kw_only=True)
class TeamIdentity:
    """Binds grants of a team's endpoints, which all run with the team's role.

    The platform has made the role and associated it with the service account ``endpoints`` of the
    team's namespace; nothing is made in AWS here. The role, not the grant, says what may be done.
    """

    def bind(
        self,
        name: str,
        *,
        workload_name: str,
        namespace: In[str],
        grants: Sequence[Grant],
        opts: pulumi.ResourceOptions,
        container: str = "",
    ) -> Binding:
        """Return what leads to what was granted.

        Raises:
            ValueError: for a grant of the platform's database, which no team's role opens.
        """
        if any(isinstance(grant.resource, Database) for grant in grants):
            raise ValueError(
                f"{workload_name} was granted the database, and a team's endpoints never reach it: "
                "take the grant out, or bind it with the platform's identity"
            )
        wiring = wire(
            name,
            workload_name=workload_name,
            namespace=namespace,
            grants=grants,
            opts=opts,
            container=container,
        )
        return replace(wiring, service_account=TEAM_ACCOUNT, pod_annotations=WITHOUT_CREDENTIALS)


def statements_of(account: AwsAccount, grant: Grant) -> policies.Statements:
    """Return what a grant allows in AWS; Redis asks for a password and knows no roles.

    Raises:
        ValueError: for a permission that the thing granted doesn't know.
    """
    permission = grant.permission
    match grant.resource:
        case Redis():
            return []
        case Database() as database:
            if database.secret_arn is None:
                return []
            return rights.read_secret(account, database.secret_arn, database.secret_key_arn)
        case Bucket() as bucket if permission in _BUCKETS:
            if bucket.read_only and permission is not Permission.READ:
                raise ValueError(
                    f"a grant to {permission.value} was given a bucket that can only be read"
                )
            return _BUCKETS[permission](account, bucket)
        case SqsQueues() as found if permission in _QUEUES:
            return _QUEUES[permission](account, found)
        case _:
            kind = type(grant.resource).__name__
            raise ValueError(f"{permission.value!r} is nothing that a {kind} can be granted for")


_BUCKETS = {
    Permission.READ: rights.read_bucket,
    Permission.WRITE: rights.write_bucket,
    Permission.CLEAR: rights.clear_bucket,
}
_QUEUES = {
    Permission.CONSUME: rights.consume_queues,
    Permission.SEND: rights.send_queues,
    Permission.COUNT: rights.count_queues,
}
