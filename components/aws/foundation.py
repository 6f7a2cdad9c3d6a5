"""The foundation in AWS: network, cluster, nodes, data services, registry, and what they share."""

from collections.abc import Sequence

import pulumi

from . import foundation_args as wishes
from . import policies, rights
from .boundary import Boundary, BoundaryArgs
from .capacity import group_patterns
from .cluster import Cluster
from .cluster_addons import (
    AFTER_NODES,
    BEFORE_NODES,
    ClusterAddons,
    ClusterAddonsArgs,
    EksAddon,
)
from .cluster_args import ClusterArgs
from .cluster_autoscaler import priorities_of
from .contracts import AwsFoundationContract
from .database import AwsDatabase, AwsDatabaseArgs
from .doors import Clients
from .foundation_args import AwsFoundationArgs
from .gpu_nodes import GpuPool
from .gpu_pool_args import GpuPoolArgs
from .keys import AwsKeys, AwsKeysArgs
from .network import Network
from .redis import AwsRedis, AwsRedisArgs
from .registry import AwsRegistry, AwsRegistryArgs
from .storage import AwsStorage, AwsStorageArgs
from .system_nodes import SystemNodes, SystemNodesArgs


class AwsFoundation(pulumi.ComponentResource):
    """Everything of an environment in AWS that has to stand before weights are published.

    Creates AwsKeys, a Network, a Cluster with its ClusterAddons and SystemNodes, a GpuPool for each
    of the pools, an AwsDatabase, an AwsRedis, AwsStorage, an AwsRegistry, and a Boundary of what
    pods' roles may do. Unless the environment is ephemeral, what keeps data is protected.
    """

    contract: AwsFoundationContract
    """What it gives, for the platform's stack."""

    def __init__(
        self, name: str, args: AwsFoundationArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        wishes.check_name(name)
        super().__init__("llm-platform:index:AwsFoundation", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self._keys = AwsKeys(
            f"{name}-keys",
            AwsKeysArgs(account=args.account, ephemeral=args.ephemeral),
            self._child,
        )
        self._network = Network(f"{name}-network", args.network, self._child)
        self._registry = self._make_registry()
        self._cluster = self._make_cluster()
        self._nodes()
        self._database = self._make_database()
        self._redis = self._make_redis()
        self._storage = self._make_storage()
        self._boundary = self._make_boundary()
        self.contract = self._contract()
        self.register_outputs({})

    def _make_cluster(self) -> Cluster:
        wish = self._args.cluster
        return Cluster(
            f"{self._name}-cluster",
            ClusterArgs(
                account=self._args.account,
                cluster_name=wish.cluster_name or self._name,
                version=wish.version,
                subnet_ids=tuple(self._network.private_subnets.values()),
                service_cidr=wish.service_cidr,
                deployer_arn=wish.deployer_arn,
                admins=wish.admins,
                public_access_cidrs=wish.public_access_cidrs,
                key_arn=self._keys.cluster_arn,
                deletion_protection=not self._args.ephemeral,
                log_retention_days=wish.log_retention_days,
                node_policy=policies.document(
                    rights.pull_through(self._args.account, self._registry.mirror_prefix)
                ),
                boundary_arn=self._args.boundary_arn,
                existing=wish.existing,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=self._network.ready),
        )

    def _nodes(self) -> None:
        """Create the nodes, between the add-ons that they need and those that need them."""
        before = self._addons("before-nodes", BEFORE_NODES, self._cluster.nodes.ready)
        wish = self._args.system_nodes
        system = SystemNodes(
            f"{self._name}-system",
            SystemNodesArgs(
                cluster=self._cluster.nodes,
                subnet_ids=tuple(self._network.private_subnets.values()),
                instance_types=wish.instance_types,
                min_nodes=wish.min_nodes,
                max_nodes=wish.max_nodes,
                disk=wish.disk,
                release_version=wish.release_version,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=before or None),
        )
        for pool_name, pool in self._args.gpu_pools.items():
            GpuPool(
                f"{self._name}-{pool_name}",
                self._pool_args(pool),
                pulumi.ResourceOptions(parent=self, depends_on=before or None),
            )
        self._addons("after-nodes", AFTER_NODES, system.ready)

    def _addons(
        self, part: str, addons: tuple[EksAddon, ...], needs: Sequence[pulumi.Resource]
    ) -> Sequence[pulumi.Resource]:
        """Create a round of add-ons; a cluster that was there before has its own."""
        if self._args.cluster.existing is not None:
            return []
        made = ClusterAddons(
            f"{self._name}-{part}",
            ClusterAddonsArgs(
                account=self._args.account,
                cluster_name=self._cluster.cluster_name,
                addons=addons,
                needs=needs,
                boundary_arn=self._args.boundary_arn,
            ),
            self._child,
        )
        return made.ready

    def _pool_args(self, wish: wishes.GpuPoolWish) -> GpuPoolArgs:
        return GpuPoolArgs(
            cluster=self._cluster.nodes,
            subnets=self._network.gpu_subnets,
            accelerator=wish.accelerator,
            instance_types=wish.instance_types,
            zones=wish.zones,
            warm_floor=wish.warm_floor,
            max_nodes=wish.max_nodes,
            capacity=wish.capacity,
            disk=wish.disk,
            ami_id=wish.ami_id,
            release_version=wish.release_version,
            labels=wish.labels,
            extra_taints=wish.extra_taints,
        )

    def _group_priorities(self) -> str:
        """Return each pool's sources in the order of its settings."""
        return priorities_of(
            [
                group_patterns(f"{self._name}-{pool_name}", pool.capacity)
                for pool_name, pool in self._args.gpu_pools.items()
            ]
        )

    def _clients(self) -> Clients:
        return Clients(security_groups={"nodes": self._cluster.security_group_id})

    def _make_database(self) -> AwsDatabase:
        wish = self._args.database
        return AwsDatabase(
            f"{self._name}-database",
            AwsDatabaseArgs(
                size=wish.size or self._args.size,
                vpc_id=self._network.vpc_id,
                subnet_ids=tuple(self._network.private_subnets.values()),
                clients=self._clients(),
                key_arn=self._keys.data_arn,
                ca=self._args.database_ca,
                backup_days=wish.backup_days,
                restore_from=wish.restore_from,
                ephemeral=self._args.ephemeral,
            ),
            self._child,
        )

    def _make_redis(self) -> AwsRedis:
        wish = self._args.redis
        return AwsRedis(
            f"{self._name}-redis",
            AwsRedisArgs(
                size=wish.size or self._args.size,
                vpc_id=self._network.vpc_id,
                subnet_ids=tuple(self._network.private_subnets.values()),
                clients=self._clients(),
                key_arn=self._keys.data_arn,
                backup_days=wish.backup_days,
                ephemeral=self._args.ephemeral,
            ),
            self._child,
        )

    def _make_storage(self) -> AwsStorage:
        wish = self._args.storage
        return AwsStorage(
            f"{self._name}-storage",
            AwsStorageArgs(
                account=self._args.account,
                key_arn=self._keys.storage_arn,
                weights_name=wish.weights_name,
                results_days=wish.results_days,
                state_old_versions_days=wish.state_old_versions_days,
                ephemeral=self._args.ephemeral,
            ),
            self._child,
        )

    def _make_registry(self) -> AwsRegistry:
        wish = self._args.registry
        return AwsRegistry(
            f"{self._name}-registry",
            AwsRegistryArgs(
                account=self._args.account,
                key_arn=self._keys.images_arn,
                images_kept=wish.images_kept,
                boundary_arn=self._args.boundary_arn,
                ephemeral=self._args.ephemeral,
                prefix=self._name,
                repositories=wish.repositories,
                mirrors=wish.mirrors,
            ),
            self._child,
        )

    def _make_boundary(self) -> Boundary:
        return Boundary(
            f"{self._name}-pods",
            BoundaryArgs(
                account=self._args.account,
                prefix=self._name,
                bucket_names=(self._storage.weights_name, self._storage.results_name),
                key_arns=(self._keys.storage_arn, self._keys.queues_arn, self._keys.data_arn),
                secret_arns=(self._database.secret_arn,),
            ),
            self._child,
        )

    def _contract(self) -> AwsFoundationContract:
        """Return the outputs that say all of it."""
        database, redis = self._database.database, self._redis.redis
        return AwsFoundationContract(
            kubeconfig=self._cluster.kubeconfig,
            registry=self._registry.url,
            name=pulumi.Output.from_input(self._name),
            cluster_name=self._cluster.cluster_name,
            cluster_endpoint=self._cluster.endpoint,
            cluster_security_group=self._cluster.security_group_id,
            node_role_arn=self._cluster.node_role_arn,
            vpc_id=self._network.vpc_id,
            vpc_cidr=self._network.cidr,
            private_subnets=_joined(*self._network.private_subnets.values()),
            public_subnets=_joined(*self._network.public_subnets.values()),
            gpu_subnets=pulumi.Output.json_dumps(dict(self._network.gpu_subnets)),
            database_host=database.host,
            database_port=database.port,
            database_name=database.name,
            database_user=database.user,
            database_secret_arn=self._database.secret_arn,
            database_ca=pulumi.Output.from_input(self._args.database_ca),
            data_key_arn=self._keys.data_arn,
            redis_host=redis.host,
            redis_port=redis.port,
            redis_password=redis.password,
            redis_scaler_password=self._redis.redis_scaler.password,
            weights_bucket=self._storage.weights_name,
            results_bucket=self._storage.results_name,
            state_bucket=self._storage.state_name,
            storage_key_arn=self._keys.storage_arn,
            queues_key_arn=self._keys.queues_arn,
            boundary_arn=pulumi.Output.from_input(self._args.boundary_arn or self._boundary.arn),
            group_priorities=pulumi.Output.from_input(self._group_priorities()),
            mirror_prefix=pulumi.Output.from_input(self._registry.mirror_prefix),
        )


def _joined(*ids: pulumi.Output[str]) -> pulumi.Output[str]:
    return pulumi.Output.all(*ids).apply(",".join)
