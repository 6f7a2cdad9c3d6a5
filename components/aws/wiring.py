"""What a container in AWS is given so that it finds what its workload was granted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain.names import safe_name
from ..foundation import Binding, Bucket, Database, Grant, Redis, SqsQueues
from ..kube import workload
from .account import region_of

CA_FOLDER = "/etc/llm-platform/database-ca"
CA_FILE = "ca.pem"
_COMPONENT = "identity"


@dataclass(kw_only=True)
class _Variables:
    """Environment variables, sorted by whether others may see them."""

    plain: dict[str, In[str]] = field(default_factory=dict[str, In[str]])
    secret: dict[str, In[str]] = field(default_factory=dict[str, In[str]])
    ca: pulumi.Output[str] | None = None

    def add(self, grant: Grant) -> None:
        """Take up what leads to one thing granted."""
        match grant.resource:
            case Redis() as redis:
                self.secret["LLM_PLATFORM_REDIS_URL"] = redis.url
            case Database() as database:
                self._database(database)
            case Bucket() as bucket:
                self._region(bucket.region)
            case SqsQueues() as found:
                self._region(region_of(found.arn))

    def _database(self, database: Database) -> None:
        where = self.plain if database.password is None else self.secret
        where["LLM_PLATFORM_DATABASE_URL"] = database.url
        if database.secret_arn is not None:
            self.plain["LLM_PLATFORM_DATABASE_SECRET_ARN"] = database.secret_arn
            self._region(region_of(database.secret_arn))
        if database.ca is not None:
            self.plain["LLM_PLATFORM_DATABASE_CA"] = f"{CA_FOLDER}/{CA_FILE}"
            self.ca = database.ca

    def _region(self, region: In[str]) -> None:
        # boto3 reads the second only, and EKS adds neither to a container that has one of them.
        self.plain.update({"AWS_REGION": region, "AWS_DEFAULT_REGION": region})


def wire(
    name: str,
    *,
    workload_name: str,
    namespace: In[str],
    grants: Sequence[Grant],
    opts: pulumi.ResourceOptions,
    container: str,
) -> Binding:
    """Return what leads to what was granted, with what has to be created for it.

    Creates a Secret ``<workload>-access`` where a variable is secret, and a ConfigMap
    ``<workload>-database-ca`` for the certificates that the database's is checked against. What is
    for a container alone has its name in between.
    """
    owner = tuple(filter(None, (workload_name, container)))
    variables = _Variables()
    for grant in grants:
        variables.add(grant)
    env = workload.env(**variables.plain)
    needs: list[pulumi.Resource] = []
    volumes: list[k8s.core.v1.VolumeArgsDict] = []
    mounts: list[k8s.core.v1.VolumeMountArgsDict] = []
    if variables.secret:
        secret = safe_name(*owner, "access")
        needs.append(_secret(f"{name}-access", secret, namespace, variables.secret, opts))
        env += [_from_secret(secret, key) for key in variables.secret]
    if variables.ca is not None:
        config = safe_name(*owner, "database-ca")
        needs.append(_config(f"{name}-database-ca", config, namespace, variables.ca, opts))
        volumes.append({"name": "database-ca", "config_map": {"name": config}})
        mounts.append({"name": "database-ca", "mount_path": CA_FOLDER, "read_only": True})
    return Binding(
        env=env,
        config_hash=workload.output_hash(variables.plain, variables.secret, variables.ca),
        needs=needs,
        volumes=volumes,
        mounts=mounts,
    )


def _secret(
    name: str,
    secret: str,
    namespace: In[str],
    values: Mapping[str, In[str]],
    opts: pulumi.ResourceOptions,
) -> k8s.core.v1.Secret:
    return k8s.core.v1.Secret(
        name,
        metadata=workload.metadata(secret, namespace, component=_COMPONENT),
        type="Opaque",
        string_data={key: pulumi.Output.secret(value) for key, value in values.items()},
        opts=pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(additional_secret_outputs=["data", "stringData"])
        ),
    )


def _config(
    name: str,
    config: str,
    namespace: In[str],
    ca: pulumi.Output[str],
    opts: pulumi.ResourceOptions,
) -> k8s.core.v1.ConfigMap:
    return k8s.core.v1.ConfigMap(
        name,
        metadata=workload.metadata(config, namespace, component=_COMPONENT),
        data={CA_FILE: ca},
        opts=opts,
    )


def _from_secret(secret: str, key: str) -> k8s.core.v1.EnvVarArgsDict:
    return {"name": key, "value_from": {"secret_key_ref": {"name": secret, "key": key}}}
