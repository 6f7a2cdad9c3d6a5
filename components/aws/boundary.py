"""The most that any pod's role of an environment could ever do."""

import pulumi
import pulumi_aws as aws

from ..contracts import In
from ..domain.args import Args
from ..domain.scaling_source import CLOUDWATCH_NAMESPACE
from . import limits, policies, queues, rights
from .account import AwsAccount


class BoundaryArgs(Args):
    """What belongs to the environment."""

    account: AwsAccount
    """Where it is."""
    prefix: str
    """What the names of its queues, and of secrets that people keep for it, begin with."""
    bucket_names: tuple[In[str], ...] = ()
    """Its buckets."""
    key_arns: tuple[In[str], ...] = ()
    """The keys of its buckets, queues and secrets."""
    secret_arns: tuple[In[str], ...] = ()
    """Its own secrets, such as the database's password."""
    metrics_namespace: str = CLOUDWATCH_NAMESPACE
    """CloudWatch's namespace of its metrics."""
    database_resource_id: In[str] | None = None
    """Its database, for logging in with a token."""
    workspace_arn: In[str] | None = None
    """Its workspace of Amazon's managed Prometheus."""


class Boundary(pulumi.ComponentResource):
    """A permissions boundary: whatever a role's own policies say, it can do no more than this.

    Creates an IAM policy that allows what pods of the platform do, on what belongs to this
    environment. It has neither IAM nor ``sts:AssumeRole``, so that no role with it makes or becomes
    another; whoever may create roles only with this boundary can't give more than it has.
    """

    arn: pulumi.Output[str]

    def __init__(
        self, name: str, args: BoundaryArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:Boundary", name, None, opts)
        policy = aws.iam.Policy(
            limits.autonamed(name, "boundary", limit=limits.IAM_POLICY),
            description="The most that a pod's role of this environment can do",
            policy=policies.document(boundary_statements(args)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.arn = policy.arn
        self.register_outputs({"arn": self.arn})


def boundary_statements(args: BoundaryArgs) -> policies.Statements:
    """Return what the boundary allows."""
    buckets = [rights.bucket_arn(args.account, name) for name in args.bucket_names]
    objects = [pulumi.Output.format("{0}/*", arn) for arn in buckets]
    own_queues = [queues.of_all(args.account, args.prefix).arn]
    kept = args.account.arn("secretsmanager", f"secret:{args.prefix}/*")
    secrets: list[In[str]] = [*args.secret_arns, kept]
    statements = [
        policies.allow("Queues", _QUEUE_ACTIONS, own_queues),
        policies.allow("Secrets", _SECRET_ACTIONS, secrets),
        *rights.publish_metrics(args.metrics_namespace),
        *rights.read_metrics(),
    ]
    if buckets:
        statements.append(policies.allow("Objects", _OBJECT_ACTIONS, objects))
        statements.append(policies.allow("Buckets", ["s3:ListBucket"], buckets))
    if args.key_arns:
        statements.append(policies.allow("Keys", _KEY_ACTIONS, args.key_arns))
    if args.database_resource_id is not None:
        statements.extend(rights.log_in_to_database(args.account, args.database_resource_id, "*"))
    if args.workspace_arn is not None:
        statements.extend(rights.query_prometheus(args.workspace_arn))
    return statements


_OBJECT_ACTIONS = [
    "s3:GetObject",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
]
_QUEUE_ACTIONS = [
    "sqs:SendMessage",
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
]
_SECRET_ACTIONS = ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"]
_KEY_ACTIONS = ["kms:Decrypt", "kms:GenerateDataKey"]
