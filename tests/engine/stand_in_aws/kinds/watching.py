"""Logs, events, alarms, parameters, backups, builds. Replacements: internal/service/*/*.go."""

import json
from collections.abc import Iterator
from typing import Any

from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read

# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
RETENTIONS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557,
              2922, 3288, 3653)  # fmt: skip


def _retention(facts: Facts) -> Iterator[tuple[str, str]]:
    days = facts.get("retentionInDays")
    if isinstance(days, int) and days not in (0, *RETENTIONS):
        yield "retentionInDays", f"{days} is none of {', '.join(map(str, RETENTIONS))}"


def _keep_days(context: Context) -> None:
    group = {"logGroupName": context.facts["id"]}
    if days := context.facts.get("retentionInDays"):
        context.cloud.call("logs", "PutRetentionPolicy", {**group, "retentionInDays": days})
    elif context.facts["old"]:
        context.cloud.call("logs", "DeleteRetentionPolicy", group)


LOG_GROUP = Kind(
    "aws:cloudwatch/logGroup:LogGroup",
    "logs",
    Call("CreateLogGroup", rename={"name": "logGroupName"}),
    "{name}",
    then=(Act(_keep_days, ("retentionInDays",)),),
    update=(
        Call("AssociateKmsKey", {"logGroupName": "{id}"}, only=("kmsKeyId",), moto=False),
        Call(
            "PutLogGroupDeletionProtection",
            {"logGroupIdentifier": "{id}"},
            only=("deletionProtectionEnabled",),
            moto=False,
        ),
    ),
    read=Read(
        "DescribeLogGroups", {"logGroupNamePrefix": "{id}"}, "logGroups[?logGroupName=='{id}']|[0]"
    ),
    delete=(Call("DeleteLogGroup", {"logGroupName": "{id}"}),),
    replaces=("name", "logGroupClass"),
    local=("skipDestroy",),
    named=Named("name", 512, r"[.\-_/#A-Za-z0-9]+"),
    gives={"arn": "arn:aws:logs:{region}:{account}:log-group:{id}"},
    checks=_retention,
)


def _rule_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    if not facts.get("eventPattern") and not facts.get("scheduleExpression"):
        yield "eventPattern", "either eventPattern or scheduleExpression is needed"
    text = facts.get("eventPattern")
    if isinstance(text, str) and not unknown(text):
        try:
            json.loads(text)
        except ValueError as error:
            yield "eventPattern", f"must be JSON: {error}"


EVENT_RULE_CALL = Call("PutRule", rename={"isEnabled": None}, whole=True)
EVENT_RULE = Kind(
    "aws:cloudwatch/eventRule:EventRule",
    "events",
    EVENT_RULE_CALL,
    "{name}",
    update=(EVENT_RULE_CALL,),
    read=Read("DescribeRule", {"Name": "{id}"}, "@"),
    delete=(Call("DeleteRule", {"Name": "{id}"}),),
    replaces=("name", "eventBusName"),
    local=("forceDestroy",),
    named=Named("name", 64, r"[.\-_A-Za-z0-9]+"),
    gives={"arn": "{seen.Arn}"},
    checks=_rule_checks,
    keeps=("aws:cloudwatch/eventTarget:EventTarget#rule",),
)


def _target(facts: Facts) -> dict[str, Any]:
    names = {"arn": "Arn", "roleArn": "RoleArn", "input": "Input", "inputPath": "InputPath"}
    target = {member: facts[name] for name, member in names.items() if facts.get(name)}
    return {"Targets": [{"Id": facts["targetId"], **target}]}


EVENT_TARGET_CALL = Call(
    "PutTargets",
    only=("rule", "eventBusName"),
    takes=("targetId", "arn", "roleArn", "input", "inputPath"),
    more=_target,
)
EVENT_TARGET = Kind(
    "aws:cloudwatch/eventTarget:EventTarget",
    "events",
    EVENT_TARGET_CALL,
    "{rule}-{targetId}",
    update=(EVENT_TARGET_CALL,),
    read=Read("ListTargetsByRule", {"Rule": "{rule}"}, "Targets[?Id=='{targetId}']|[0]"),
    delete=(Call("RemoveTargets", {"Rule": "{rule}", "Ids": ["{targetId}"]}),),
    replaces=("rule", "targetId", "eventBusName"),
    local=("forceDestroy",),
    named=Named("targetId", 64, r"[.\-_A-Za-z0-9]+"),
)


def _dimensions(facts: Facts) -> dict[str, Any]:
    said = facts.get("dimensions") or {}
    if unknown(said):
        return {}
    return {"Dimensions": [{"Name": key, "Value": value} for key, value in said.items()]}


ALARM_CALL = Call(
    "PutMetricAlarm",
    rename={"name": "AlarmName", "metricQueries": "Metrics"},
    takes=("dimensions",),
    more=_dimensions,
    whole=True,
)
METRIC_ALARM = Kind(
    "aws:cloudwatch/metricAlarm:MetricAlarm",
    "cloudwatch",
    ALARM_CALL,
    "{name}",
    update=(ALARM_CALL,),
    read=Read("DescribeAlarms", {"AlarmNames": ["{id}"]}, "MetricAlarms[0]"),
    delete=(Call("DeleteAlarms", {"AlarmNames": ["{id}"]}),),
    replaces=("name",),
    named=Named("name", 255),
    gives={"arn": "{seen.AlarmArn}"},
)


