"""One valid instance of what people write for AWS: data, identities, the whole foundation."""

from collections.abc import Callable
from typing import Any

import pulumi

from components.aws import policies, rights
from components.aws.account import AwsAccount
from components.aws.boundary import Boundary, BoundaryArgs
from components.aws.bucket import PrivateBucket, PrivateBucketArgs
from components.aws.database import AwsDatabase, AwsDatabaseArgs
from components.aws.doors import Clients
from components.aws.foundation import AwsFoundation
from components.aws.foundation_args import AwsFoundationArgs, ClusterWish, GpuPoolWish
from components.aws.fsx import Lustre, LustreArgs
from components.aws.identity import PodIdentity
from components.aws.keys import AwsKeys, AwsKeysArgs
from components.aws.load_balancer import GatewayDoor, GatewayDoorArgs
from components.aws.load_balancer_controller import (
    LoadBalancerController,
    LoadBalancerControllerArgs,
)
from components.aws.pod_role import PodRole, PodRoleArgs
from components.aws.queues import of_all
from components.aws.redis import AwsRedis, AwsRedisArgs
from components.aws.registry import AwsRegistry, AwsRegistryArgs
from components.aws.storage import AwsStorage, AwsStorageArgs
from components.aws.stored_secret import StoredSecret, StoredSecretArgs
from components.aws.team import AwsTeam, AwsTeamArgs
from components.domain.accelerators import Accelerator
from components.foundation import (
    Bucket,
    ClusterAccess,
    Database,
    DataPaths,
    Foundation,
    Redis,
    Registry,
    SqsQueues,
)
from tests import eks_samples, samples
from tests.aws_outputs import ACCOUNT, REGION, arn
from tests.samples import known, secret

ENVIRONMENT = "prod-aws"
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEYS = {name: arn("kms", f"key/{name}") for name in ("data", "storage", "queues", "images")}
DATABASE_SECRET = arn("secretsmanager", "secret:rds!cluster-1-AbCdEf")
CANARY = "canary-7f3a-valkey"


def account(**changes: Any) -> AwsAccount:
    return AwsAccount(**{"id": ACCOUNT, "region": REGION, **changes})


def clients() -> Clients:
    return Clients(security_groups={"cluster": "sg-cluster"})


def database() -> Database:
    return Database(
        host=known("postgres.example"),
        port=pulumi.Output.from_input(5432),
        name=known("platform"),
        user=known("platform"),
        secret_arn=known(DATABASE_SECRET),
        secret_key_arn=known(KEYS["data"]),
        ca=known(CA),
    )


def redis() -> Redis:
    return Redis(
        host=known("redis.example"),
        port=pulumi.Output.from_input(6379),
        password=secret(CANARY),
        user="platform",
        tls=True,
    )


def bucket(name: str, *, read_only: bool = False) -> Bucket:
    return Bucket(
        name=known(f"{ENVIRONMENT}-{name}"),
        region=known(REGION),
        read_only=read_only,
        key_arn=known(KEYS["storage"]),
    )


def queues() -> SqsQueues:
    return of_all(account(), ENVIRONMENT, known(KEYS["queues"]))


def identity(**changes: Any) -> PodIdentity:
    fields: dict[str, Any] = {
        "account": account(),
        "cluster_name": ENVIRONMENT,
        "boundary_arn": arn("iam", "policy/boundary", regional=False),
    }
    return PodIdentity(**{**fields, **changes})


def foundation(**changes: Any) -> Foundation:
    fields: dict[str, Any] = {
        "cluster": ClusterAccess(kubeconfig=secret(samples.KUBECONFIG)),
        "paths": DataPaths(database=(), redis=(), bucket=(), weights=(), tasks=()),
        "database": database(),
        "redis": redis(),
        "redis_scaler": redis(),
        "broker": "sqs",
        "task_queues": queues(),
        "bucket": bucket("results"),
        "weights": bucket("weights", read_only=True),
        "registry": Registry(prefix=known("registry.example")),
        "identity": identity(),
    }
    return Foundation(**{**fields, **changes})


def database_args(**changes: Any) -> AwsDatabaseArgs:
    fields: dict[str, Any] = {
        "vpc_id": "vpc-1",
        "subnet_ids": ("subnet-a", "subnet-b"),
        "clients": clients(),
        "key_arn": KEYS["data"],
        "ca": CA,
    }
    return AwsDatabaseArgs(**{**fields, **changes})


def redis_args(**changes: Any) -> AwsRedisArgs:
    fields: dict[str, Any] = {
        "vpc_id": "vpc-1",
        "subnet_ids": ("subnet-a", "subnet-b"),
        "clients": clients(),
        "key_arn": KEYS["data"],
    }
    return AwsRedisArgs(**{**fields, **changes})


