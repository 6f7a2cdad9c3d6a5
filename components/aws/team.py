"""A team in AWS: the role of its endpoints, and what its deployments may do."""

from typing import Annotated

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
from pydantic import Field, InstanceOf

from ..contracts import In
from ..domain.args import Args
from ..domain.names import K8sName
from ..foundation import Bucket
from ..kube import workload
from . import limits, policies, queues, rights
from .account import AwsAccount
from .identity import TEAM_ACCOUNT
from .pod_role import PodRole, PodRoleArgs

SHARED_WEIGHTS = "shared/"
"""What the keys of weights begin with that every team may read."""

KeyPrefix = Annotated[str, Field(max_length=1024, pattern=r"^([A-Za-z0-9][A-Za-z0-9!_.-]*/)*$")]
"""What keys begin with, ending in ``/``; empty is every key."""


class AwsTeamArgs(Args):
    """Who the team is, and what it may touch."""

    account: AwsAccount
    """Where it is."""
    prefix: K8sName
    """The environment's name, which the names of its queues begin with."""
    team: K8sName
    """The team's name."""
    namespace: In[str]
    """The team's namespace."""
    cluster_name: In[str]
    """The EKS cluster."""
    weights: InstanceOf[Bucket]
    """The weights' bucket."""
    weights_prefixes: tuple[KeyPrefix, ...] | None = Field(default=None, min_length=1)
    """Where in it the team may read: ``<team>/`` and ``shared/`` when left out; ``("",)`` is
    everywhere."""
    queues_key_arn: In[str] | None = None
    """The KMS key of the queues' messages; SQS's own when left out."""
    boundary_arn: In[str] | None = None
    """The permissions boundary of the team's role."""

    @property
    def readable(self) -> tuple[str, ...]:
        """What the keys of weights begin with that the team may read."""
        return self.weights_prefixes or (f"{self.team}/", SHARED_WEIGHTS)


class AwsTeam(pulumi.ComponentResource):
    """The role that all endpoints of a team have: its own weights to read, its own tasks to take.

    Creates a PodRole for the service account ``endpoints`` of the team's namespace, that service
    account, and an IAM policy for whoever deploys the team's endpoints: it may create, change and
    delete the team's queues, and see no message in them. No endpoint makes a role, so that neither
    a team nor the endpoint builder needs a right over IAM.
    """

    role_arn: pulumi.Output[str]
    service_account: pulumi.Output[str]
    deployer_policy_arn: pulumi.Output[str]
    """Attach it to the role of the team's CI."""

    def __init__(
        self, name: str, args: AwsTeamArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:AwsTeam", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = PodRole(
            f"{name}-endpoints",
            PodRoleArgs(
                account=args.account,
                cluster_name=args.cluster_name,
                namespace=args.namespace,
                service_account=TEAM_ACCOUNT,
                policy=policies.document(endpoint_statements(args)),
                boundary_arn=args.boundary_arn,
            ),
            child,
        )
        account = k8s.core.v1.ServiceAccount(
            f"{name}-account",
            metadata=workload.metadata(TEAM_ACCOUNT, args.namespace, component="identity"),
            automount_service_account_token=False,
            opts=pulumi.ResourceOptions(parent=self, depends_on=role.ready),
        )
        deployer = aws.iam.Policy(
            limits.autonamed(name, "deployer", limit=limits.IAM_POLICY),
            description=f"Deploys the endpoints of the team {args.team}",
            policy=policies.document(rights.deploy_queues(args.account, args.prefix, args.team)),
            opts=child,
        )
        self.role_arn = role.role_arn
        self.service_account = account.metadata.apply(lambda meta: meta.name or TEAM_ACCOUNT)
        self.deployer_policy_arn = deployer.arn
        self.register_outputs(
            {
                "role_arn": self.role_arn,
                "service_account": self.service_account,
                "deployer_policy_arn": self.deployer_policy_arn,
            }
        )


def endpoint_statements(args: AwsTeamArgs) -> policies.Statements:
    """Return what the team's endpoints may do."""
    key = None if args.queues_key_arn is None else pulumi.Output.from_input(args.queues_key_arn)
    own = queues.of_team(args.account, args.prefix, args.team, key)
    return [
        *rights.read_bucket(args.account, args.weights, args.readable),
        *rights.consume_queues(args.account, own),
    ]
