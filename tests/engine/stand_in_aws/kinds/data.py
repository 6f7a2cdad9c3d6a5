"""RDS, ElastiCache, FSx. Replacements: internal/service/{rds,elasticache,fsx}/*.go.

There is no database and no cache behind moto's: their addresses are those that the test names.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..moto import CloudError
from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read, added, given, removed

INSTANCE = "aws:rds/instance:Instance"
CLUSTER = "aws:rds/cluster:Cluster"
CLUSTER_INSTANCE = "aws:rds/clusterInstance:ClusterInstance"
DB_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
BY_PULUMI = {"description": "Managed by Pulumi"}


def _address(variable: str, default: Callable[[Context], Any]) -> Callable[[Context], Any]:
    """Return the host that a test named, or moto's."""
    return lambda c: os.environ.get(variable, "").rpartition(":")[0] or default(c)


def _port(variable: str, default: int) -> Callable[[Context], Any]:
    return lambda c: (
        int(os.environ.get(variable, "").rpartition(":")[2] or 0)
        or (c.facts.get("port") or default)
    )


# RDS

RDS_NAMES = {
    "identifier": "DBInstanceIdentifier",
    "instanceClass": "DBInstanceClass",
    "dbName": "DBName",
    "username": "MasterUsername",
    "password": "MasterUserPassword",
    "backupWindow": "PreferredBackupWindow",
    "maintenanceWindow": "PreferredMaintenanceWindow",
    "iamDatabaseAuthenticationEnabled": "EnableIAMDatabaseAuthentication",
    "performanceInsightsEnabled": "EnablePerformanceInsights",
    "enabledCloudwatchLogsExports": "EnableCloudwatchLogsExports",
    "caCertIdentifier": "CACertificateIdentifier",
    "parameterGroupName": "DBParameterGroupName",
    "dbParameterGroupName": "DBParameterGroupName",
    "clusterIdentifier": "DBClusterIdentifier",
    "customIamInstanceProfile": "CustomIamInstanceProfile",
}
CLUSTER_NAMES = {
    "clusterIdentifier": "DBClusterIdentifier",
    "masterPassword": "MasterUserPassword",
    "iamDatabaseAuthenticationEnabled": "EnableIAMDatabaseAuthentication",
    "performanceInsightsEnabled": "EnablePerformanceInsights",
    "enabledCloudwatchLogsExports": "EnableCloudwatchLogsExports",
    "dbClusterInstanceClass": "DBClusterInstanceClass",
    "dbClusterParameterGroupName": "DBClusterParameterGroupName",
}


def _log_exports(facts: Facts) -> dict[str, Any]:
    name = "enabledCloudwatchLogsExports"
    change = given(
        {
            "EnableLogTypes": added(facts, name) or None,
            "DisableLogTypes": removed(facts, name) or None,
        }
    )
    return {"CloudwatchLogsExportConfiguration": change} if change else {}


def _only_when(said: Mapping[str, str]) -> dict[str, str | None]:
    """Return the names that a modify call has too: log types are told otherwise there."""
    return {k: v for k, v in said.items() if k != "enabledCloudwatchLogsExports"}


def _final_snapshot(context: Context) -> dict[str, Any]:
    """Return how a database is deleted; without a name for its last snapshot it isn't."""
    outputs = context.facts["outputs"]
    if outputs.get("skipFinalSnapshot"):
        return {"SkipFinalSnapshot": True}
    if name := outputs.get("finalSnapshotIdentifier"):
        return {"SkipFinalSnapshot": False, "FinalDBSnapshotIdentifier": name}
    raise CloudError(
        "StandIn", "final_snapshot_identifier is required when skip_final_snapshot is false"
    )


def _delete_db(operation: str, member: str) -> Callable[[Context], None]:
    def delete(context: Context) -> None:
        named = {member: context.facts["id"]}
        outputs = context.facts["outputs"]
        if outputs.get("deletionProtection"):
            raise CloudError(
                "InvalidParameterCombination",
                "Cannot delete protected DB, disable deletion protection and try again.",
                operation,
            )
        snapshot = (
            {}
            if outputs.get("clusterIdentifier") and operation == "DeleteDBInstance"
            else (_final_snapshot(context))
        )
        context.cloud.call("rds", operation, {**named, **snapshot})

    return delete


def _managed_secret(context: Context) -> list[dict[str, Any]] | None:
    secret = context.facts["seen"].get("MasterUserSecret")
    if not secret:
        return None
    names = ("SecretArn", "SecretStatus", "KmsKeyId")
    return [{name[0].lower() + name[1:]: secret.get(name) for name in names}]


