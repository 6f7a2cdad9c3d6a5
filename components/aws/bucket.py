"""One private bucket of S3, with everything that a bucket should have."""

from typing import Annotated

import pulumi
import pulumi_aws as aws
from pydantic import AfterValidator, Field

from ..contracts import In
from ..domain.args import Args
from . import limits, policies, rights
from .account import AwsAccount
from .protection import kept


def _bucket_name(value: str) -> str:
    fits = 3 <= len(value) <= limits.S3_BUCKET
    plain = value.replace("-", "a").replace(".", "a")
    if not fits or not plain.isascii() or not plain.isalnum() or value != value.lower():
        raise ValueError(
            f"{value!r} isn't a bucket's name: 3 to {limits.S3_BUCKET} lower-case letters, digits, "
            "'-' and '.'"
        )
    return value


BucketName = Annotated[str, AfterValidator(_bucket_name)]
"""A bucket's name; it is unique among the buckets of everybody."""


class PrivateBucketArgs(Args):
    """What a bucket keeps, and for how long."""

    account: AwsAccount
    """Where it is."""
    key_arn: In[str]
    """The KMS key of its objects."""
    bucket_name: BucketName | None = None
    """Its name; the component's with random digits when left out."""
    expire_days: int | None = Field(default=None, ge=1)
    """How long an object stays; for ever when left out."""
    old_versions_days: int = Field(default=30, ge=1)
    """How long an object that was deleted or written over can be had back."""
    old_versions_kept: int = Field(default=0, ge=0, le=100)
    """How many of an object's newest old versions stay longer than that."""
    ephemeral: bool = False
    """Whether the environment may be thrown away: no protection, and deleted with its objects."""


class PrivateBucket(pulumi.ComponentResource):
    """A bucket that keeps old versions, encrypts with our key, and is open to nobody by itself.

    Creates the bucket; its versioning, encryption (with a bucket key, so that KMS is asked once for
    many objects), lifecycle, ownership (no ACLs) and public access block; a policy that refuses
    requests without TLS.
    """

    bucket_name: pulumi.Output[str]
    arn: pulumi.Output[str]
    ready: pulumi.Resource
    """What must stand before anything is put into the bucket: its versioning and encryption do."""

    def __init__(
        self, name: str, args: PrivateBucketArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("llm-platform:index:PrivateBucket", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        bucket = aws.s3.Bucket(
            limits.autonamed(name, limit=limits.S3_BUCKET),
            bucket=args.bucket_name,
            force_destroy=args.ephemeral,
            opts=kept(self, ephemeral=args.ephemeral),
        )
        self.bucket_name = bucket.bucket
        self.arn = rights.bucket_arn(args.account, bucket.bucket)
        self._close()
        versioning = self._keep_versions()
        self.ready = self._encrypt()
        aws.s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=self.bucket_name,
            rules=_rules(args),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[versioning]),
        )
        self.register_outputs({"bucket_name": self.bucket_name, "arn": self.arn})

    def _close(self) -> None:
        block = aws.s3.BucketPublicAccessBlock(
            f"{self._name}-public-access",
            bucket=self.bucket_name,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._child,
        )
        aws.s3.BucketOwnershipControls(
            f"{self._name}-ownership",
            bucket=self.bucket_name,
            rule={"object_ownership": "BucketOwnerEnforced"},
            opts=self._child,
        )
        everything = [self.arn, pulumi.Output.format("{0}/*", self.arn)]
        aws.s3.BucketPolicy(
            f"{self._name}-policy",
            bucket=self.bucket_name,
            policy=policies.document(policies.only_encrypted_transport("s3", everything)),
            # S3 refuses two changes of one bucket's access at the same time.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[block]),
        )

    def _keep_versions(self) -> aws.s3.BucketVersioning:
        return aws.s3.BucketVersioning(
            f"{self._name}-versioning",
            bucket=self.bucket_name,
            versioning_configuration={"status": "Enabled"},
            opts=self._child,
        )

    def _encrypt(self) -> aws.s3.BucketServerSideEncryptionConfiguration:
        return aws.s3.BucketServerSideEncryptionConfiguration(
            f"{self._name}-encryption",
            bucket=self.bucket_name,
            rules=[
                {
                    "apply_server_side_encryption_by_default": {
                        "sse_algorithm": "aws:kms",
                        "kms_master_key_id": self._args.key_arn,
                    },
                    "bucket_key_enabled": True,
                }
            ],
            opts=self._child,
        )


_UNFINISHED_DAYS = 7
"""Parts of uploads that were never finished are paid for and seen in no list."""


def _rules(args: PrivateBucketArgs) -> list[aws.s3.BucketLifecycleConfigurationRuleArgsDict]:
    old: aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgsDict = {
        "noncurrent_days": args.old_versions_days
    }
    if args.old_versions_kept:
        old["newer_noncurrent_versions"] = args.old_versions_kept
    rules: list[aws.s3.BucketLifecycleConfigurationRuleArgsDict] = [
        {
            "id": "unfinished-uploads",
            "status": "Enabled",
            "filter": {"prefix": ""},
            "abort_incomplete_multipart_upload": {"days_after_initiation": _UNFINISHED_DAYS},
        },
        {
            "id": "old-versions",
            "status": "Enabled",
            "filter": {"prefix": ""},
            "noncurrent_version_expiration": old,
        },
    ]
    if args.expire_days is None:
        # What a deletion leaves when the last old version is gone.
        end: aws.s3.BucketLifecycleConfigurationRuleExpirationArgsDict = {
            "expired_object_delete_marker": True
        }
    else:
        end = {"days": args.expire_days}
    rules.append(
        {"id": "expiration", "status": "Enabled", "filter": {"prefix": ""}, "expiration": end}
    )
    return rules
