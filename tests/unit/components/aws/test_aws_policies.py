"""Every workload may do what its service does, and nothing else.

What a service does is read from its source (``tests/service_calls.py``), what its role may do from
the program that makes the role.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pytest

from components.aws import limits
from tests import aws_policies
from tests.aws_outputs import ACCOUNT, REGION, arn
from tests.aws_policies import POLICIES, of_roles
from tests.aws_samples import DATABASE_SECRET, ENVIRONMENT, KEYS
from tests.iam import allowed, granted
from tests.service_calls import importing_boto, methods_used, sources

BUCKET, BROKER = "core/bucket.py", "core/broker/sqs.py"
STORE, DATABASE, METRICS = "warmer/store.py", "core/database.py", "gateway/cloudwatch.py"

ACTIONS: Mapping[str, Mapping[str, set[str]]] = {
    "s3": {
        "get_object": {"s3:GetObject", "kms:Decrypt"},
        # Without the right to list, a missing object would be a refusal.
        "head_object": {"s3:GetObject", "kms:Decrypt", "s3:ListBucket"},
        "put_object": {"s3:PutObject", "kms:GenerateDataKey"},
        "upload_file": {
            "s3:PutObject",
            "s3:AbortMultipartUpload",
            "kms:GenerateDataKey",
            "kms:Decrypt",
        },
        "delete_objects": {"s3:DeleteObject"},
        "list_objects_v2": {"s3:ListBucket"},
        "head_bucket": {"s3:ListBucket"},
        # Only asked whether anybody answers; a refusal is an answer.
        "list_buckets": set(),
        # Only after head_bucket has said that there is none; ours are made by Pulumi.
        "create_bucket": set(),
    },
    "sqs": {
        "send_message": {"sqs:SendMessage", "kms:GenerateDataKey", "kms:Decrypt"},
        "receive_message": {"sqs:ReceiveMessage", "kms:Decrypt"},
        "delete_message": {"sqs:DeleteMessage"},
        "change_message_visibility": {"sqs:ChangeMessageVisibility"},
        "get_queue_attributes": {"sqs:GetQueueAttributes"},
    },
    "secretsmanager": {"get_secret_value": {"secretsmanager:GetSecretValue", "kms:Decrypt"}},
    "cloudwatch": {"put_metric_data": {"cloudwatch:PutMetricData"}},
}
"""What a call takes (service authorization reference; S3, SQS and Secrets Manager with a key of
one's own). A call that isn't here is one that nobody has thought about."""

QUEUES: Mapping[str, Mapping[str, str]] = {
    "publish": {"send_message": "tasks"},
    "outstanding": {"get_queue_attributes": "tasks"},
    "dead_letters": {
        "get_queue_attributes": "tasks",
        "receive_message": "dead",
        "change_message_visibility": "dead",
    },
    "redrive": {
        "get_queue_attributes": "tasks",
        "receive_message": "dead",
        "change_message_visibility": "dead",
        "delete_message": "dead",
        "send_message": "tasks",
    },
    "settings_for": {"receive_message": "tasks"},
    "extend": {"change_message_visibility": "tasks"},
    "release": {"change_message_visibility": "tasks"},
    "acknowledge": {"delete_message": "tasks"},
    "dead_letter": {
        "get_queue_attributes": "tasks",
        "send_message": "dead",
        "delete_message": "tasks",
    },
}
"""For each method of the broker, which of an endpoint's two queues each of its calls is made to."""

BY_KOMBU = {"publish": {"send_message"}, "settings_for": {"receive_message"}}
"""Calls that Celery's library makes for us: it sends, and receives by our channel's method."""

Rights = set[tuple[str, str]]


@cache
def policy(name: str) -> Mapping[str, Any]:
    return POLICIES[name]()


def _on_bucket(calls: Iterable[str], bucket: str, objects: Iterable[str] = ("*",)) -> Rights:
    needed: Rights = set()
    for call in calls:
        for action in ACTIONS["s3"][call]:
            if action == "s3:ListBucket":
                needed.add((action, f"arn:aws:s3:::{bucket}"))
            elif action.startswith("kms:"):
                needed.add((action, KEYS["storage"]))
            else:
                needed |= {(action, f"arn:aws:s3:::{bucket}/{it}") for it in objects}
    return needed


def _on_queues(methods: Iterable[str], team: str = "*") -> Rights:
    needed: Rights = set()
    # A pattern for all teams isn't followed by one for all endpoints.
    names = f"{ENVIRONMENT}_*" if team == "*" else f"{ENVIRONMENT}_{team}_*"
    for method in methods:
        for call, queue in QUEUES.get(method, {}).items():
            for action in ACTIONS["sqs"][call]:
                where = (
                    KEYS["queues"] if action.startswith("kms:") else arn("sqs", f"{names}_{queue}")
                )
                needed.add((action, where))
    return needed


def _bucket_calls(folder: str) -> set[str]:
    calls = sources()[BUCKET].calls()
    used = methods_used(folder, {"bucket"}, set(calls))
    return set().union(*(calls[it] for it in used))


def _broker_methods(folder: str) -> set[str]:
    return methods_used(folder, {"broker"}, set(QUEUES))


DATABASE_RIGHTS: Rights = {
    ("secretsmanager:GetSecretValue", DATABASE_SECRET),
    ("kms:Decrypt", KEYS["data"]),
}


def needed_by_gateway() -> Rights:
    bucket = _bucket_calls("gateway")
    assert {"put_object", "get_object", "delete_objects"} <= bucket
    methods = _broker_methods("gateway")
    assert methods == {"publish", "dead_letters", "redrive"}
    metrics: Rights = {
        (action, "*")
        for call in sources()[METRICS].calls()["_send"]
        for action in ACTIONS["cloudwatch"][call]
    }
    # It reads objects that may be gone: without the right to list they would be refused.
    missing: Rights = {("s3:ListBucket", f"arn:aws:s3:::{ENVIRONMENT}-results")}
    on_bucket = _on_bucket(bucket, f"{ENVIRONMENT}-results") | missing
    return DATABASE_RIGHTS | on_bucket | _on_queues(methods) | metrics


def needed_by_cacher() -> Rights:
    bucket = _bucket_calls("cacher")
    assert bucket == {"list_objects_v2", "delete_objects"}
    methods = _broker_methods("cacher")
    assert methods == {"outstanding"}
    on_bucket = _on_bucket(bucket, f"{ENVIRONMENT}-results")
    return DATABASE_RIGHTS | on_bucket | _on_queues(methods)


def needed_by_team() -> Rights:
    calls = sources()[STORE].calls()
    loading = set().union(*(calls[it] for it in ("wait", "read", "copy_range")))
    assert loading == {"list_buckets", "get_object"}
    methods = _broker_methods("forwarder")
    assert methods >= {"settings_for", "extend", "release", "acknowledge", "dead_letter"}
    weights = _on_bucket(loading, f"{ENVIRONMENT}-weights", ("search/*", "shared/*"))
    return weights | _on_queues(methods, "search")


def needed_by_publisher() -> Rights:
    calls = sources()[STORE].calls()
    publishing = set().union(*(calls[it] for it in ("wait", "read", "upload", "size", "write")))
    return _on_bucket(publishing, f"{ENVIRONMENT}-weights")


NEEDED = {
    "gateway": needed_by_gateway,
    "cacher": needed_by_cacher,
    "team-endpoints": needed_by_team,
    "weights-publisher": needed_by_publisher,
}


@pytest.mark.parametrize("workload", NEEDED)
def test_a_workload_may_do_what_its_service_does_and_nothing_else(workload: str) -> None:
    needed, given = NEEDED[workload](), granted(policy(workload))
    assert needed - given == set(), "calls without a right"
    assert given - needed == set(), "rights without a call"


def test_every_file_that_uses_aws_is_known_and_every_call_thought_about() -> None:
    assert importing_boto() == set(sources())
    assert set(sources()) == {BUCKET, BROKER, STORE, DATABASE, METRICS}
    for path, source in sources().items():
        made = set().union(*source.calls().values())
        assert made <= ACTIONS[source.service].keys(), path


def test_each_method_of_the_broker_makes_the_calls_that_are_told_of_it() -> None:
    calls = sources()[BROKER].calls()
    for method, by_call in QUEUES.items():
        assert set(by_call) == calls[method] | BY_KOMBU.get(method, set()), method
    public = {name for name, made in calls.items() if made and not name.startswith("_")}
    assert public <= set(QUEUES)


def test_a_new_call_would_be_found() -> None:
    import ast

    from tests.service_calls import Source

    text = (
        "class B:\n"
        "    def a(self): return self._b()\n"
        "    def _b(self): return self._client.purge_queue(QueueUrl='u')\n"
    )
    source = Source(sources()[BROKER].path, ast.parse(text), "sqs")
    assert source.calls() == {"a": {"purge_queue"}, "_b": {"purge_queue"}}
    assert "purge_queue" not in ACTIONS["sqs"]


def key_context(service: str, **more: str) -> dict[str, str]:
    context = {"kms:ViaService": f"{service}.{REGION}.amazonaws.com"}
    return context | {f"kms:EncryptionContext:{key}": value for key, value in more.items()}


def queue(team: str, endpoint: str, kind: str, environment: str = ENVIRONMENT) -> str:
    return arn("sqs", f"{environment}_{team}_{endpoint}_{kind}")


WEIGHTS = f"arn:aws:s3:::{ENVIRONMENT}-weights"
RESULTS = f"arn:aws:s3:::{ENVIRONMENT}-results"
OF_WEIGHTS = {"aws:s3:arn": WEIGHTS}
OF_RESULTS = {"aws:s3:arn": RESULTS}
OTHER_SECRET = arn("secretsmanager", "secret:rds!cluster-2-AbCdEf")

ALLOWED = [
    ("team-endpoints", "sqs:ReceiveMessage", queue("search", "summarizer", "tasks"), {}),
    ("team-endpoints", "sqs:SendMessage", queue("search", "summarizer", "dead"), {}),
    ("team-endpoints", "s3:GetObject", f"{WEIGHTS}/search/llama/2026-11-03/a", {}),
    ("team-endpoints", "kms:Decrypt", KEYS["storage"], key_context("s3", **OF_WEIGHTS)),
    ("team-endpoints", "kms:GenerateDataKey", KEYS["queues"], key_context("sqs")),
    ("gateway", "sqs:SendMessage", queue("search", "summarizer", "tasks"), {}),
    ("gateway", "sqs:DeleteMessage", queue("search", "summarizer", "dead"), {}),
    ("gateway", "s3:PutObject", f"{RESULTS}/results/t/e/1/result", {}),
    ("gateway", "kms:GenerateDataKey", KEYS["storage"], key_context("s3", **OF_RESULTS)),
    ("gateway", "kms:Decrypt", KEYS["data"],
     key_context("secretsmanager", SecretARN=DATABASE_SECRET)),
    ("gateway", "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "LlmPlatform"}),
    ("cacher", "sqs:GetQueueAttributes", queue("search", "summarizer", "tasks"), {}),
    ("keda-operator", "sqs:GetQueueAttributes", queue("search", "summarizer", "tasks"), {}),
    ("team-deployer", "sqs:CreateQueue", queue("search", "new", "tasks"), {}),
    ("team-deployer", "sqs:TagQueue", queue("search", "new", "dead"), {}),
    ("external-secrets", "secretsmanager:GetSecretValue",
     arn("secretsmanager", f"secret:{ENVIRONMENT}/hub-token-AbCdEf"), {}),
    ("database-login", "rds-db:connect", arn("rds-db", "dbuser:cluster-ABC/gateway"), {}),
]  # fmt: skip

DENIED = [
    # Another team's, whatever its name begins with; another environment's.
    ("team-endpoints", "sqs:ReceiveMessage", queue("search-infra", "a", "tasks"), {}),
    ("team-endpoints", "sqs:ReceiveMessage", queue("other", "summarizer", "tasks"), {}),
    ("team-endpoints", "sqs:ReceiveMessage", queue("search", "a", "tasks", "dev-aws"), {}),
    ("team-endpoints", "sqs:ReceiveMessage", queue("search", "a", "tasks", "x-prod-aws"), {}),
    ("team-deployer", "sqs:CreateQueue", queue("search-infra", "a", "tasks"), {}),
    ("team-deployer", "sqs:DeleteQueue", queue("other", "a", "tasks"), {}),
    ("gateway", "sqs:SendMessage", queue("search", "a", "tasks", "prod-aws-2"), {}),
    # Its own tasks a worker may not make, nor its own dead letters put back.
    ("team-endpoints", "sqs:SendMessage", queue("search", "summarizer", "tasks"), {}),
    ("team-endpoints", "sqs:ReceiveMessage", queue("search", "summarizer", "dead"), {}),
    ("team-endpoints", "sqs:DeleteQueue", queue("search", "summarizer", "tasks"), {}),
    # A gateway takes no tasks away.
    ("gateway", "sqs:ReceiveMessage", queue("search", "summarizer", "tasks"), {}),
    ("gateway", "sqs:DeleteMessage", queue("search", "summarizer", "tasks"), {}),
    # Weights are read, under the team's own prefix; results are none of its business.
    ("team-endpoints", "s3:GetObject", f"{WEIGHTS}/other/llama/2026-11-03/a", {}),
    ("team-endpoints", "s3:DeleteObject", f"{WEIGHTS}/search/llama/2026-11-03/a", {}),
    ("team-endpoints", "s3:PutObject", f"{WEIGHTS}/search/llama/2026-11-03/a", {}),
    ("team-endpoints", "s3:ListBucket", WEIGHTS, {}),
    ("team-endpoints", "s3:GetObject", f"{RESULTS}/results/search/e/1/result", {}),
    ("team-endpoints", "kms:Decrypt", KEYS["storage"], key_context("s3", **OF_RESULTS)),
    ("team-endpoints", "kms:Decrypt", KEYS["storage"], {}),
    ("team-endpoints", "kms:Decrypt", KEYS["data"], key_context("s3", **OF_WEIGHTS)),
    ("team-endpoints", "secretsmanager:GetSecretValue", DATABASE_SECRET, {}),
    ("gateway", "s3:GetObject", f"{WEIGHTS}/search/a", {}),
    ("gateway", "s3:DeleteObject", f"{WEIGHTS}/search/a", {}),
    ("gateway", "s3:PutObject", "arn:aws:s3:::prod-aws-state/a", {}),
    ("gateway", "s3:DeleteObjectVersion", f"{RESULTS}/results/a", {}),
    ("gateway", "s3:DeleteBucket", RESULTS, {}),
    ("gateway", "secretsmanager:GetSecretValue", OTHER_SECRET, {}),
    ("gateway", "kms:Decrypt", KEYS["data"], key_context("secretsmanager", SecretARN=OTHER_SECRET)),
    ("gateway", "kms:Decrypt", KEYS["data"], key_context("rds")),
    ("gateway", "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "AWS/Billing"}),
    ("gateway", "iam:PassRole", "*", {}),
    ("gateway", "sts:AssumeRole", arn("iam", "role/admin", regional=False), {}),
    ("cacher", "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "LlmPlatform"}),
    ("cacher", "s3:DeleteObject", f"{WEIGHTS}/search/a", {}),
    # A deployer sees no message; KEDA counts and sees none either.
    ("team-deployer", "sqs:ReceiveMessage", queue("search", "summarizer", "tasks"), {}),
    ("team-deployer", "sqs:SendMessage", queue("search", "summarizer", "tasks"), {}),
    ("keda-operator", "sqs:ReceiveMessage", queue("search", "summarizer", "tasks"), {}),
    ("keda-operator", "sqs:GetQueueAttributes", arn("sqs", "somebody-else"), {}),
    ("keda-operator", "sqs:ListQueues", "*", {}),
    ("weights-publisher", "s3:DeleteObject", f"{WEIGHTS}/search/a", {}),
    ("external-secrets", "secretsmanager:GetSecretValue", DATABASE_SECRET, {}),
    ("external-secrets", "secretsmanager:GetSecretValue",
     arn("secretsmanager", "secret:prod-aws-2/hub-token-AbCdEf"), {}),
    ("nodes-pull-through", "ecr:CreateRepository", arn("ecr", "repository/prod-aws-2/k8s/a"), {}),
    ("database-login", "rds-db:connect", arn("rds-db", "dbuser:cluster-ABC/platform"), {}),
    # Whatever its own policies say, a role can't make or become another one.
    ("boundary", "iam:CreateRole", arn("iam", "role/a", regional=False), {}),
    ("boundary", "sts:AssumeRole", arn("iam", "role/admin", regional=False), {}),
    ("boundary", "s3:PutBucketPolicy", WEIGHTS, {}),
    ("boundary", "sqs:SetQueueAttributes", queue("search", "a", "tasks"), {}),
    ("boundary", "kms:ScheduleKeyDeletion", KEYS["data"], {}),
]  # fmt: skip


@pytest.mark.parametrize(("who", "action", "resource", "context"), ALLOWED)
def test_this_is_allowed(who: str, action: str, resource: str, context: dict[str, str]) -> None:
    assert allowed(policy(who), action, resource, context)


@pytest.mark.parametrize(("who", "action", "resource", "context"), DENIED)
def test_this_is_denied(who: str, action: str, resource: str, context: dict[str, str]) -> None:
    assert not allowed(policy(who), action, resource, context)


@pytest.mark.parametrize("who", ["gateway", "cacher", "team-endpoints", "keda-operator"])
def test_the_boundary_takes_nothing_away_that_a_pod_needs(who: str) -> None:
    boundary = policy("boundary")
    namespace = {"cloudwatch:namespace": "LlmPlatform"}
    lost = {
        (action, resource)
        for action, resource in granted(policy(who))
        if not allowed(
            boundary, action, resource.replace("*", "x") if resource != "*" else "*", namespace
        )
    }
    assert lost <= {("aps:QueryMetrics", arn("aps", "workspace/ws-1"))}


@pytest.mark.parametrize("name", of_roles())
def test_no_policy_of_a_role_allows_everything_or_on_everything(name: str) -> None:
    without_resources = {"cloudwatch:PutMetricData", "cloudwatch:GetMetricData"}
    for action, resource in granted(policy(name)):
        assert "*" not in action, action
        assert resource != "*" or action in without_resources, (action, resource)


@pytest.mark.parametrize("name", POLICIES)
def test_every_statement_has_a_name_of_its_own(name: str) -> None:
    sids = [it["Sid"] for it in policy(name)["Statement"]]
    assert len(sids) == len(set(sids))
    assert all(sid.isalnum() for sid in sids)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_within_iam_s_limits(name: str) -> None:
    import json

    size = len(json.dumps(policy(name), separators=(",", ":")))
    managed = {"team-deployer", "boundary"}
    limit = limits.IAM_MANAGED_POLICY_CHARACTERS if name in managed else None
    if name.endswith("-trust"):
        limit = limits.IAM_TRUST_POLICY_CHARACTERS
    assert size <= (limit or limits.IAM_INLINE_POLICIES_CHARACTERS)


def test_only_pods_of_one_service_account_become_a_role() -> None:
    for name, namespace, account in (
        ("gateway-trust", "llm-platform", "gateway"),
        ("cacher-trust", "llm-platform", "cacher"),
        ("team-endpoints-trust", "team-search", "endpoints"),
    ):
        (statement,) = policy(name)["Statement"]
        assert statement["Principal"] == {"Service": "pods.eks.amazonaws.com"}
        assert set(statement["Action"]) == {"sts:AssumeRole", "sts:TagSession"}
        assert statement["Condition"]["StringEquals"] == {
            "aws:RequestTag/eks-cluster-arn": arn("eks", f"cluster/{ENVIRONMENT}"),
            "aws:RequestTag/kubernetes-namespace": namespace,
            "aws:RequestTag/kubernetes-service-account": account,
        }


def test_a_trust_policy_names_the_service_account_that_the_workload_runs_as() -> None:
    """What pulumi/pulumi-eks#871 is about: a policy with the text of an Output in it."""
    from tests.harness import build

    for make in (aws_policies.gateway, aws_policies.cacher):
        built = build(make)
        account = built.one("ServiceAccount")
        association = built.one("PodIdentityAssociation").inputs
        assert association["serviceAccount"] == account.object_name
        assert association["namespace"] == account.namespace
        trust = built.one("Role").inputs["assumeRolePolicy"]
        assert f'"aws:RequestTag/kubernetes-service-account": "{account.object_name}"' in trust
        assert "Output" not in trust


def test_the_keys_are_open_to_iam_and_to_services_of_this_account_only() -> None:
    for purpose in ("cluster", "data", "storage", "queues", "images"):
        for statement in policy(f"key-{purpose}")["Statement"]:
            principal = statement["Principal"]
            if principal == {"AWS": "*"}:
                assert statement["Condition"]["StringEquals"]["kms:CallerAccount"] == ACCOUNT
                assert any("aws:PrincipalArn" in it for it in statement["Condition"].values())
            elif "Service" in principal:
                assert ACCOUNT in str(statement["Condition"])
            else:
                assert principal == {"AWS": arn("iam", "root", regional=False)}
