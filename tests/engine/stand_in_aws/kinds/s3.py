"""Buckets, and what is set on them one thing at a time. Replacements: internal/service/s3/*.go."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..moto import CloudError
from ..values import unknown
from .base import BY_ITS_STEPS, Act, Call, Context, Facts, Kind, Named, Read
from .iam import policy_checks

BUCKET = "aws:s3/bucket:Bucket"
BUCKET_POLICY = 20_480
OF_BUCKET = {"Bucket": "{bucket}"}


def _where(facts: Facts) -> dict[str, Any]:
    if facts["region"] == "us-east-1":
        return {}
    return {"CreateBucketConfiguration": {"LocationConstraint": facts["region"]}}


def _put_tags(context: Context) -> None:
    tags = [{"Key": key, "Value": value} for key, value in context.facts["tagsAll"].items()]
    bucket = {"Bucket": context.facts["id"]}
    if tags:
        context.cloud.call("s3", "PutBucketTagging", {**bucket, "Tagging": {"TagSet": tags}})
    elif context.facts["old"]:
        context.cloud.call("s3", "DeleteBucketTagging", bucket)


def _emptied(context: Context) -> None:
    """Delete every version of every object, when that is wished."""
    if not context.facts["outputs"].get("forceDestroy"):
        return
    bucket = {"Bucket": context.facts["id"]}
    found = context.cloud.call("s3", "ListObjectVersions", bucket)
    if context.cloud.call("s3", "GetBucketVersioning", bucket).get("Status") == "Suspended":
        # moto deletes single versions only while it keeps them.
        kept = {"VersioningConfiguration": {"Status": "Enabled"}}
        context.cloud.call("s3", "PutBucketVersioning", {**bucket, **kept})
    for version in [*found.get("Versions", []), *found.get("DeleteMarkers", [])]:
        one = {"Key": version["Key"], "VersionId": version["VersionId"]}
        context.cloud.call("s3", "DeleteObject", {**bucket, **one})


BUCKET_KIND = Kind(
    BUCKET,
    "s3",
    Call(
        "CreateBucket",
        rename={"objectLockEnabled": "ObjectLockEnabledForBucket"},
        only=("bucket", "objectLockEnabled"),
        more=_where,
    ),
    "{bucket}",
    then=(Act(_put_tags, always=True),),
    read=Read("HeadBucket", {"Bucket": "{id}"}, "ResponseMetadata"),
    delete=(Act(_emptied), Call("DeleteBucket", {"Bucket": "{id}"})),
    replaces=("bucket", "objectLockEnabled"),
    tagging=BY_ITS_STEPS,
    local=("forceDestroy",),
    named=Named("bucket", 63, r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", lower=True),
    gives={
        "arn": "arn:aws:s3:::{bucket}",
        "bucketDomainName": "{bucket}.s3.amazonaws.com",
        "bucketRegionalDomainName": "{bucket}.s3.{region}.amazonaws.com",
        "bucketRegion": "{region}",
    },
)


def _whole_policy(facts: Facts) -> Iterator[tuple[str, str]]:
    yield from policy_checks("policy", BUCKET_POLICY)(facts)
    text, bucket = facts.get("policy"), facts.get("bucket")
    if not isinstance(text, str) or unknown(text) or unknown(bucket):
        return
    try:
        statements = json.loads(text).get("Statement", [])
    except (ValueError, AttributeError):
        return
    for statement in statements if isinstance(statements, list) else [statements]:
        said = statement.get("Resource", [])
        for arn in said if isinstance(said, list) else [said]:
            if arn not in {f"arn:aws:s3:::{bucket}"} and not arn.startswith(
                f"arn:aws:s3:::{bucket}/"
            ):
                yield "policy", f"has the resource {arn}, which isn't in the bucket {bucket}"


def _read_by_moto(facts: Facts) -> dict[str, Any]:
    """Return the policy without refusals on a condition: moto reads none, and would refuse all."""
    text = facts.get("policy")
    if not isinstance(text, str) or unknown(text):
        return {}
    policy = json.loads(text)
    said = policy.get("Statement", [])
    statements = [
        statement
        for statement in (said if isinstance(said, list) else [said])
        if statement.get("Effect") != "Deny" or not statement.get("Condition")
    ]
    return {"Policy": json.dumps({**policy, "Statement": statements})}


def _setting(
    name: str,
    put: str,
    *,
    inside: str = "",
    undo: str | Callable[[Context], None] = "",
    get: str = "",
    **more: Any,
) -> Kind:
    """Return the entry of a bucket's setting: put again at a change, taken off at the end."""
    call = Call(put, OF_BUCKET, inside=inside, whole=True, **more.pop("call", {}))
    delete = (Act(undo),) if callable(undo) else (Call(undo, OF_BUCKET),) if undo else ()
    return Kind(
        f"aws:s3/{name[0].lower()}{name[1:]}:{name}",
        "s3",
        call,
        "{bucket}",
        update=(call,),
        read=Read(get, OF_BUCKET, "@") if get else None,
        delete=delete,
        replaces=("bucket", *more.pop("replaces", ())),
        **more,
    )


def _suspend(context: Context) -> None:
    """Stop versioning, as the provider does: what was versioned stays so."""
    setting = context.facts.get("versioningConfiguration") or {}
    if setting.get("status") == "Enabled":
        suspended = {"VersioningConfiguration": {"Status": "Suspended"}}
        params = {"Bucket": context.facts["bucket"], **suspended}
        context.cloud.call("s3", "PutBucketVersioning", params)


def _no_notification(context: Context) -> None:
    nothing = {"Bucket": context.facts["bucket"], "NotificationConfiguration": {}}
    context.cloud.call("s3", "PutBucketNotificationConfiguration", nothing)


