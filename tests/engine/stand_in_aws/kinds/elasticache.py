"""Caches, their users and groups. Replacements: internal/service/elasticache/*.go.

moto makes replication groups and users; the rest is checked by boto3's models and kept in the
store. No cache runs behind moto's.
"""

from collections.abc import Iterator
from typing import Any

from ..moto import CloudError
from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read, added, given, removed
from .named_by_test import BY_PULUMI, address, port

GROUP = "aws:elasticache/replicationGroup:ReplicationGroup"
SUBNET_GROUP = "aws:elasticache/subnetGroup:SubnetGroup"
PARAMETER_GROUP = "aws:elasticache/parameterGroup:ParameterGroup"
USER = "aws:elasticache/user:User"
USER_GROUP = "aws:elasticache/userGroup:UserGroup"
CACHE_ARN = "arn:aws:elasticache:{region}:{account}:"
CACHE_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"


def _there(context: Context, token: str, names: list[str], code: str) -> list[dict[str, Any]]:
    """Return those objects of the store, or say as ElastiCache does that one isn't there."""
    found = [context.store.get(token, name) for name in names]
    for name, record in zip(names, found, strict=True):
        if record is None:
            raise CloudError(code, f"{name} not found.")
    return [record for record in found if record]


def _subnets_are_there(context: Context) -> None:
    context.cloud.call("ec2", "DescribeSubnets", {"SubnetIds": context.facts["subnetIds"]})


CACHE_SUBNET_GROUP = Kind(
    SUBNET_GROUP,
    "elasticache",
    # moto makes one but can't delete it.
    Call(
        "CreateCacheSubnetGroup",
        rename={"name": "CacheSubnetGroupName", "description": "CacheSubnetGroupDescription"},
        moto=False,
    ),
    "{name}",
    update=(
        Call(
            "ModifyCacheSubnetGroup",
            {"CacheSubnetGroupName": "{id}"},
            rename={"description": "CacheSubnetGroupDescription"},
            only=("subnetIds", "description"),
            moto=False,
        ),
    ),
    delete=(Call("DeleteCacheSubnetGroup", {"CacheSubnetGroupName": "{id}"}, moto=False),),
    replaces=("name",),
    named=Named("name", 255, r"[a-z0-9-]+", lower=True),
    defaults=BY_PULUMI,
    gives={"arn": CACHE_ARN + "subnetgroup:{name}"},
    rules=_subnets_are_there,
    keeps=(f"{GROUP}#subnetGroupName",),
)


def _cache_parameters(facts: Facts) -> dict[str, Any]:
    return {
        "ParameterNameValues": [
            {"ParameterName": one["name"], "ParameterValue": one["value"]}
            for one in facts.get("parameters") or []
        ]
    }


CACHE_PARAMETER_GROUP = Kind(
    PARAMETER_GROUP,
    "elasticache",
    Call(
        "CreateCacheParameterGroup",
        rename={"name": "CacheParameterGroupName", "family": "CacheParameterGroupFamily"},
        moto=False,
    ),
    "{name}",
    then=(
        Call(
            "ModifyCacheParameterGroup",
            {"CacheParameterGroupName": "{id}"},
            takes=("parameters",),
            only=("parameters",),
            more=_cache_parameters,
            moto=False,
        ),
    ),
    delete=(Call("DeleteCacheParameterGroup", {"CacheParameterGroupName": "{id}"}, moto=False),),
    replaces=("name", "family", "description"),
    named=Named("name", 255, CACHE_NAME, lower=True),
    defaults=BY_PULUMI,
    gives={"arn": CACHE_ARN + "parametergroup:{name}"},
    keeps=(f"{GROUP}#parameterGroupName",),
)


def _engine(facts: Facts) -> Iterator[tuple[str, str]]:
    engine = facts.get("engine", "redis")
    if not unknown(engine) and str(engine).lower() not in {"redis", "valkey"}:
        yield "engine", f"{engine!r} is none of redis, valkey"


def _user_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    yield from _engine(facts)
    mode = facts.get("authenticationMode") or {}
    listed = facts.get("passwords") or (mode.get("passwords") if isinstance(mode, dict) else None)
    for password in listed or []:
        if not unknown(password) and not 16 <= len(password) <= 128:
            yield "passwords", "a password must have from 16 to 128 characters"
    if isinstance(listed, list) and len(listed) > 2:
        yield "passwords", "at most two passwords are allowed"
    if not listed and not facts.get("noPasswordRequired") and not mode:
        yield "authenticationMode", "needs passwords, IAM or noPasswordRequired"


