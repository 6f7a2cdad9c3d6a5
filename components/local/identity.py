"""Permissions without a cloud: a Secret with the credentials of exactly what was granted."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s

from ..contracts import In
from ..domain.names import safe_name
from ..foundation import Binding, Bucket, Database, Grant, Permission, Redis, SqsQueues
from ..kube import workload


class LocalIdentity:
    """Binds grants by writing a Secret beside the workload that only its containers refer to."""

    def bind(
        self,
        name: str,
        *,
        workload_name: str,
        namespace: In[str],
        grants: Sequence[Grant],
        opts: pulumi.ResourceOptions,
        container: str = "",
    ) -> Binding:
        """Create the Secret ``<workload>-access`` and return the variables that refer to it.

        One that is for a container alone is ``<workload>-<container>-access``.
        """
        values: dict[str, In[str]] = {}
        for grant in grants:
            values.update(_wiring(grant))
        secret_name = safe_name(*filter(None, (workload_name, container, "access")))
        secret = k8s.core.v1.Secret(
            f"{name}-access",
            metadata=workload.metadata(secret_name, namespace, component="identity"),
            type="Opaque",
            string_data={key: pulumi.Output.secret(value) for key, value in values.items()},
            opts=pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(additional_secret_outputs=["data", "stringData"])
            ),
        )
        return Binding(
            env=[_from_secret(secret_name, key) for key in values],
            config_hash=workload.output_hash(*values.values()),
            needs=[secret],
        )


def _wiring(grant: Grant) -> Mapping[str, In[str]]:
    match grant.resource:
        case Database() as database:
            return {"LLM_PLATFORM_DATABASE_URL": database.url}
        case Redis() as redis if grant.permission is Permission.CONSUME:
            return {"LLM_PLATFORM_BROKER_URL": redis.url}
        case Redis() as redis:
            return {"LLM_PLATFORM_REDIS_URL": redis.url}
        case Bucket() as bucket:
            _require_permission(grant, bucket)
            return _bucket_wiring(bucket)
        case SqsQueues():
            raise ValueError("queues of SQS can't be granted without AWS's own identities")


def _bucket_wiring(bucket: Bucket) -> Mapping[str, In[str]]:
    if bucket.endpoint is None or bucket.access_key is None or bucket.secret_key is None:
        raise ValueError("a bucket without endpoint and keys can't be granted without a cloud")
    return {
        "AWS_ENDPOINT_URL_S3": bucket.endpoint,
        "AWS_REGION": bucket.region,
        "AWS_ACCESS_KEY_ID": bucket.access_key,
        "AWS_SECRET_ACCESS_KEY": bucket.secret_key,
    }


def _require_permission(grant: Grant, bucket: Bucket) -> None:
    if grant.permission is Permission.READ and not bucket.read_only:
        raise ValueError(
            "a grant to read a bucket was given the owner's credentials: "
            "pass the foundation's weights"
        )
    if grant.permission is not Permission.READ and bucket.read_only:
        raise ValueError(
            f"a grant to {grant.permission} a bucket was given credentials that can only read"
        )


def _from_secret(secret: str, key: str) -> k8s.core.v1.EnvVarArgsDict:
    return {"name": key, "value_from": {"secret_key_ref": {"name": secret, "key": key}}}
