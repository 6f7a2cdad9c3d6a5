"""What programs may do: for each thing, the statements with exactly the actions of its calls.

Pure functions of plain values and outputs; ``policies.document`` makes a policy of them.
"""

from collections.abc import Sequence

import pulumi

from ..contracts import In
from ..foundation import Bucket, SqsQueues
from . import queues as named
from .account import AwsAccount
from .policies import Conditions, Statements, allow


def bucket_arn(account: AwsAccount, name: In[str]) -> pulumi.Output[str]:
    """Return a bucket's ARN, which names neither account nor region."""
    return pulumi.Output.format("arn:{0}:s3:::{1}", account.partition, name)


def read_bucket(account: AwsAccount, bucket: Bucket, prefixes: Sequence[str] = ()) -> Statements:
    """May read objects: all of them, and list them too, or only those under ``prefixes``.

    The right to list can't be narrowed without S3 answering a missing object with 403 all the same,
    and lists would tell teams of each other; so with prefixes there is none.
    """
    arn = bucket_arn(account, bucket.name)
    objects = [pulumi.Output.format("{0}/{1}*", arn, prefix) for prefix in prefixes or [""]]
    listing = [] if prefixes else [allow("ListObjects", ["s3:ListBucket"], [arn])]
    return [
        allow("ReadObjects", ["s3:GetObject"], objects),
        *listing,
        *_bucket_key(account, bucket, ["kms:Decrypt"]),
    ]


def write_bucket(account: AwsAccount, bucket: Bucket) -> Statements:
    """May list, read, write and delete objects; old versions of them stay out of reach."""
    arn = bucket_arn(account, bucket.name)
    return [
        allow(
            "WriteObjects",
            ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
            [pulumi.Output.format("{0}/*", arn)],
        ),
        allow("ListObjects", ["s3:ListBucket"], [arn]),
        *_bucket_key(account, bucket, ["kms:Decrypt", "kms:GenerateDataKey"]),
    ]


def clear_bucket(account: AwsAccount, bucket: Bucket) -> Statements:
    """May list and delete objects, and read none; old versions of them stay."""
    arn = bucket_arn(account, bucket.name)
    return [
        allow("DeleteObjects", ["s3:DeleteObject"], [pulumi.Output.format("{0}/*", arn)]),
        allow("ListObjects", ["s3:ListBucket"], [arn]),
    ]


def publish_weights(account: AwsAccount, bucket: Bucket) -> Statements:
    """May add versions of weights, in parts, and see what is there; for whoever publishes."""
    arn = bucket_arn(account, bucket.name)
    return [
        allow(
            "PublishWeights",
            ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"],
            [pulumi.Output.format("{0}/*", arn)],
        ),
        allow("ListObjects", ["s3:ListBucket"], [arn]),
        *_bucket_key(account, bucket, ["kms:Decrypt", "kms:GenerateDataKey"]),
    ]


def consume_queues(account: AwsAccount, queues: SqsQueues) -> Statements:
    """May take tasks, keep, settle and release them, and move one to the dead letters."""
    return [
        allow(
            "TakeTasks",
            [
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                "sqs:ChangeMessageVisibility",
                "sqs:GetQueueAttributes",
            ],
            [named.tasks_arn(queues.arn)],
        ),
        allow("GiveUpTasks", ["sqs:SendMessage"], [named.dead_arn(queues.arn)]),
        *_queue_key(account, queues),
    ]


def send_queues(account: AwsAccount, queues: SqsQueues) -> Statements:
    """May send tasks, and see dead letters, put them back and delete them."""
    return [
        allow(
            "SendTasks",
            ["sqs:SendMessage", "sqs:GetQueueAttributes"],
            [named.tasks_arn(queues.arn)],
        ),
        allow(
            "PutBackDeadLetters",
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"],
            [named.dead_arn(queues.arn)],
        ),
        *_queue_key(account, queues),
    ]


def count_queues(account: AwsAccount, queues: SqsQueues) -> Statements:
    """May ask how many tasks there are, and nothing else."""
    del account
    return [allow("CountTasks", ["sqs:GetQueueAttributes"], [named.tasks_arn(queues.arn)])]