CACHE_USER = Kind(
    USER,
    "elasticache",
    Call("CreateUser"),
    "{userId}",
    update=(
        Call(
            "ModifyUser",
            {"UserId": "{id}"},
            only=("accessString", "passwords", "noPasswordRequired", "authenticationMode"),
            moto=False,
        ),
    ),
    read=Read("DescribeUsers", {"UserId": "{id}"}, "Users[0]", gone="Status == 'deleting'"),
    delete=(Call("DeleteUser", {"UserId": "{id}"}),),
    replaces=("userId", "userName", "engine"),
    local=("passwordsWoVersion",),
    named=Named("userId", 40, r"[a-zA-Z][a-zA-Z0-9-]*", given=True),
    checks=_user_checks,
    keeps=(f"{USER_GROUP}#userIds",),
)


def _user_group_rules(context: Context) -> None:
    facts = context.facts
    users = _there(context, USER, facts.get("userIds") or [], "UserNotFoundFault")
    names = [user["inputs"]["userName"] for user in users]
    if facts["engine"].lower() == "redis" and "default" not in names:
        raise CloudError("DefaultUserRequired", "A Redis group needs a user named default.")
    if len(set(names)) < len(names):
        raise CloudError("DuplicateUserNameFault", "User group has two users of one name.")
    for user in users:
        if user["inputs"]["engine"].lower() != facts["engine"].lower():
            raise CloudError("InvalidParameterValue", "User and user group must be of one engine.")


def _user_ids(facts: Facts) -> dict[str, Any]:
    return given(
        {
            "UserIdsToAdd": added(facts, "userIds") or None,
            "UserIdsToRemove": removed(facts, "userIds") or None,
        }
    )


CACHE_USER_GROUP = Kind(
    USER_GROUP,
    "elasticache",
    Call("CreateUserGroup", moto=False),
    "{userGroupId}",
    update=(
        Call(
            "ModifyUserGroup",
            {"UserGroupId": "{id}"},
            takes=("userIds",),
            only=("userIds",),
            more=_user_ids,
            moto=False,
        ),
    ),
    delete=(Call("DeleteUserGroup", {"UserGroupId": "{id}"}, moto=False),),
    replaces=("userGroupId", "engine"),
    named=Named("userGroupId", 40, r"[a-zA-Z][a-zA-Z0-9-]*", given=True),
    gives={"arn": CACHE_ARN + "usergroup:{userGroupId}"},
    checks=_engine,
    rules=_user_group_rules,
    keeps=(f"{GROUP}#userGroupIds",),
)


def _both_are_there(context: Context) -> None:
    _there(context, USER_GROUP, [context.facts["userGroupId"]], "UserGroupNotFoundFault")
    _there(context, USER, [context.facts["userId"]], "UserNotFoundFault")


USER_GROUP_ASSOCIATION = Kind(
    "aws:elasticache/userGroupAssociation:UserGroupAssociation",
    "elasticache",
    Call(
        "ModifyUserGroup",
        {"UserGroupId": "{userGroupId}", "UserIdsToAdd": ["{userId}"]},
        takes=("userGroupId", "userId"),
        moto=False,
    ),
    "{userGroupId},{userId}",
    delete=(
        Call(
            "ModifyUserGroup",
            {"UserGroupId": "{userGroupId}", "UserIdsToRemove": ["{userId}"]},
            moto=False,
        ),
    ),
    replaces=("userGroupId", "userId"),
    rules=_both_are_there,
)


def _group_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    yield from _engine(facts)
    nodes = facts.get("numCacheClusters")
    if facts.get("automaticFailoverEnabled") is True and isinstance(nodes, int) and nodes < 2:
        yield "automaticFailoverEnabled", "needs at least 2 numCacheClusters"
    if facts.get("multiAzEnabled") is True and not facts.get("automaticFailoverEnabled"):
        yield "multiAzEnabled", "needs automaticFailoverEnabled"
    if facts.get("userGroupIds") and not facts.get("transitEncryptionEnabled"):
        yield "userGroupIds", "needs transitEncryptionEnabled"
    if facts.get("authToken") and facts.get("userGroupIds"):
        yield "authToken", "can't be set together with userGroupIds"
    node = facts.get("nodeType")
    if isinstance(node, str) and not unknown(node) and not node.startswith("cache."):
        yield "nodeType", f"{node!r} is no node type of ElastiCache: they begin with 'cache.'"


