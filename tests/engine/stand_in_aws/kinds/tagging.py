"""How each service tags what it makes, and what is there already."""

from collections.abc import Mapping
from typing import Any

from ..model import fit
from ..values import filled
from .base import BY_ITS_STEPS, Context, Kind, Tagging

ARN = "{outputs.arn}"
BY_SERVICE: Mapping[str, Tagging] = {
    "acm": Tagging(
        "AddTagsToCertificate", "RemoveTagsFromCertificate", {"CertificateArn": "{id}"}, keys="Tags"
    ),
    "backup": Tagging("TagResource", "UntagResource", {"ResourceArn": ARN}, keys="TagKeyList"),
    "cloudwatch": Tagging("TagResource", "UntagResource", {"ResourceARN": ARN}),
    "codebuild": BY_ITS_STEPS,
    "ecr": Tagging("TagResource", "UntagResource", {"resourceArn": ARN}, "tags", "tagKeys"),
    "eks": Tagging("TagResource", "UntagResource", {"resourceArn": ARN}, "tags", "tagKeys"),
    "elasticache": Tagging("AddTagsToResource", "RemoveTagsFromResource", {"ResourceName": ARN}),
    "elbv2": Tagging("AddTags", "RemoveTags", {"ResourceArns": "{[id]}"}),
    "events": Tagging("TagResource", "UntagResource", {"ResourceARN": ARN}),
    "fsx": Tagging("TagResource", "UntagResource", {"ResourceARN": ARN}),
    "kms": Tagging("TagResource", "UntagResource", {"KeyId": "{id}"}),
    "logs": Tagging("TagResource", "UntagResource", {"resourceArn": ARN}, "tags", "tagKeys"),
    "rds": Tagging("AddTagsToResource", "RemoveTagsFromResource", {"ResourceName": ARN}),
    "route53": Tagging(
        "ChangeTagsForResource",
        "ChangeTagsForResource",
        {"ResourceType": "hostedzone", "ResourceId": "{outputs.zoneId}"},
        "AddTags",
        "RemoveTagKeys",
    ),
    "secretsmanager": Tagging("TagResource", "UntagResource", {"SecretId": "{id}"}),
    "sqs": Tagging("TagQueue", "UntagQueue", {"QueueUrl": "{id}"}),
    "ssm": Tagging(
        "AddTagsToResource",
        "RemoveTagsFromResource",
        {"ResourceType": "Parameter", "ResourceId": "{id}"},
    ),
}


def tag_parameters(kind: Kind, shape: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a create that carry the tags, where it takes any."""
    tags = facts["tagsAll"]
    if not tags:
        return {}
    if kind.tag_spec:
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        return {"TagSpecifications": [{"ResourceType": kind.tag_spec, "Tags": listed}]}
    return fit(shape, {"tags": tags}, {}).params


def retag(kind: Kind, context: Context, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Give a thing other tags."""
    if kind.create is None or not kind.create.moto:
        return  # nothing in moto to tag
    set_ = {key: value for key, value in after.items() if before.get(key) != value}
    gone = [key for key in before if key not in after]
    if kind.service == "ec2":
        _retag_ec2(context, set_, gone)
        return
    tagging = kind.tagging or BY_SERVICE[kind.service]
    if tagging is BY_ITS_STEPS:
        return
    named = filled(tagging.named, context.facts)
    cloud = context.cloud
    if set_:
        shape = cloud.input(kind.service, tagging.tag)
        tags = fit(shape, {"tags": set_}, {"tags": tagging.tags}).params
        cloud.call(kind.service, tagging.tag, {**named, **tags})
    if gone:
        keys = [{"Key": key} for key in gone] if tagging.keys == tagging.tags else gone
        cloud.call(kind.service, tagging.untag, {**named, tagging.keys: keys})


def _retag_ec2(context: Context, set_: dict[str, Any], gone: list[str]) -> None:
    resources = [context.facts["id"]]
    if set_:
        tags = [{"Key": key, "Value": value} for key, value in set_.items()]
        context.cloud.call("ec2", "CreateTags", {"Resources": resources, "Tags": tags})
    if gone:
        keys = [{"Key": key} for key in gone]
        context.cloud.call("ec2", "DeleteTags", {"Resources": resources, "Tags": keys})
