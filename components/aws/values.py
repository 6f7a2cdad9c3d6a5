"""The values of a foundation in AWS, from what its contract tells and what is known beforehand."""

from collections.abc import Sequence
from dataclasses import replace

import pulumi

from ..domain import keys
from ..domain.scaling_source import CLOUDWATCH_NAMESPACE
from ..foundation import (
    Bucket,
    ClusterAccess,
    Database,
    DataPaths,
    Foundation,
    Redis,
    Registry,
)
from ..kube.network import Egress, Peer
from . import database, queues, redis, rights
from .account import AwsAccount
from .contracts import AwsFoundationContract
from .identity import PodIdentity

_HTTPS = 443
_AGENT: Egress = ([{"ip_block": {"cidr": "169.254.170.23/32"}}], [80])
"""Where pods get their credentials: the address of the pod identity agent on their own node (EKS
user guide, "How EKS Pod Identity works", read 2026-11)."""
_ANYWHERE: Egress = ([], [_HTTPS])
"""S3 by its gateway endpoint, whose addresses are public ones; and SQS, Secrets Manager and KMS,
which have endpoints inside or not. A policy knows no names."""


def data_paths(vpc_cidr: pulumi.Output[str]) -> DataPaths:
    """Return how pods reach the data services: some in the network, some with their credentials."""
    inside: Sequence[Peer] = [{"ip_block": {"cidr": vpc_cidr}}]
    with_credentials = [_AGENT, _ANYWHERE]
    return DataPaths(
        database=[(inside, [database.PORT]), *with_credentials],
        redis=[(inside, [redis.PORT])],
        bucket=with_credentials,
        weights=with_credentials,
        tasks=with_credentials,
    )


def foundation_from(
    contract: AwsFoundationContract,
    *,
    account: AwsAccount,
    name: str,
    cloudwatch: bool,
) -> Foundation:
    """Return the foundation that a contract tells of.

    Args:
        contract: The contract.
        account: Where it is.
        name: What the names of its queues begin with.
        cloudwatch: Whether the gateway publishes endpoints' concurrency in CloudWatch.
    """
    metrics = {"LLM_PLATFORM_CLOUDWATCH_NAMESPACE": CLOUDWATCH_NAMESPACE} if cloudwatch else {}
    more = {"gateway": rights.publish_metrics(CLOUDWATCH_NAMESPACE)} if cloudwatch else {}
    server = Redis(
        host=contract.redis_host,
        port=contract.redis_port,
        user=redis.PLATFORM_USER,
        password=contract.redis_password,
        tls=True,
    )
    tasks = queues.of_all(account, name, contract.queues_key_arn)
    return Foundation(
        cluster=ClusterAccess(kubeconfig=contract.kubeconfig),
        paths=data_paths(contract.vpc_cidr),
        database=Database(
            host=contract.database_host,
            port=contract.database_port,
            name=contract.database_name,
            user=contract.database_user,
            secret_arn=contract.database_secret_arn,
            secret_key_arn=contract.data_key_arn,
            ca=contract.database_ca,
        ),
        redis=server,
        redis_scaler=replace(
            server, user=keys.SCALER_USER, password=contract.redis_scaler_password
        ),
        broker="sqs",
        task_queues=tasks,
        service_settings={
            "LLM_PLATFORM_BROKER_REGION": account.region,
            "LLM_PLATFORM_QUEUE_PREFIX": queues.url_prefix(account, name),
            **metrics,
        },
        bucket=_bucket(contract.results_bucket, contract, account, read_only=False),
        weights=_bucket(contract.weights_bucket, contract, account, read_only=True),
        registry=Registry(prefix=contract.registry),
        identity=PodIdentity(
            account=account,
            cluster_name=contract.cluster_name,
            boundary_arn=contract.boundary_arn,
            more=more,
        ),
    )


def _bucket(
    name: pulumi.Output[str],
    contract: AwsFoundationContract,
    account: AwsAccount,
    *,
    read_only: bool,
) -> Bucket:
    return Bucket(
        name=name,
        region=pulumi.Output.from_input(account.region),
        read_only=read_only,
        key_arn=contract.storage_key_arn,
    )