def read_secret(account: AwsAccount, secret_arn: In[str], key_arn: In[str] | None) -> Statements:
    """May read one secret."""
    statements = [allow("ReadSecret", ["secretsmanager:GetSecretValue"], [secret_arn])]
    if key_arn is not None:
        conditions: Conditions = {
            "StringEquals": {
                "kms:ViaService": account.service("secretsmanager"),
                "kms:EncryptionContext:SecretARN": secret_arn,
            }
        }
        statements.append(allow("DecryptSecret", ["kms:Decrypt"], [key_arn], conditions))
    return statements


def log_in_to_database(account: AwsAccount, resource_id: In[str], user: str) -> Statements:
    """May connect as a database user with a token instead of a password."""
    arn = pulumi.Output.format("{0}:{1}/{2}", account.arn("rds-db", "dbuser"), resource_id, user)
    return [allow("LogInToDatabase", ["rds-db:connect"], [arn])]


def publish_metrics(namespace: str) -> Statements:
    """May publish CloudWatch metrics in one namespace.

    The action knows no resources; the condition is what limits it.
    """
    conditions: Conditions = {"StringEquals": {"cloudwatch:namespace": namespace}}
    return [allow("PublishMetrics", ["cloudwatch:PutMetricData"], ["*"], conditions)]


def read_metrics() -> Statements:
    """May read CloudWatch metrics; the action knows neither resources nor conditions."""
    return [allow("ReadMetrics", ["cloudwatch:GetMetricData"], ["*"])]


def query_prometheus(workspace_arn: In[str]) -> Statements:
    """May query a workspace of Amazon's managed Prometheus."""
    return [allow("QueryPrometheus", ["aps:QueryMetrics"], [workspace_arn])]


def read_external_secrets(
    account: AwsAccount, prefix: str, key_arn: In[str] | None = None
) -> Statements:
    """May read secrets that people keep under ``<prefix>/``, for the External Secrets operator."""
    arns = account.arn("secretsmanager", f"secret:{prefix}/*")
    statements = [
        allow(
            "ReadExternalSecrets",
            ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"],
            [arns],
        )
    ]
    if key_arn is not None:
        conditions: Conditions = {
            "StringEquals": {"kms:ViaService": account.service("secretsmanager")},
            "StringLike": {"kms:EncryptionContext:SecretARN": arns},
        }
        statements.append(allow("DecryptExternalSecrets", ["kms:Decrypt"], [key_arn], conditions))
    return statements


def pull_through(account: AwsAccount, prefix: str) -> Statements:
    """May have ECR fetch an image that it doesn't have yet, for nodes.

    The first pull of a repository creates it.
    """
    actions = ["ecr:BatchImportUpstreamImage", "ecr:CreateRepository"]
    return [allow("PullThrough", actions, [account.arn("ecr", f"repository/{prefix}/*")])]


def deploy_queues(account: AwsAccount, prefix: str, team: str) -> Statements:
    """May create, change, tag and delete a team's queues, for whoever deploys its endpoints.

    It sees no message: neither receiving nor sending is here.
    """
    actions = [
        "sqs:CreateQueue",
        "sqs:DeleteQueue",
        "sqs:GetQueueAttributes",
        "sqs:SetQueueAttributes",
        "sqs:GetQueueUrl",
        "sqs:TagQueue",
        "sqs:UntagQueue",
        "sqs:ListQueueTags",
    ]
    return [allow("DeployQueues", actions, [named.of_team(account, prefix, team).arn])]


def _bucket_key(account: AwsAccount, bucket: Bucket, actions: Sequence[str]) -> Statements:
    """Allow the use of a bucket's key, by S3 and for this bucket only.

    With a bucket key it is the bucket's ARN that S3 puts into the encryption context.
    """
    if bucket.key_arn is None:
        return []
    conditions: Conditions = {
        "StringEquals": {
            "kms:ViaService": account.service("s3"),
            "kms:EncryptionContext:aws:s3:arn": bucket_arn(account, bucket.name),
        }
    }
    return [allow("UseBucketKey", actions, [bucket.key_arn], conditions)]


def _queue_key(account: AwsAccount, queues: SqsQueues) -> Statements:
    """Allow the use of the queues' key by SQS; sending takes both of the actions."""
    if queues.key_arn is None:
        return []
    conditions: Conditions = {"StringEquals": {"kms:ViaService": account.service("sqs")}}
    actions = ["kms:Decrypt", "kms:GenerateDataKey"]
    return [allow("UseQueueKey", actions, [queues.key_arn], conditions)]
