"""KMS keys and aliases, secrets. Replacements: internal/service/{kms,secretsmanager}/*.go."""

from collections.abc import Iterator

from ..moto import CloudError
from ..values import unknown
from .base import Act, Call, Context, Facts, Kind, Named, Read
from .iam import policy_checks

KMS_POLICY = 32_768  # https://docs.aws.amazon.com/kms/latest/developerguide/resource-limits.html


def _rotation(context: Context) -> None:
    key = {"KeyId": context.facts["id"]}
    if context.facts.get("enableKeyRotation"):
        if days := context.facts.get("rotationPeriodInDays"):
            key["RotationPeriodInDays"] = days
        context.cloud.call("kms", "EnableKeyRotation", key)
    elif context.facts["old"]:
        context.cloud.call("kms", "DisableKeyRotation", key)


def _enabled(context: Context) -> None:
    off = context.facts.get("isEnabled") is False
    if off or context.facts["old"]:
        operation = "DisableKey" if off else "EnableKey"
        context.cloud.call("kms", operation, {"KeyId": context.facts["id"]})


def _key_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    days = facts.get("deletionWindowInDays", 30)
    if isinstance(days, int) and not 7 <= days <= 30:
        yield "deletionWindowInDays", f"is {days}, must be from 7 to 30"
    period = facts.get("rotationPeriodInDays")
    if period is not None and not facts.get("enableKeyRotation"):
        yield "rotationPeriodInDays", "needs enableKeyRotation"
    yield from policy_checks("policy", KMS_POLICY)(facts)


def _own_key(context: Context) -> None:
    """Refuse a policy that would shut its maker out, as KMS does."""
    text = context.facts.get("policy")
    open_ = not text or "kms:*" in text or "kms:PutKeyPolicy" in text or "kms:Put*" in text
    if not open_ and not context.facts.get("bypassPolicyLockoutSafetyCheck"):
        raise CloudError(
            "MalformedPolicyDocumentException",
            "The new key policy will not allow you to update the key policy in the future.",
        )


KEY = Kind(
    "aws:kms/key:Key",
    "kms",
    Call("CreateKey", rename={"customerMasterKeySpec": "KeySpec"}),
    "{made.KeyMetadata.KeyId}",
    then=(
        Act(_rotation, ("enableKeyRotation", "rotationPeriodInDays")),
        Act(_enabled, ("isEnabled",)),
    ),
    update=(
        Call("UpdateKeyDescription", {"KeyId": "{id}"}, only=("description",)),
        Call("PutKeyPolicy", {"KeyId": "{id}", "PolicyName": "default"}, only=("policy",)),
    ),
    read=Read(
        "DescribeKey", {"KeyId": "{id}"}, "KeyMetadata", gone="KeyState == 'PendingDeletion'"
    ),
    delete=(
        Call(
            "ScheduleKeyDeletion",
            {"KeyId": "{id}", "PendingWindowInDays": "{outputs.deletionWindowInDays || `30`}"},
        ),
    ),
    replaces=("customerMasterKeySpec", "keyUsage", "multiRegion", "customKeyStoreId", "xksKeyId"),
    local=("deletionWindowInDays",),
    gives={"keyId": "{id}"},
    checks=_key_checks,
    rules=_own_key,
)

ALIAS = Kind(
    "aws:kms/alias:Alias",
    "kms",
    Call("CreateAlias", rename={"name": "AliasName"}),
    "{name}",
    update=(Call("UpdateAlias", {"AliasName": "{id}"}, only=("targetKeyId",)),),
    read=Read("ListAliases", {}, "Aliases[?AliasName=='{id}']|[0]"),
    delete=(Call("DeleteAlias", {"AliasName": "{id}"}),),
    replaces=("name",),
    named=Named("name", 256, r"alias/[a-zA-Z0-9/_-]+", prefix="alias/"),
    gives={
        "arn": "arn:aws:kms:{region}:{account}:{name}",
        "targetKeyArn": "arn:aws:kms:{region}:{account}:key/{seen.TargetKeyId}",
    },
)

KEY_POLICY = Kind(
    "aws:kms/keyPolicy:KeyPolicy",
    "kms",
    Call("PutKeyPolicy", {"PolicyName": "default"}),
    "{keyId}",
    update=(Call("PutKeyPolicy", {"KeyId": "{keyId}", "PolicyName": "default"}, only=("policy",)),),
    replaces=("keyId",),
    checks=policy_checks("policy", KMS_POLICY),
    rules=_own_key,
)