def _put_password(context: Context) -> None:
    """Have the secret that RDS manages hold the password of the database that the test named."""
    password, facts = os.environ.get("STAND_IN_POSTGRES_PASSWORD"), context.facts
    if not password or not facts.get("manageMasterUserPassword"):
        return
    one = "DBClusters" if facts.get("clusterIdentifier") else "DBInstances"
    name = {f"{one[:-1]}Identifier": facts["id"]}
    secret = context.cloud.find("rds", f"Describe{one}", f"{one}[0].MasterUserSecret", **name)
    user = facts.get("username") or facts.get("masterUsername")
    text = json.dumps({"username": user, "password": password})
    params = {"SecretId": secret["SecretArn"], "SecretString": text}
    context.cloud.call("secretsmanager", "PutSecretValue", params)


def _password(facts: Facts, own: str) -> Iterator[tuple[str, str]]:
    if facts.get("manageMasterUserPassword") and facts.get(own):
        yield own, "can't be set together with manageMasterUserPassword"
    if facts.get("kmsKeyId") and facts.get("storageEncrypted") is False:
        yield "storageEncrypted", "must be true when kmsKeyId is set"


def _instance_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    yield from _password(facts, "password")
    days = facts.get("backupRetentionPeriod")
    if isinstance(days, int) and not 0 <= days <= 35:
        yield "backupRetentionPeriod", f"is {days}, must be from 0 to 35"
    size, most = facts.get("allocatedStorage"), facts.get("maxAllocatedStorage")
    if isinstance(size, int) and isinstance(most, int) and 0 < most < size:
        yield "maxAllocatedStorage", f"is {most}, less than allocatedStorage ({size})"
    if facts.get("engine") in {"postgres", "mysql"} and isinstance(size, int) and size < 20:
        yield "allocatedStorage", f"is {size}, at least 20 are needed"


def _db_class(facts: Facts) -> Iterator[tuple[str, str]]:
    name = facts.get("instanceClass")
    if isinstance(name, str) and not unknown(name) and not name.startswith("db."):
        yield "instanceClass", f"{name!r} is no class of RDS: they begin with 'db.'"


DB_GIVES: Mapping[str, Any] = {
    "arn": "{seen.DBInstanceArn}",
    "address": _address("STAND_IN_POSTGRES", lambda c: c.facts["seen"]["Endpoint"]["Address"]),
    "endpoint": lambda c: f"{DB_GIVES['address'](c)}:{DB_GIVES['port'](c)}",
    "port": _port("STAND_IN_POSTGRES", 5432),
    "masterUserSecrets": _managed_secret,
    "resourceId": "{seen.DbiResourceId}",
    "status": lambda _: "available",
}
DB_LOCAL = ("skipFinalSnapshot", "finalSnapshotIdentifier", "applyImmediately",
            "allowMajorVersionUpgrade", "deleteAutomatedBackups", "blueGreenUpdate",
            "passwordWoVersion", "masterPasswordWoVersion", "forceDestroy")  # fmt: skip

RDS_INSTANCE = Kind(
    INSTANCE,
    "rds",
    Call("CreateDBInstance", rename=RDS_NAMES),
    "{identifier}",
    then=(Act(_put_password, ("manageMasterUserPassword",)),),
    update=(
        Call(
            "ModifyDBInstance",
            {"DBInstanceIdentifier": "{id}", "ApplyImmediately": "{applyImmediately || `false`}"},
            rename=_only_when(RDS_NAMES) | {"identifier": "NewDBInstanceIdentifier"},
        ),
        Call(
            "ModifyDBInstance",
            {"DBInstanceIdentifier": "{id}"},
            takes=("enabledCloudwatchLogsExports",),
            only=("enabledCloudwatchLogsExports",),
            more=_log_exports,
        ),
    ),
    read=Read("DescribeDBInstances", {"DBInstanceIdentifier": "{id}"}, "DBInstances[0]"),
    delete=(Act(_delete_db("DeleteDBInstance", "DBInstanceIdentifier")),),
    replaces=("engine", "username", "dbName", "storageEncrypted", "kmsKeyId", "availabilityZone",
              "characterSetName", "timezone", "snapshotIdentifier", "restoreToPointInTime",
              "backupTarget", "ncharCharacterSetName"),
    local=DB_LOCAL,
    named=Named("identifier", 63, DB_NAME, lower=True),
    gives=DB_GIVES,
    checks=lambda f: (*_instance_checks(f), *_db_class(f)),
)  # fmt: skip

