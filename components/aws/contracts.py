"""What the stacks of an environment in AWS hand on."""

from dataclasses import dataclass
from typing import ClassVar

import pulumi

from ..contracts import FoundationContract, TeamContract


@dataclass(frozen=True, kw_only=True)
class AwsFoundationContract(FoundationContract):
    """What the foundation gives to the platform of the same environment."""

    secret_fields: ClassVar[frozenset[str]] = FoundationContract.secret_fields | {
        "redis_password",
        "redis_scaler_password",
    }

    name: pulumi.Output[str]
    """What the names of the environment's queues, images and secrets begin with."""
    cluster_name: pulumi.Output[str]
    cluster_endpoint: pulumi.Output[str]
    """The API server's address."""
    cluster_security_group: pulumi.Output[str]
    """That of every node, and of the API server's addresses in the network."""
    node_role_arn: pulumi.Output[str]
    """The role of nodes, for those that come later."""
    vpc_id: pulumi.Output[str]
    vpc_cidr: pulumi.Output[str]
    private_subnets: pulumi.Output[str]
    """Subnets without a way in from the internet, separated by commas."""
    public_subnets: pulumi.Output[str]
    """Those with one, where there are any."""
    gpu_subnets: pulumi.Output[str]
    """The subnets of GPU nodes by zone, as JSON."""
    database_host: pulumi.Output[str]
    database_port: pulumi.Output[int]
    database_name: pulumi.Output[str]
    database_user: pulumi.Output[str]
    database_secret_arn: pulumi.Output[str]
    """The secret with the password, which no stack knows."""
    database_ca: pulumi.Output[str]
    """The certificates that sign the database's."""
    data_key_arn: pulumi.Output[str]
    """The key of the database, its password, and Redis."""
    redis_host: pulumi.Output[str]
    redis_port: pulumi.Output[int]
    redis_password: pulumi.Output[str]
    redis_scaler_password: pulumi.Output[str]
    """Of the user who may ask how long activation lists are and nothing else."""
    weights_bucket: pulumi.Output[str]
    results_bucket: pulumi.Output[str]
    state_bucket: pulumi.Output[str]
    storage_key_arn: pulumi.Output[str]
    """The key of the buckets."""
    queues_key_arn: pulumi.Output[str]
    """The key of the tasks in queues."""
    boundary_arn: pulumi.Output[str]
    """The permissions boundary of every pod's role."""
    group_priorities: pulumi.Output[str]
    """Which node groups grow first, for the cluster autoscaler."""
    mirror_prefix: pulumi.Output[str]
    """What the names of the registry's copies of other registries begin with."""


@dataclass(frozen=True, kw_only=True)
class AwsTeamContract(TeamContract):
    """What the platform gives to one team; published with a prefix of the team's own."""

    weights_bucket: pulumi.Output[str]
    """Where the team's workers read weights, below ``<team>/`` and ``shared/``."""
    region: pulumi.Output[str]
    queues_key_arn: pulumi.Output[str]
    """The key of the tasks in the team's queues."""
    deployer_policy_arn: pulumi.Output[str]
    """Attach it to the role of the team's CI: with it the team's queues can be made."""
