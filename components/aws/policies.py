"""Policies: statements from plain values and outputs, and the JSON that they make."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

import pulumi

from ..contracts import In
from .account import AwsAccount

Conditions = Mapping[str, Mapping[str, In[str] | Sequence[In[str]]]]


class Statement(TypedDict):
    """One statement, in IAM's own spelling."""

    Sid: str
    Effect: Literal["Allow", "Deny"]
    Action: Sequence[str]
    Resource: NotRequired[Sequence[In[str]]]
    Principal: NotRequired[str | Mapping[str, In[str] | Sequence[In[str]]]]
    Condition: NotRequired[Conditions]


Statements = Sequence[Statement]


def document(statements: Statements) -> pulumi.Output[str]:
    """Return a policy as JSON; of statements with the same name, the later ones get a number."""
    seen: Counter[str] = Counter()
    named_apart: list[Statement] = []
    for statement in statements:
        sid = statement["Sid"]
        seen[sid] += 1
        number = "" if seen[sid] == 1 else str(seen[sid])
        named_apart.append({**statement, "Sid": f"{sid}{number}"})
    return pulumi.Output.json_dumps({"Version": "2012-10-17", "Statement": named_apart})


def allow(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[In[str]],
    conditions: Conditions | None = None,
) -> Statement:
    """Return a statement that allows some actions."""
    statement: Statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": list(actions),
        "Resource": list(resources),
    }
    if conditions:
        statement["Condition"] = conditions
    return statement


def trust_pods(
    account: AwsAccount, cluster_name: In[str], namespace: In[str], service_account: str
) -> Statements:
    """Return who may become a role: pods with one service account of one cluster.

    EKS names all three in the session that it asks for (EKS user guide, ``pod-id-role``).
    """
    cluster = pulumi.Output.format("{0}/{1}", account.arn("eks", "cluster"), cluster_name)
    return [
        {
            "Sid": "PodsOfOneServiceAccount",
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {
                "StringEquals": {
                    "aws:RequestTag/eks-cluster-arn": cluster,
                    "aws:RequestTag/kubernetes-namespace": namespace,
                    "aws:RequestTag/kubernetes-service-account": service_account,
                }
            },
        }
    ]


def only_encrypted_transport(service: str, resources: Sequence[In[str]]) -> Statements:
    """Return what a bucket's or a queue's own policy says to requests without TLS: no."""
    return [
        {
            "Sid": "OnlyOverTls",
            "Effect": "Deny",
            "Principal": "*",
            "Action": [f"{service}:*"],
            "Resource": list(resources),
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    ]
