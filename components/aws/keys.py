"""The keys that everything is encrypted with."""

from collections.abc import Callable
from enum import StrEnum

import pulumi
import pulumi_aws as aws
from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from . import limits
from .account import AwsAccount
from .policies import Conditions, Statement, Statements, document
from .protection import kept

_USE = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]


class Purpose(StrEnum):
    """What a key is for."""

    CLUSTER = "cluster"
    """Kubernetes' secrets, the cluster's logs, and the nodes' disks."""
    DATA = "data"
    """The database with its password and its backups, and Redis with its passwords."""
    STORAGE = "storage"
    """Buckets, and a file system beside them."""
    QUEUES = "queues"
    """Tasks in queues."""
    IMAGES = "images"
    """Images in the registry."""


class AwsKeysArgs(Args):
    """How keys are kept."""

    account: AwsAccount
    """Where they are."""
    rotation_days: int = Field(
        default=365,
        ge=limits.KMS_SHORTEST_ROTATION_DAYS,
        le=limits.KMS_LONGEST_ROTATION_DAYS,
    )
    """How often AWS gives each of them new material; what was encrypted before stays readable."""
    deletion_window_days: int = Field(
        default=limits.KMS_LONGEST_WAIT_DAYS,
        ge=limits.KMS_SHORTEST_WAIT_DAYS,
        le=limits.KMS_LONGEST_WAIT_DAYS,
    )
    """How long a deleted key can be had back; then all that it encrypted is lost."""
    lustre: bool = False
    """Whether FSx for Lustre may read the buckets on behalf of a file system."""
    ephemeral: bool = False
    """Whether the environment may be thrown away: without it the keys are protected."""


class AwsKeys(pulumi.ComponentResource):
    """One key for each purpose, so that the right to one opens nothing of the others.

    Creates five KMS keys with rotation, and their aliases ``alias/<name>-<purpose>``. Each can be
    used by whom IAM allows it; beyond that only by the AWS services that have no role of ours.
    """

    cluster_arn: pulumi.Output[str]
    data_arn: pulumi.Output[str]
    storage_arn: pulumi.Output[str]
    queues_arn: pulumi.Output[str]
    images_arn: pulumi.Output[str]

    def __init__(
        self, name: str, args: AwsKeysArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:AwsKeys", name, None, opts)
        self._name, self._args = name, args
        arns = {purpose: self._key(purpose) for purpose in Purpose}
        self.cluster_arn = arns[Purpose.CLUSTER]
        self.data_arn = arns[Purpose.DATA]
        self.storage_arn = arns[Purpose.STORAGE]
        self.queues_arn = arns[Purpose.QUEUES]
        self.images_arn = arns[Purpose.IMAGES]
        self.register_outputs({f"{purpose}_arn": arn for purpose, arn in arns.items()})

    def _key(self, purpose: Purpose) -> pulumi.Output[str]:
        key = aws.kms.Key(
            f"{self._name}-{purpose}",
            description=f"{self._name}: {purpose}",
            policy=document(key_statements(purpose, self._args)),
            enable_key_rotation=True,
            rotation_period_in_days=self._args.rotation_days,
            deletion_window_in_days=self._args.deletion_window_days,
            opts=kept(self, ephemeral=self._args.ephemeral),
        )
        aws.kms.Alias(
            f"{self._name}-{purpose}-alias",
            name=f"alias/{self._name}-{purpose}",
            target_key_id=key.key_id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return key.arn


def key_statements(purpose: Purpose, args: AwsKeysArgs) -> Statements:
    """Return a key's own policy."""
    special: dict[Purpose, Callable[[AwsAccount], Statements]] = {Purpose.CLUSTER: _of_cluster}
    if args.lustre:
        special[Purpose.STORAGE] = _of_storage
    own: Statements = special[purpose](args.account) if purpose in special else ()
    return [_managed_by_iam(args.account), *own]


def _managed_by_iam(account: AwsAccount) -> Statement:
    """Leave it to IAM who may use and manage the key; without this nobody ever could again.

    In a key's policy ``*`` is the key itself (KMS developer guide, default key policy).
    """
    return {
        "Sid": "ManagedByIam",
        "Effect": "Allow",
        "Principal": {"AWS": account.global_arn("iam", "root")},
        "Action": ["kms:*"],
        "Resource": ["*"],
    }


def _of_cluster(account: AwsAccount) -> Statements:
    """Let CloudWatch encrypt the cluster's logs, and autoscaling start nodes with encrypted disks.

    The service-linked roles are named by a condition: as principals they would have to exist.
    """
    logs: Conditions = {
        "ArnLike": {"kms:EncryptionContext:aws:logs:arn": account.arn("logs", "log-group:*")}
    }
    starters = [
        account.global_arn("iam", f"role/aws-service-role/{role}")
        for role in (
            "autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
            "spot.amazonaws.com/AWSServiceRoleForEC2Spot",
        )
    ]
    return [
        {
            "Sid": "EncryptLogs",
            "Effect": "Allow",
            "Principal": {"Service": account.service("logs")},
            "Action": _USE,
            "Resource": ["*"],
            "Condition": logs,
        },
        _by_roles(account, "UseDisks", _USE, {"ArnEquals": {"aws:PrincipalArn": starters}}),
        _by_roles(
            account,
            "AttachDisks",
            ["kms:CreateGrant"],
            {
                "ArnEquals": {"aws:PrincipalArn": starters},
                "Bool": {"kms:GrantIsForAWSResource": "true"},
            },
        ),
    ]


def _of_storage(account: AwsAccount) -> Statements:
    """Let FSx read objects for a file system, by the role that it makes for each of them.

    (FSx for Lustre user guide, server-side encrypted buckets; read 2026-11.)
    """
    role = "role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com"
    conditions: Conditions = {
        "ArnLike": {
            "aws:PrincipalArn": account.global_arn("iam", f"{role}/AWSServiceRoleForFSxS3Access_*")
        },
        "StringEquals": {"kms:ViaService": account.service("s3")},
    }
    return [_by_roles(account, "FillFileSystems", ["kms:Decrypt", "kms:DescribeKey"], conditions)]


def _by_roles(
    account: AwsAccount, sid: str, actions: list[str], conditions: Conditions
) -> Statement:
    """Return a statement for roles of this account that conditions name."""
    own: dict[str, In[str]] = {"kms:CallerAccount": account.id}
    equal = {**own, **conditions.get("StringEquals", {})}
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": actions,
        "Resource": ["*"],
        "Condition": {**conditions, "StringEquals": equal},
    }