def _logged_to(facts: Facts) -> dict[str, Any]:
    target = {
        "TargetBucket": facts.get("targetBucket"),
        "TargetPrefix": facts.get("targetPrefix", ""),
    }
    return {"BucketLoggingStatus": {"LoggingEnabled": target}}


def _stop_logging(context: Context) -> None:
    nothing = {"Bucket": context.facts["bucket"], "BucketLoggingStatus": {}}
    context.cloud.call("s3", "PutBucketLogging", nothing)


def _lifecycle_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    for at, rule in enumerate(facts.get("rules") or []):
        actions = ("expiration", "transitions", "noncurrentVersionExpiration",
                   "noncurrentVersionTransitions", "abortIncompleteMultipartUpload")  # fmt: skip
        if not any(rule.get(name) for name in actions):
            yield f"rules[{at}]", f"needs one of {', '.join(actions)}"


NOTIFICATION_NAMES = {
    "queues": "NotificationConfiguration.QueueConfigurations",
    "topics": "NotificationConfiguration.TopicConfigurations",
    "eventbridge": None,
}


def _body(facts: Facts) -> dict[str, Any]:
    body = facts.get("content") or facts.get("contentBase64") or ""
    return {"Body": body if unknown(body) else body.encode()}


def _object(name: str) -> Kind:
    call = Call(
        "PutObject",
        rename={"kmsKeyId": "SSEKMSKeyId"},
        takes=("content",),
        more=_body,
        whole=True,
    )
    return Kind(
        f"aws:s3/{name[0].lower()}{name[1:]}:{name}",
        "s3",
        call,
        "{bucket}/{key}",
        update=(call,),
        read=Read("HeadObject", {"Bucket": "{bucket}", "Key": "{key}"}, "@"),
        delete=(Call("DeleteObject", {"Bucket": "{bucket}", "Key": "{key}"}),),
        replaces=("bucket", "key"),
        local=("forceDestroy", "sourceHash"),
        tagging=BY_ITS_STEPS,
        named=Named("key", 1024),
        gives={"arn": "arn:aws:s3:::{bucket}/{key}", "etag": "{seen.ETag}"},
    )


def _directory(facts: Facts) -> dict[str, Any]:
    place = facts.get("location") or {}
    zone = place if unknown(place) else place.get("name")
    return {
        "CreateBucketConfiguration": {
            "Location": {"Type": "AvailabilityZone", "Name": zone},
            "Bucket": {"Type": "Directory", "DataRedundancy": "SingleAvailabilityZone"},
        }
    }


DIRECTORY_BUCKET = Kind(
    "aws:s3/directoryBucket:DirectoryBucket",
    "s3",
    Call("CreateBucket", only=("bucket",), takes=("location",), more=_directory, moto=False),
    "{bucket}",
    delete=(Call("DeleteBucket", {"Bucket": "{id}"}, moto=False),),
    replaces=("bucket", "location", "dataRedundancy", "type"),
    local=("forceDestroy", "type", "dataRedundancy"),
    named=Named("bucket", 63, r"[a-z0-9-]+--[a-z0-9-]+--x-s3", given=True),
    gives={"arn": "arn:aws:s3express:{region}:{account}:bucket/{bucket}"},
)


def _bucket_is_there(context: Context) -> None:
    name = context.facts["bucket"]
    if context.cloud.find("s3", "HeadBucket", "ResponseMetadata", Bucket=name) is None:
        raise CloudError("NoSuchBucket", f"The specified bucket does not exist: {name}")


SETTINGS: tuple[Mapping[str, Any], ...] = (
    {"name": "BucketVersioning", "put": "PutBucketVersioning", "undo": _suspend,
     "get": "GetBucketVersioning"},
    {"name": "BucketServerSideEncryptionConfiguration", "put": "PutBucketEncryption",
     "inside": "ServerSideEncryptionConfiguration", "undo": "DeleteBucketEncryption",
     "get": "GetBucketEncryption"},
    {"name": "BucketPublicAccessBlock", "put": "PutPublicAccessBlock",
     "inside": "PublicAccessBlockConfiguration", "undo": "DeletePublicAccessBlock",
     "get": "GetPublicAccessBlock", "local": ("skipDestroy",)},
    {"name": "BucketOwnershipControls", "put": "PutBucketOwnershipControls",
     "inside": "OwnershipControls", "undo": "DeleteBucketOwnershipControls",
     "get": "GetBucketOwnershipControls"},
    {"name": "BucketPolicy", "put": "PutBucketPolicy", "undo": "DeleteBucketPolicy",
     "get": "GetBucketPolicy", "checks": _whole_policy, "call": {"more": _read_by_moto}},
    {"name": "BucketLifecycleConfiguration", "put": "PutBucketLifecycleConfiguration",
     "inside": "LifecycleConfiguration", "undo": "DeleteBucketLifecycle",
     "get": "GetBucketLifecycleConfiguration", "checks": _lifecycle_checks,
     "local": ("timeouts",)},
    {"name": "BucketCorsConfiguration", "put": "PutBucketCors", "inside": "CORSConfiguration",
     "undo": "DeleteBucketCors", "get": "GetBucketCors"},
    {"name": "BucketLogging", "put": "PutBucketLogging", "undo": _stop_logging,
     "call": {"takes": ("targetBucket", "targetPrefix"), "more": _logged_to}},
    {"name": "BucketNotification", "put": "PutBucketNotificationConfiguration",
     "undo": _no_notification, "call": {"rename": NOTIFICATION_NAMES}},
)  # fmt: skip

KINDS = (
    BUCKET_KIND,
    *(_setting(**dict(setting), rules=_bucket_is_there) for setting in SETTINGS),
    _object("BucketObject"),
    _object("BucketObjectv2"),
    DIRECTORY_BUCKET,
)