RDS_CLUSTER = Kind(
    CLUSTER,
    "rds",
    Call("CreateDBCluster", rename=CLUSTER_NAMES),
    "{clusterIdentifier}",
    then=(Act(_put_password, ("manageMasterUserPassword",)),),
    update=(
        Call(
            "ModifyDBCluster",
            {"DBClusterIdentifier": "{id}", "ApplyImmediately": "{applyImmediately || `false`}"},
            rename=_only_when(CLUSTER_NAMES),
        ),
        Call(
            "ModifyDBCluster",
            {"DBClusterIdentifier": "{id}"},
            takes=("enabledCloudwatchLogsExports",),
            only=("enabledCloudwatchLogsExports",),
            more=_log_exports,
        ),
    ),
    read=Read("DescribeDBClusters", {"DBClusterIdentifier": "{id}"}, "DBClusters[0]"),
    delete=(Act(_delete_db("DeleteDBCluster", "DBClusterIdentifier")),),
    replaces=("clusterIdentifier", "engine", "engineMode", "masterUsername", "databaseName",
              "storageEncrypted", "kmsKeyId", "availabilityZones", "dbSubnetGroupName",
              "snapshotIdentifier", "restoreToPointInTime", "sourceRegion"),
    local=DB_LOCAL,
    named=Named("clusterIdentifier", 63, DB_NAME, lower=True),
    gives={
        "arn": "{seen.DBClusterArn}",
        "endpoint": _address("STAND_IN_POSTGRES", lambda c: c.facts["seen"].get("Endpoint")),
        "readerEndpoint":
            _address("STAND_IN_POSTGRES", lambda c: c.facts["seen"].get("ReaderEndpoint")),
        "port": _port("STAND_IN_POSTGRES", 5432),
        "masterUserSecrets": _managed_secret,
        "clusterResourceId": "{seen.DbClusterResourceId}",
    },
    checks=lambda f: _password(f, "masterPassword"),
    keeps=(f"{CLUSTER_INSTANCE}#clusterIdentifier",),
)  # fmt: skip

RDS_CLUSTER_INSTANCE = Kind(
    CLUSTER_INSTANCE,
    "rds",
    Call("CreateDBInstance", rename=RDS_NAMES),
    "{identifier}",
    update=(
        Call(
            "ModifyDBInstance",
            {"DBInstanceIdentifier": "{id}", "ApplyImmediately": "{applyImmediately || `false`}"},
            rename=RDS_NAMES,
        ),
    ),
    read=Read("DescribeDBInstances", {"DBInstanceIdentifier": "{id}"}, "DBInstances[0]"),
    delete=(Act(_delete_db("DeleteDBInstance", "DBInstanceIdentifier")),),
    replaces=("identifier", "clusterIdentifier", "engine", "engineVersion", "availabilityZone",
              "dbSubnetGroupName", "customIamInstanceProfile"),
    local=DB_LOCAL,
    named=Named("identifier", 63, DB_NAME, lower=True),
    gives={"arn": "{seen.DBInstanceArn}", "port": _port("STAND_IN_POSTGRES", 5432)},
    checks=_db_class,
)  # fmt: skip


def _two_zones(context: Context) -> None:
    subnets = {"SubnetIds": context.facts["subnetIds"]}
    found = context.cloud.call("ec2", "DescribeSubnets", subnets)["Subnets"]
    if len({subnet["AvailabilityZone"] for subnet in found}) < 2:
        raise CloudError(
            "DBSubnetGroupDoesNotCoverEnoughAZs",
            "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. Please "
            "add subnets to cover at least 2 AZs.",
        )


RDS_SUBNET_GROUP = Kind(
    "aws:rds/subnetGroup:SubnetGroup",
    "rds",
    Call(
        "CreateDBSubnetGroup",
        rename={"name": "DBSubnetGroupName", "description": "DBSubnetGroupDescription"},
    ),
    "{name}",
    update=(
        Call(
            "ModifyDBSubnetGroup",
            {"DBSubnetGroupName": "{id}"},
            rename={"description": "DBSubnetGroupDescription"},
            only=("subnetIds", "description"),
        ),
    ),
    read=Read("DescribeDBSubnetGroups", {"DBSubnetGroupName": "{id}"}, "DBSubnetGroups[0]"),
    delete=(Call("DeleteDBSubnetGroup", {"DBSubnetGroupName": "{id}"}),),
    replaces=("name",),
    named=Named("name", 255, r"[a-z0-9 ._-]+", lower=True),
    defaults=BY_PULUMI,
    gives={"arn": "{seen.DBSubnetGroupArn}"},
    rules=_two_zones,
    keeps=(f"{INSTANCE}#dbSubnetGroupName", f"{CLUSTER}#dbSubnetGroupName"),
)


def _parameters(operation: str, group: str) -> Callable[[Context], None]:
    """Return what sets the parameters of a group."""

    def put(context: Context) -> None:
        for one in added(context.facts, "parameters"):
            parameter = {
                "ParameterName": one["name"],
                "ParameterValue": one["value"],
                "ApplyMethod": one.get("applyMethod", "immediate"),
            }
            params = {group: context.facts["id"], "Parameters": [parameter]}
            context.cloud.call("rds", operation, params)

    return put