GRANT = Kind(
    "aws:kms/grant:Grant",
    "kms",
    Call("CreateGrant"),
    "{keyId}:{made.GrantId}",
    delete=(Call("RevokeGrant", {"KeyId": "{keyId}", "GrantId": "{outputs.grantId}"}),),
    replaces=("keyId", "granteePrincipal", "operations", "constraints", "name",
              "retiringPrincipal", "grantCreationTokens"),
    local=("retireOnDelete",),
    named=Named("name", 256),
    gives={
        "grantId": lambda c: c.facts["id"].rpartition(":")[2],
        "grantToken": "{made.GrantToken}",
    },
)  # fmt: skip


def _secret_policy(context: Context) -> None:
    secret = {"SecretId": context.facts["id"]}
    if policy := context.facts.get("policy"):
        said = {**secret, "ResourcePolicy": policy}
        context.cloud.call("secretsmanager", "PutResourcePolicy", said)
    else:
        context.cloud.call("secretsmanager", "DeleteResourcePolicy", secret)


def _drop_secret(context: Context) -> None:
    days = context.facts["outputs"].get("recoveryWindowInDays", 30)
    how = {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
    context.cloud.call("secretsmanager", "DeleteSecret", {"SecretId": context.facts["id"], **how})


def _secret_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    days = facts.get("recoveryWindowInDays", 30)
    if isinstance(days, int) and days != 0 and not 7 <= days <= 30:
        yield "recoveryWindowInDays", f"is {days}, must be 0 or from 7 to 30"
    yield from policy_checks("policy", 20_480)(facts)


SECRET = Kind(
    "aws:secretsmanager/secret:Secret",
    "secretsmanager",
    Call("CreateSecret", rename={"replicas": "AddReplicaRegions"}),
    "{made.ARN}",
    then=(Act(_secret_policy, ("policy",)),),
    update=(Call("UpdateSecret", {"SecretId": "{id}"}, only=("description", "kmsKeyId")),),
    read=Read("DescribeSecret", {"SecretId": "{id}"}, "@", gone="DeletedDate"),
    delete=(Act(_drop_secret),),
    replaces=("name",),
    local=("recoveryWindowInDays", "forceOverwriteReplicaSecret"),
    named=Named("name", 512, r"[\w/+=.@-]+"),
    gives={"arn": "{id}"},
    checks=_secret_checks,
)


def _one_value(facts: Facts) -> Iterator[tuple[str, str]]:
    ways = ("secretString", "secretBinary", "secretStringWo")
    if sum(facts.get(name) is not None for name in ways) != 1:
        yield "secretString", f"exactly one of {', '.join(ways)} is needed"
    text = facts.get("secretString")
    if isinstance(text, str) and not unknown(text) and len(text) > 65_536:
        yield "secretString", "has more than 65536 characters"


SECRET_VERSION = Kind(
    "aws:secretsmanager/secretVersion:SecretVersion",
    "secretsmanager",
    Call("PutSecretValue", rename={"secretStringWo": "SecretString"}),
    "{secretId}|{made.VersionId}",
    replaces=("secretId", "secretString", "secretBinary", "secretStringWo", "secretStringWoVersion",
              "versionStages"),
    local=("secretStringWoVersion",),
    read=Read("DescribeSecret", {"SecretId": "{secretId}"}, "@", gone="DeletedDate"),
    gives={"versionId": lambda c: c.facts["id"].rpartition("|")[2], "arn": "{seen.ARN}"},
    checks=_one_value,
)  # fmt: skip

SECRET_POLICY = Kind(
    "aws:secretsmanager/secretPolicy:SecretPolicy",
    "secretsmanager",
    Call("PutResourcePolicy", rename={"secretArn": "SecretId", "policy": "ResourcePolicy"}),
    "{secretArn}",
    update=(
        Call(
            "PutResourcePolicy",
            {"SecretId": "{id}"},
            rename={"policy": "ResourcePolicy"},
            only=("policy", "blockPublicPolicy"),
        ),
    ),
    delete=(Call("DeleteResourcePolicy", {"SecretId": "{id}"}),),
    replaces=("secretArn",),
    checks=policy_checks("policy", 20_480),
)

KINDS = (KEY, ALIAS, KEY_POLICY, GRANT, SECRET, SECRET_VERSION, SECRET_POLICY)
