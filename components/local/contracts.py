"""What the stacks of a ``local`` environment hand on."""

from dataclasses import dataclass
from typing import ClassVar

import pulumi

from ..contracts import FoundationContract, TeamContract


@dataclass(frozen=True, kw_only=True)
class LocalFoundationContract(FoundationContract):
    """What the foundation gives to the platform of the same environment."""

    secret_fields: ClassVar[frozenset[str]] = FoundationContract.secret_fields | {
        "database_password",
        "redis_password",
        "redis_scaler_password",
        "bucket_access_key",
        "bucket_secret_key",
        "bucket_reader_access_key",
        "bucket_reader_secret_key",
    }

    namespace: pulumi.Output[str]
    """Where the data services run."""
    database_host: pulumi.Output[str]
    database_port: pulumi.Output[int]
    database_name: pulumi.Output[str]
    database_user: pulumi.Output[str]
    database_password: pulumi.Output[str]
    redis_host: pulumi.Output[str]
    redis_port: pulumi.Output[int]
    redis_password: pulumi.Output[str]
    redis_scaler_password: pulumi.Output[str]
    """Of the user who may ask how long activation lists are and nothing else."""
    bucket_name: pulumi.Output[str]
    bucket_region: pulumi.Output[str]
    bucket_endpoint: pulumi.Output[str]
    """Where programs in the cluster write to the bucket."""
    bucket_address: pulumi.Output[str]
    """The same for programs on a node of the cluster, which don't know the cluster's names."""
    bucket_access_key: pulumi.Output[str]
    bucket_secret_key: pulumi.Output[str]
    bucket_reader_endpoint: pulumi.Output[str]
    """Where programs in the cluster read the bucket; nothing can be written there."""
    bucket_reader_access_key: pulumi.Output[str]
    bucket_reader_secret_key: pulumi.Output[str]


@dataclass(frozen=True, kw_only=True)
class LocalTeamContract(TeamContract):
    """What the platform gives to one team; published with a prefix of the team's own."""

    secret_fields: ClassVar[frozenset[str]] = TeamContract.secret_fields | {
        "bucket_access_key",
        "bucket_secret_key",
        "redis_password",
    }

    bucket_name: pulumi.Output[str]
    bucket_region: pulumi.Output[str]
    bucket_endpoint: pulumi.Output[str]
    """Where the team's workers read weights; nothing can be written there."""
    bucket_access_key: pulumi.Output[str]
    bucket_secret_key: pulumi.Output[str]
    redis_password: pulumi.Output[str]
    """Of the Redis user who reaches the team's tasks and nothing else."""