DASHBOARD_CALL = Call("PutDashboard")
DASHBOARD = Kind(
    "aws:cloudwatch/dashboard:Dashboard",
    "cloudwatch",
    DASHBOARD_CALL,
    "{dashboardName}",
    update=(Call("PutDashboard", {"DashboardName": "{id}"}, only=("dashboardBody",)),),
    read=Read("GetDashboard", {"DashboardName": "{id}"}, "@"),
    delete=(Call("DeleteDashboards", {"DashboardNames": ["{id}"]}),),
    replaces=("dashboardName",),
    gives={"dashboardArn": "{seen.DashboardArn}"},
)


def _overwriting(facts: Facts) -> dict[str, Any]:
    return {"Overwrite": bool(facts["old"]) or bool(facts.get("overwrite"))}


PARAMETER_NAMES = {"insecureValue": "Value", "valueWo": "Value", "keyId": "KeyId"}
PARAMETER = Kind(
    "aws:ssm/parameter:Parameter",
    "ssm",
    Call("PutParameter", rename=PARAMETER_NAMES, takes=("overwrite",), more=_overwriting),
    "{name}",
    update=(
        Call(
            "PutParameter",
            {"Name": "{id}"},
            rename=PARAMETER_NAMES,
            takes=("overwrite",),
            more=_overwriting,
            whole=True,
        ),
    ),
    read=Read("GetParameter", {"Name": "{id}"}, "Parameter"),
    delete=(Call("DeleteParameter", {"Name": "{id}"}),),
    replaces=("name", "dataType"),
    local=("valueWoVersion",),
    named=Named("name", 1011, r"[a-zA-Z0-9_.\-/]+"),
    gives={"arn": "{seen.ARN}"},
)

VAULT = Kind(
    "aws:backup/vault:Vault",
    "backup",
    Call("CreateBackupVault", rename={"name": "BackupVaultName", "kmsKeyArn": "EncryptionKeyArn"}),
    "{name}",
    read=Read("DescribeBackupVault", {"BackupVaultName": "{id}"}, "@"),
    delete=(Call("DeleteBackupVault", {"BackupVaultName": "{id}"}),),
    replaces=("name", "kmsKeyArn"),
    local=("forceDestroy",),
    named=Named("name", 50, r"[a-zA-Z0-9\-_]{2,50}"),
    gives={"arn": "{seen.BackupVaultArn}"},
    keeps=("aws:backup/plan:Plan",),
)

PLAN_NAMES = {
    "name": "BackupPlan.BackupPlanName",
    "rules": "BackupPlan.Rules",
    "rules.targetVaultName": "TargetBackupVaultName",
    "rules.schedule": "ScheduleExpression",
    "rules.startWindow": "StartWindowMinutes",
    "rules.completionWindow": "CompletionWindowMinutes",
    "rules.lifecycle.coldStorageAfter": "MoveToColdStorageAfterDays",
    "rules.lifecycle.deleteAfter": "DeleteAfterDays",
    "rules.copyActions.destinationVaultArn": "DestinationBackupVaultArn",
}
PLAN = Kind(
    "aws:backup/plan:Plan",
    "backup",
    Call("CreateBackupPlan", rename=PLAN_NAMES),
    "{made.BackupPlanId}",
    update=(
        Call(
            "UpdateBackupPlan", {"BackupPlanId": "{id}"}, rename=PLAN_NAMES, whole=True, moto=False
        ),
    ),
    read=Read("GetBackupPlan", {"BackupPlanId": "{id}"}, "@", gone="DeletionDate"),
    delete=(Call("DeleteBackupPlan", {"BackupPlanId": "{id}"}),),
    named=Named("name", 50),
    gives={"arn": "{seen.BackupPlanArn}", "version": "{seen.VersionId}"},
    keeps=("aws:backup/selection:Selection",),
)

SELECTION_NAMES = {
    "planId": "BackupPlanId",
    "name": "BackupSelection.SelectionName",
    "iamRoleArn": "BackupSelection.IamRoleArn",
    "resources": "BackupSelection.Resources",
    "notResources": "BackupSelection.NotResources",
    "selectionTags": "BackupSelection.ListOfTags",
    "selectionTags.type": "ConditionType",
    "selectionTags.key": "ConditionKey",
    "selectionTags.value": "ConditionValue",
}
SELECTION = Kind(
    "aws:backup/selection:Selection",
    "backup",
    Call("CreateBackupSelection", rename=SELECTION_NAMES, moto=False),
    "{fake}",
    replaces=("planId", "name", "iamRoleArn", "resources", "notResources", "selectionTags",
              "conditions"),
    named=Named("name", 50),
)  # fmt: skip

BUILD_NAMES = {
    "badgeEnabled": None,
    "buildTimeout": "timeoutInMinutes",
    "queuedTimeout": "queuedTimeoutInMinutes",
    "environment.environmentVariables": "environmentVariables",
    "environment.certificate": "certificate",
}
PROJECT = Kind(
    "aws:codebuild/project:Project",
    "codebuild",
    Call("CreateProject", rename=BUILD_NAMES),
    "{made.project.arn}",
    update=(Call("UpdateProject", {"name": "{name}"}, rename=BUILD_NAMES, whole=True, moto=False),),
    read=Read("BatchGetProjects", {"names": ["{name}"]}, "projects[0]"),
    delete=(Call("DeleteProject", {"name": "{name}"}),),
    replaces=("name",),
    named=Named("name", 255, r"[A-Za-z0-9][A-Za-z0-9\-_]{1,254}"),
    gives={"arn": "{id}"},
)

KINDS = (
    LOG_GROUP,
    EVENT_RULE,
    EVENT_TARGET,
    METRIC_ALARM,
    DASHBOARD,
    PARAMETER,
    VAULT,
    PLAN,
    SELECTION,
    PROJECT,
)
