"""Queues. Their settings are texts in a map, so their ranges stand here.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
and internal/service/sqs/queue.go, read 2026-11.
"""

import json
from collections.abc import Iterator
from typing import Any

from ..values import unknown
from .base import Call, Facts, Kind, Named, Read
from .iam import policy_checks

ATTRIBUTES = {
    "contentBasedDeduplication": "ContentBasedDeduplication",
    "deduplicationScope": "DeduplicationScope",
    "delaySeconds": "DelaySeconds",
    "fifoQueue": "FifoQueue",
    "fifoThroughputLimit": "FifoThroughputLimit",
    "kmsDataKeyReusePeriodSeconds": "KmsDataKeyReusePeriodSeconds",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "maxMessageSize": "MaximumMessageSize",
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "policy": "Policy",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "redriveAllowPolicy": "RedriveAllowPolicy",
    "redrivePolicy": "RedrivePolicy",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
}
RANGES = {
    "delaySeconds": (0, 900),
    "kmsDataKeyReusePeriodSeconds": (60, 86_400),
    "maxMessageSize": (1_024, 1_048_576),
    "messageRetentionSeconds": (60, 1_209_600),
    "receiveWaitTimeSeconds": (0, 20),
    "visibilityTimeoutSeconds": (0, 43_200),
}
POLICY_SIZE = 20_480


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _attributes(facts: Facts) -> dict[str, Any]:
    """Return the attributes to set; those that a queue no longer names are emptied."""
    now = {a: _said(facts[n]) for n, a in ATTRIBUTES.items() if facts.get(n) is not None}
    cleared = ("policy", "redrivePolicy", "redriveAllowPolicy", "kmsMasterKeyId")
    gone = {
        ATTRIBUTES[name]: ""
        for name in cleared
        if facts["old"].get(name) and facts.get(name) is None
    }
    fixed = ("FifoQueue",) if facts["old"] else ()
    return {"Attributes": {k: v for k, v in (now | gone).items() if k not in fixed}}


def _queue_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    for name, (least, most) in RANGES.items():
        value = facts.get(name)
        if isinstance(value, int) and not least <= value <= most:
            yield name, f"is {value}, must be from {least} to {most}"
    name, fifo = facts.get("name"), facts.get("fifoQueue") is True
    if isinstance(name, str) and not unknown(name) and name.endswith(".fifo") != fifo:
        yield "name", "ends with .fifo exactly when fifoQueue is true"
    if facts.get("kmsMasterKeyId") and facts.get("sqsManagedSseEnabled"):
        yield "sqsManagedSseEnabled", "can't be set together with kmsMasterKeyId"
    yield from _redrive_checks(facts)
    yield from policy_checks("policy", POLICY_SIZE)(facts)


def _redrive_checks(facts: Facts) -> Iterator[tuple[str, str]]:
    for name, needed in (
        ("redrivePolicy", {"deadLetterTargetArn", "maxReceiveCount"}),
        ("redriveAllowPolicy", {"redrivePermission"}),
    ):
        text = facts.get(name)
        if not isinstance(text, str) or unknown(text):
            continue
        try:
            policy = json.loads(text)
        except ValueError as error:
            yield name, f"must be JSON: {error}"
            continue
        for missing in sorted(needed - set(policy)):
            yield name, f"lacks {missing}"
        count = policy.get("maxReceiveCount", 1)
        if not isinstance(count, int) or not 1 <= count <= 1_000:
            yield name, f"has a maxReceiveCount of {count!r}, must be a number from 1 to 1000"


QUEUE = Kind(
    "aws:sqs/queue:Queue",
    "sqs",
    Call("CreateQueue", {"QueueName": "{name}"}, takes=("name", *ATTRIBUTES), more=_attributes),
    "{made.QueueUrl}",
    update=(
        Call(
            "SetQueueAttributes",
            {"QueueUrl": "{id}"},
            takes=tuple(name for name in ATTRIBUTES if name != "fifoQueue"),
            more=_attributes,
        ),
    ),
    read=Read("GetQueueAttributes", {"QueueUrl": "{id}", "AttributeNames": ["All"]}, "Attributes"),
    delete=(Call("DeleteQueue", {"QueueUrl": "{id}"}),),
    replaces=("name", "fifoQueue"),
    named=Named("name", 80, r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo"),
    gives={"arn": "{seen.QueueArn}", "url": "{id}"},
    checks=_queue_checks,
)


def _of_queue(name: str, property_: str) -> Kind:
    """Return the entry of a setting that stands beside its queue."""
    attribute = ATTRIBUTES[property_]
    call = Call(
        "SetQueueAttributes",
        {"QueueUrl": "{queueUrl}", "Attributes": {attribute: f"{{{property_}}}"}},
        takes=("queueUrl", property_),
    )
    gone = Call("SetQueueAttributes", {"QueueUrl": "{queueUrl}", "Attributes": {attribute: ""}})
    return Kind(
        f"aws:sqs/{name[0].lower()}{name[1:]}:{name}",
        "sqs",
        call,
        "{queueUrl}",
        update=(call,),
        read=Read(
            "GetQueueAttributes",
            {"QueueUrl": "{queueUrl}", "AttributeNames": ["QueueArn"]},
            "ResponseMetadata",
        ),
        delete=(gone,),
        replaces=("queueUrl",),
        checks=lambda f: (*_redrive_checks(f), *policy_checks("policy", POLICY_SIZE)(f)),
    )


KINDS = (
    QUEUE,
    _of_queue("QueuePolicy", "policy"),
    _of_queue("RedrivePolicy", "redrivePolicy"),
    _of_queue("RedriveAllowPolicy", "redriveAllowPolicy"),
)