def _parameter_group(cluster: bool) -> Kind:
    kind = "DBClusterParameterGroup" if cluster else "DBParameterGroup"
    token = (
        "clusterParameterGroup:ClusterParameterGroup"
        if cluster
        else ("parameterGroup:ParameterGroup")
    )
    return Kind(
        f"aws:rds/{token}",
        "rds",
        Call(f"Create{kind}", rename={"name": f"{kind}Name", "family": "DBParameterGroupFamily"}),
        "{name}",
        then=(Act(_parameters(f"Modify{kind}", f"{kind}Name"), ("parameters",)),),
        read=Read(f"Describe{kind}s", {f"{kind}Name": "{id}"}, f"{kind}s[0]"),
        delete=(Call(f"Delete{kind}", {f"{kind}Name": "{id}"}),),
        replaces=("name", "family", "description"),
        local=("skipDestroy",),
        named=Named("name", 255, r"[a-z][a-z0-9-]*", lower=True),
        defaults=BY_PULUMI,
        gives={"arn": f"{{seen.{kind}Arn}}"},
        keeps=(f"{INSTANCE}#parameterGroupName", f"{CLUSTER}#dbClusterParameterGroupName",
               f"{CLUSTER_INSTANCE}#dbParameterGroupName"),
    )  # fmt: skip


# ElastiCache

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
        "primaryEndpointAddress": _address("STAND_IN_REDIS", lambda c: f"master.{c.facts['id']}"),
        "readerEndpointAddress": _address("STAND_IN_REDIS", lambda c: f"replica.{c.facts['id']}"),
        "port": _port("STAND_IN_REDIS", 6379),
        "memberClusters": lambda c: [
            f"{c.facts['id']}-{n + 1:03}" for n in range(c.facts.get("numCacheClusters") or 1)
        ],
        "arn": CACHE_ARN + "replicationgroup:{id}",
    },
    checks=_group_checks,
    rules=_group_rules,
)  # fmt: skip


# FSx

LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
LUSTRE_KIND = Kind(
    LUSTRE,
    "fsx",
    Call("CreateFileSystem", {"FileSystemType": "LUSTRE"}, inside="LustreConfiguration"),
    "{made.FileSystem.FileSystemId}",
    update=(
        Call(
            "UpdateFileSystem",
            {"FileSystemId": "{id}"},
            inside="LustreConfiguration",
            moto=False,
        ),
    ),
    read=Read("DescribeFileSystems", {"FileSystemIds": ["{id}"]}, "FileSystems[0]"),
    delete=(Call("DeleteFileSystem", {"FileSystemId": "{id}"}),),
    replaces=("subnetIds", "securityGroupIds", "deploymentType", "storageType", "kmsKeyId",
              "importPath", "exportPath", "driveCacheType", "importedFileChunkSize", "efaEnabled",
              "fileSystemTypeVersion", "backupId"),
    local=("skipFinalBackup", "finalBackupTags"),
    gives={
        "arn": "arn:aws:fsx:{region}:{account}:file-system/{id}",
        "dnsName": "{id}.fsx.{region}.amazonaws.com",
        "mountName": lambda c: c.facts["id"][-8:],
    },
)  # fmt: skip

DATA_REPOSITORY = Kind(
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    "fsx",
    Call("CreateDataRepositoryAssociation", moto=False),
    "dra-{fake}",
    update=(
        Call(
            "UpdateDataRepositoryAssociation",
            {"AssociationId": "{id}"},
            only=("importedFileChunkSize", "s3"),
            moto=False,
        ),
    ),
    delete=(Call("DeleteDataRepositoryAssociation", {"AssociationId": "{id}"}, moto=False),),
    replaces=("dataRepositoryPath", "fileSystemId", "fileSystemPath",
              "batchImportMetaDataOnCreate"),
    local=("deleteDataInFilesystem",),
    gives={"associationId": "{id}", "arn": "arn:aws:fsx:{region}:{account}:association/{id}"},
)  # fmt: skip

KINDS = (
    RDS_INSTANCE,
    RDS_CLUSTER,
    RDS_CLUSTER_INSTANCE,
    RDS_SUBNET_GROUP,
    _parameter_group(cluster=False),
    _parameter_group(cluster=True),
    CACHE_SUBNET_GROUP,
    CACHE_PARAMETER_GROUP,
    CACHE_USER,
    CACHE_USER_GROUP,
    USER_GROUP_ASSOCIATION,
    REPLICATION_GROUP,
    LUSTRE_KIND,
    DATA_REPOSITORY,
)
