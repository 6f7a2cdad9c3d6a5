"""Databases. Replacements: internal/service/rds/*.go. None runs behind moto's."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..moto import CloudError
from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read, added, given, removed
from .named_by_test import BY_PULUMI, address, port

INSTANCE = "aws:rds/instance:Instance"
CLUSTER = "aws:rds/cluster:Cluster"
CLUSTER_INSTANCE = "aws:rds/clusterInstance:ClusterInstance"
DB_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"

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
    "address": address("STAND_IN_POSTGRES", lambda c: c.facts["seen"]["Endpoint"]["Address"]),
    "endpoint": lambda c: f"{DB_GIVES['address'](c)}:{DB_GIVES['port'](c)}",
    "port": port("STAND_IN_POSTGRES", 5432),
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
        "endpoint": address("STAND_IN_POSTGRES", lambda c: c.facts["seen"].get("Endpoint")),
        "readerEndpoint":
            address("STAND_IN_POSTGRES", lambda c: c.facts["seen"].get("ReaderEndpoint")),
        "port": port("STAND_IN_POSTGRES", 5432),
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
    gives={"arn": "{seen.DBInstanceArn}", "port": port("STAND_IN_POSTGRES", 5432)},
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


KINDS = (
    RDS_INSTANCE,
    RDS_CLUSTER,
    RDS_CLUSTER_INSTANCE,
    RDS_SUBNET_GROUP,
    _parameter_group(cluster=False),
    _parameter_group(cluster=True),
)