def _group_rules(context: Context) -> None:
    facts = context.facts
    if name := facts.get("subnetGroupName"):
        _there(context, SUBNET_GROUP, [name], "CacheSubnetGroupNotFoundFault")
    name = facts.get("parameterGroupName") or ""
    if name and not name.startswith("default."):
        _there(context, PARAMETER_GROUP, [name], "CacheParameterGroupNotFound")
    groups = _there(context, USER_GROUP, facts.get("userGroupIds") or [], "UserGroupNotFoundFault")
    for group in groups:
        if group["inputs"]["engine"].lower() != (facts.get("engine") or "redis").lower():
            raise CloudError("InvalidParameterValue", "User group and group are of other engines.")
    if ids := facts.get("securityGroupIds"):
        context.cloud.call("ec2", "DescribeSecurityGroups", {"GroupIds": ids})


def _user_groups(facts: Facts) -> dict[str, Any]:
    return given(
        {
            "UserGroupIdsToAdd": added(facts, "userGroupIds") or None,
            "UserGroupIdsToRemove": removed(facts, "userGroupIds") or None,
        }
    )


def _node_count(context: Context) -> None:
    """More or fewer replicas: moto has no call for it, so the parameters are checked alone."""
    old, new = context.facts["old"].get("numCacheClusters"), context.facts.get("numCacheClusters")
    if new is None or not 1 <= new <= 6:
        raise CloudError("InvalidParameterValue", f"{old} to {new} cache clusters", "ReplicaCount")


CACHE_NAMES = {
    "description": "ReplicationGroupDescription",
    "nodeType": "CacheNodeType",
    "subnetGroupName": "CacheSubnetGroupName",
    "parameterGroupName": "CacheParameterGroupName",
    "maintenanceWindow": "PreferredMaintenanceWindow",
    "securityGroupNames": "CacheSecurityGroupNames",
}
CACHE_UPDATES = {n: t for n, t in CACHE_NAMES.items() if n != "subnetGroupName"}
REPLICATION_GROUP = Kind(
    GROUP,
    "elasticache",
    Call("CreateReplicationGroup", rename=CACHE_NAMES),
    "{replicationGroupId}",
    update=(
        Call(
            "ModifyReplicationGroup",
            {
                "ReplicationGroupId": "{id}",
                "ApplyImmediately": "{applyImmediately || `false`}",
            },
            rename=CACHE_UPDATES,
        ),
        Call(
            "ModifyReplicationGroup",
            {"ReplicationGroupId": "{id}"},
            takes=("userGroupIds",),
            only=("userGroupIds",),
            more=_user_groups,
        ),
        Act(_node_count, ("numCacheClusters",)),
    ),
    read=Read(
        "DescribeReplicationGroups", {"ReplicationGroupId": "{id}"}, "ReplicationGroups[0]",
        gone="Status == 'deleting'",
    ),
    delete=(Call("DeleteReplicationGroup", {"ReplicationGroupId": "{id}"}),),
    replaces=("replicationGroupId", "atRestEncryptionEnabled", "kmsKeyId", "subnetGroupName",
              "port", "dataTieringEnabled", "networkType", "snapshotArns", "snapshotName",
              "globalReplicationGroupId", "preferredCacheClusterAzs"),
    local=("applyImmediately", "finalSnapshotIdentifier", "authTokenWoVersion"),
    named=Named("replicationGroupId", 40, CACHE_NAME, lower=True),
    gives={
        "primaryEndpointAddress": address("STAND_IN_REDIS", lambda c: f"master.{c.facts['id']}"),
        "readerEndpointAddress": address("STAND_IN_REDIS", lambda c: f"replica.{c.facts['id']}"),
        "port": port("STAND_IN_REDIS", 6379),
        "memberClusters": lambda c: [
            f"{c.facts['id']}-{n + 1:03}" for n in range(c.facts.get("numCacheClusters") or 1)
        ],
        "arn": CACHE_ARN + "replicationgroup:{id}",
    },
    checks=_group_checks,
    rules=_group_rules,
)  # fmt: skip

KINDS = (
    CACHE_SUBNET_GROUP,
    CACHE_PARAMETER_GROUP,
    CACHE_USER,
    CACHE_USER_GROUP,
    USER_GROUP_ASSOCIATION,
    REPLICATION_GROUP,
)
