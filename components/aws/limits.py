"""AWS's limits on names and numbers, where they were read, and names that stay within them.

Read in botocore 1.44.8's service models (2026-11) unless said otherwise; each says which member.
"""

from ..domain.names import safe_name

AUTONAME_SUFFIX = 8
"""What Pulumi adds to the name of a resource that we leave to it: ``-`` and 7 random digits
(pulumi-terraform-bridge, ``AutoName``)."""

SQS_NAME = 80
"""A queue's name (SQS API, ``CreateQueue``)."""
SQS_LONGEST_RETENTION_SECONDS = 1_209_600
"""14 days (``CreateQueue``, ``MessageRetentionPeriod``)."""
SQS_SHORTEST_RETENTION_SECONDS = 60
SQS_LONGEST_VISIBILITY_SECONDS = 43_200
"""12 hours (``CreateQueue``, ``VisibilityTimeout``)."""
SQS_LARGEST_MESSAGE_BYTES = 1_048_576
"""1 MiB (``CreateQueue``, ``MaximumMessageSize``); pulumi-aws 7.51.1 takes as much."""
SQS_LONGEST_POLL_SECONDS = 20
"""(``CreateQueue``, ``ReceiveMessageWaitTimeSeconds``)."""
SQS_MOST_RECEIVES = 1000
"""A redrive policy's ``maxReceiveCount`` (SQS developer guide, dead-letter queues)."""

ELASTICACHE_ID = 40
"""A replication group's id (``CreateReplicationGroup``); users and groups of users alike
(ElastiCache user guide, RBAC)."""
ELASTICACHE_LONGEST_RETENTION_DAYS = 35
"""(ElastiCache user guide, automatic backups.)"""

IAM_ROLE = 64
"""A role's name (``roleNameType``)."""
IAM_POLICY = 128
"""A policy's name (``policyNameType``)."""
IAM_INLINE_POLICIES_CHARACTERS = 10_240
"""All inline policies of a role together, without white space (IAM user guide, quotas)."""
IAM_MANAGED_POLICY_CHARACTERS = 6_144
"""One managed policy, without white space (IAM user guide, quotas)."""
IAM_TRUST_POLICY_CHARACTERS = 2_048
"""A role's trust policy (IAM user guide, quotas; it can be raised to 4,096)."""

RDS_IDENTIFIER = 63
"""A cluster's or an instance's (``CreateDBCluster``)."""
RDS_LONGEST_RETENTION_DAYS = 35
"""(``CreateDBCluster``, ``BackupRetentionPeriod``)."""

S3_BUCKET = 63
"""A bucket's name, lower case (S3 user guide)."""
ECR_REPOSITORY = 256
"""A repository's name (``RepositoryName``)."""
ECR_MIRROR_PREFIX = 30
"""What the copies of another registry's images begin with
(``PullThroughCacheRuleRepositoryPrefix``)."""
KMS_ALIAS = 256
"""(``AliasNameType``)."""
KMS_SHORTEST_WAIT_DAYS, KMS_LONGEST_WAIT_DAYS = 7, 30
"""How long a deleted key can be had back (KMS API, ``ScheduleKeyDeletion``)."""
KMS_SHORTEST_ROTATION_DAYS, KMS_LONGEST_ROTATION_DAYS = 90, 2560
"""(``RotationPeriodInDaysType``)."""
SECRET_NAME = 512
"""(``secretsmanager``, ``NameType``)."""
SECURITY_GROUP = 255
"""(EC2 API, ``CreateSecurityGroup``)."""
LOAD_BALANCER = 32
"""A load balancer's name (``CreateLoadBalancer``)."""
TARGET_GROUP = 32
"""(``CreateTargetGroup``)."""
EKS_CLUSTER = 100
"""(``ClusterName``)."""
EKS_NODE_GROUP = 63
"""(EKS user guide, managed node groups)."""
LAUNCH_TEMPLATE = 128
"""(EC2 API, ``LaunchTemplateName``)."""


def autonamed(*parts: str, limit: int) -> str:
    """Return a resource's name, short enough for what Pulumi makes its physical name of.

    Args:
        parts: What the name is made of, joined by ``-``.
        limit: The physical name's limit.
    """
    return safe_name(*parts, limit=limit - AUTONAME_SUFFIX)