def storage_args(**changes: Any) -> AwsStorageArgs:
    return AwsStorageArgs(**{"account": account(), "key_arn": KEYS["storage"], **changes})


def registry_args(**changes: Any) -> AwsRegistryArgs:
    return AwsRegistryArgs(**{"account": account(), "key_arn": KEYS["images"], **changes})


def team_args(**changes: Any) -> AwsTeamArgs:
    fields: dict[str, Any] = {
        "account": account(),
        "prefix": ENVIRONMENT,
        "team": "search",
        "namespace": "team-search",
        "cluster_name": ENVIRONMENT,
        "weights": bucket("weights", read_only=True),
        "queues_key_arn": KEYS["queues"],
        "boundary_arn": arn("iam", "policy/boundary", regional=False),
    }
    return AwsTeamArgs(**{**fields, **changes})


def boundary_args(**changes: Any) -> BoundaryArgs:
    fields: dict[str, Any] = {
        "account": account(),
        "prefix": ENVIRONMENT,
        "bucket_names": (f"{ENVIRONMENT}-weights", f"{ENVIRONMENT}-results"),
        "key_arns": tuple(KEYS.values()),
        "secret_arns": (DATABASE_SECRET,),
    }
    return BoundaryArgs(**{**fields, **changes})


def lustre_args(**changes: Any) -> LustreArgs:
    fields: dict[str, Any] = {
        "vpc_id": "vpc-1",
        "subnet_id": "subnet-gpu-a",
        "clients": clients(),
        "weights_name": f"{ENVIRONMENT}-weights",
        "key_arn": KEYS["storage"],
    }
    return LustreArgs(**{**fields, **changes})


def foundation_args(**changes: Any) -> AwsFoundationArgs:
    fields: dict[str, Any] = {
        "account": account(),
        "network": eks_samples.network_args(),
        "cluster": ClusterWish(deployer_arn=eks_samples.DEPLOYER),
        "gpu_pools": {"l40s": GpuPoolWish(accelerator=Accelerator.L40S, warm_floor=1, max_nodes=4)},
        "database_ca": CA,
    }
    return AwsFoundationArgs(**{**fields, **changes})


def door_args(**changes: Any) -> GatewayDoorArgs:
    fields: dict[str, Any] = {
        "vpc_id": "vpc-1",
        "subnet_ids": ("subnet-a", "subnet-b"),
        "node_security_group": "sg-cluster",
        "namespace": "llm-platform",
        "service": "gateway",
        "pod_port": 8080,
        "domain": "llm.example.com",
        "zone_id": "Z0123456789ABCDEFGHIJ",
        "clients": ("10.0.0.0/8",),
        "request_timeout_seconds": 600,
    }
    return GatewayDoorArgs(**{**fields, **changes})


def controller_args(**changes: Any) -> LoadBalancerControllerArgs:
    fields: dict[str, Any] = {"account": account(), "cluster_name": ENVIRONMENT, "vpc_id": "vpc-1"}
    return LoadBalancerControllerArgs(**{**fields, **changes})


COMPONENTS: dict[str, Callable[[str], pulumi.ComponentResource]] = {
    "AwsDatabase": lambda name: AwsDatabase(name, database_args()),
    "AwsFoundation": lambda name: AwsFoundation(name, foundation_args()),
    "AwsKeys": lambda name: AwsKeys(name, AwsKeysArgs(account=account())),
    "AwsRedis": lambda name: AwsRedis(name, redis_args()),
    "AwsRegistry": lambda name: AwsRegistry(name, registry_args()),
    "AwsStorage": lambda name: AwsStorage(name, storage_args()),
    "AwsTeam": lambda name: AwsTeam(name, team_args()),
    "Boundary": lambda name: Boundary(name, boundary_args()),
    "GatewayDoor": lambda name: GatewayDoor(name, door_args(domain=f"llm.{name[-3:]}.example.com")),
    "LoadBalancerController": lambda name: LoadBalancerController(name, controller_args()),
    "Lustre": lambda name: Lustre(name, lustre_args()),
    "PodRole": lambda name: PodRole(
        name,
        PodRoleArgs(
            account=account(),
            cluster_name=ENVIRONMENT,
            namespace="llm-platform",
            service_account="gateway",
            policy=policies.document(rights.count_queues(account(), queues())),
        ),
    ),
    "PrivateBucket": lambda name: PrivateBucket(
        name, PrivateBucketArgs(account=account(), key_arn=KEYS["storage"])
    ),
    "StoredSecret": lambda name: StoredSecret(
        name,
        StoredSecretArgs(description="Passwords", keys=("password",), key_arn=KEYS["data"]),
    ),
}
"""Every component of these, made in the way that most use it."""
