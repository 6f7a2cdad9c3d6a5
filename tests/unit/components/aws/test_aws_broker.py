"""Queues in SQS: what they are called, how they are kept, and what scales on them."""

import json
from typing import Any

import pulumi
import pytest
from pydantic import ValidationError

from components.aws import limits, queues
from components.aws.broker import SPARE_RECEIVES, SqsBroker
from components.aws.registry import AwsRegistry, Mirror, Upstream
from components.foundation import Queue
from services.cacher.errors import ForeignQueue
from services.cacher.registrations import _check_queue
from tests import aws_samples
from tests.aws_outputs import ACCOUNT, REGION, arn
from tests.aws_samples import ENVIRONMENT, KEYS
from tests.harness import Built, build


def broker(**changes: Any) -> SqsBroker:
    fields: dict[str, Any] = {
        "prefix": ENVIRONMENT,
        "team": "search",
        "region": REGION,
        "key_arn": KEYS["queues"],
    }
    return SqsBroker(**{**fields, **changes})


def made(endpoint: str = "summarizer", *, preview: bool = False, **how: Any) -> Built:
    its: dict[str, Any] = how.pop("broker", {})
    return build(
        lambda: broker(**its).queue(
            endpoint, team="search", namespace="team-search", cacher_url="http://cacher", **how
        ),
        preview=preview,
    )


def two(built: Built) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the queue of tasks and that of dead letters."""
    by_name = {it.inputs["name"]: it.inputs for it in built.all("Queue")}
    assert len(by_name) == 2
    (tasks,) = [it for name, it in by_name.items() if name.endswith("_tasks")]
    (dead,) = [it for name, it in by_name.items() if name.endswith("_dead")]
    return tasks, dead


def test_an_endpoint_has_a_queue_and_one_for_dead_letters() -> None:
    tasks, dead = two(made())
    assert tasks["name"] == "prod-aws_search_summarizer_tasks"
    assert dead["name"] == "prod-aws_search_summarizer_dead"
    assert dead["messageRetentionSeconds"] == 14 * 86_400


def test_dead_letters_go_where_only_this_queue_s_go() -> None:
    built = made()
    tasks, dead = two(built)
    assert json.loads(tasks["redrivePolicy"])["deadLetterTargetArn"] == arn("sqs", dead["name"])
    allow = built.one("RedriveAllowPolicy").inputs
    assert json.loads(allow["redriveAllowPolicy"]) == {
        "redrivePermission": "byQueue",
        "sourceQueueArns": [arn("sqs", tasks["name"])],
    }
    assert allow["queueUrl"].endswith(dead["name"])


@pytest.mark.parametrize(("deliveries", "receives"), [(1, 6), (5, 10), (999, 1000)])
def test_sqs_itself_gives_a_task_up_later_than_its_worker(deliveries: int, receives: int) -> None:
    tasks, _ = two(made(max_deliveries=deliveries))
    assert json.loads(tasks["redrivePolicy"])["maxReceiveCount"] == receives
    assert deliveries + SPARE_RECEIVES >= receives


def test_the_queue_s_own_lease_is_the_tasks_lease() -> None:
    """Kombu leaves the lease of a predefined queue to its attribute (celery/kombu#1492)."""
    tasks, _ = two(made(lease_seconds=90))
    assert tasks["visibilityTimeoutSeconds"] == 90
    default, _ = two(made())
    assert default["visibilityTimeoutSeconds"] == 60


@pytest.mark.parametrize(
    ("expires", "kept"),
    [(86_400, 90_000), (1, 3_601), (30 * 86_400, limits.SQS_LONGEST_RETENTION_SECONDS)],
)
def test_a_task_stays_in_the_queue_until_it_has_expired(expires: int, kept: int) -> None:
    tasks, dead = two(made(expires_seconds=expires))
    assert tasks["messageRetentionSeconds"] == kept
    assert dead["messageRetentionSeconds"] >= kept


def test_queues_are_polled_long_and_take_the_largest_messages() -> None:
    for queue in two(made()):
        assert queue["receiveWaitTimeSeconds"] == 20
        assert queue["maxMessageSize"] == 1024 * 1024


def test_messages_are_encrypted_with_our_key_or_sqs_s_own() -> None:
    for queue in two(made()):
        assert queue["kmsMasterKeyId"] == KEYS["queues"]
        assert "sqsManagedSseEnabled" not in queue
    for queue in two(made(broker={"key_arn": None})):
        assert queue["sqsManagedSseEnabled"] is True
        assert "kmsMasterKeyId" not in queue


def test_both_queues_refuse_requests_without_tls() -> None:
    built = made()
    policies = [json.loads(it.inputs["policy"]) for it in built.all("QueuePolicy")]
    assert {it["Statement"][0]["Resource"][0] for it in policies} == {
        arn("sqs", queue["name"]) for queue in two(built)
    }
    for policy in policies:
        (statement,) = policy["Statement"]
        assert statement["Effect"] == "Deny"
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def exported(built: Built) -> dict[str, Any]:
    queue: Queue = built.value

    def program() -> None:
        for name, value in {**queue.settings, **queue.trigger.aimed_at(3)}.items():
            pulumi.export(name, value)

    return build(program).exports


def test_a_worker_is_told_the_queue_s_address_and_region() -> None:
    found = exported(made())
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/prod-aws_search_summarizer_tasks"
    assert found["LLM_PLATFORM_BROKER"] == "sqs"
    assert found["LLM_PLATFORM_QUEUE"] == url
    assert found["LLM_PLATFORM_BROKER_REGION"] == REGION


def test_keda_counts_running_tasks_too_and_asks_with_the_operator_s_own_identity() -> None:
    built = made()
    trigger = built.value.trigger
    assert (trigger.type, trigger.authentication) == ("aws-sqs-queue", "llm-platform-aws")
    assert trigger.authentication_kind == "ClusterTriggerAuthentication"
    found = exported(built)
    assert found["queueURL"] == found["LLM_PLATFORM_QUEUE"]
    assert (found["awsRegion"], found["queueLength"]) == (REGION, "3")
    assert (found["scaleOnInFlight"], found["activationQueueLength"]) == ("true", "0")


def test_the_cacher_takes_the_team_s_queues_and_nobody_else_s() -> None:
    prefix = queues.url_prefix(aws_samples.account(), ENVIRONMENT)
    url = exported(made())["LLM_PLATFORM_QUEUE"]
    _check_queue(url, "search", prefix)
    for other in ("sea", "search-infra", "summarizer"):
        with pytest.raises(ForeignQueue):
            _check_queue(url, other, prefix)


def test_no_two_environments_teams_and_endpoints_make_the_same_name() -> None:
    parts = ["a", "a-b", "b", "b-c", "a-b-c"]
    names = [
        name
        for prefix in parts
        for team in parts
        for endpoint in parts
        for name in queues.names(prefix, team, endpoint)
    ]
    assert len(names) == len(set(names))


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    first, second = (queues.names(ENVIRONMENT, "t" * 30, "e" * 62 + it) for it in "ab")
    assert first != second
    assert all(len(name) <= limits.SQS_NAME for name in (*first, *second))
    assert first.tasks.startswith(f"{ENVIRONMENT}_{'t' * 30}_eeee")
    assert first.tasks.removesuffix("_tasks") == first.dead.removesuffix("_dead")


def test_names_that_leave_no_room_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="leave room for an endpoint"):
        broker(team="t" * 57)
    with pytest.raises(ValidationError, match="isn't a Kubernetes name"):
        broker(team="search_infra")
    with pytest.raises(ValidationError, match="isn't a Kubernetes name"):
        broker(prefix="prod_aws")


def test_another_team_s_endpoint_gets_no_queue_here() -> None:
    with pytest.raises(ValueError, match="'other'"):
        broker().queue("e", team="other", namespace="n", cacher_url="u")


def test_the_first_preview_shows_both_queues() -> None:
    previewed = {(it.kind, it.name) for it in made(preview=True).resources}
    assert previewed == {(it.kind, it.name) for it in made().resources}
    assert len(previewed) == 5


def registry(**changes: Any) -> Built:
    return build(lambda: AwsRegistry("prod-aws", aws_samples.registry_args(**changes)))


def test_a_tag_never_moves_but_those_of_builds() -> None:
    repository = registry().one("Repository").inputs
    assert repository["name"] == "prod-aws/services"
    assert repository["imageTagMutability"] == "IMMUTABLE_WITH_EXCLUSION"
    assert repository["imageTagMutabilityExclusionFilters"] == [
        {"filter": "cache*", "filterType": "WILDCARD"}
    ]


def test_images_are_scanned_and_encrypted_with_our_key() -> None:
    repository = registry().one("Repository").inputs
    assert repository["imageScanningConfiguration"] == {"scanOnPush": True}
    (encryption,) = repository["encryptionConfigurations"]
    assert encryption == {"encryptionType": "KMS", "kmsKey": KEYS["images"]}
    assert registry().all("RegistryScanningConfiguration") == [], "that is the whole account's"


def test_images_are_only_thrown_away_with_an_ephemeral_environment() -> None:
    """What pulumi/pulumi-docker-build#424 and pulumi/templates#525 are about."""
    built = registry()
    assert built.one("Repository").inputs["forceDelete"] is False
    assert built.protected == {"prod-aws-services"}
    ephemeral = registry(ephemeral=True)
    assert ephemeral.one("Repository").inputs["forceDelete"] is True
    assert ephemeral.protected == set()


def test_no_token_of_the_registry_is_in_the_state() -> None:
    kinds = {it.type for it in registry().resources if it.custom}
    assert not [kind for kind in kinds if "docker" in kind.lower() or "token" in kind.lower()]


def test_the_oldest_images_go_when_there_are_too_many() -> None:
    rules = json.loads(registry(images_kept=40).one("LifecyclePolicy").inputs["policy"])["rules"]
    assert [it["rulePriority"] for it in rules] == [1, 2, 3]
    assert [it["selection"]["tagStatus"] for it in rules] == ["untagged", "tagged", "any"]
    assert rules[-1]["selection"]["countNumber"] == 40


def test_copies_of_other_registries_are_the_environment_s_own() -> None:
    built = registry()
    rules = {
        it.inputs["upstreamRegistryUrl"]: it.inputs for it in built.all("PullThroughCacheRule")
    }
    assert {url: it["ecrRepositoryPrefix"] for url, it in rules.items()} == {
        "registry.k8s.io": "prod-aws/k8s",
        "quay.io": "prod-aws/quay",
        "public.ecr.aws": "prod-aws/ecr-public",
    }
    template = built.one("RepositoryCreationTemplate").inputs
    assert (template["prefix"], template["appliedFors"]) == ("prod-aws", ["PULL_THROUGH_CACHE"])
    assert template["encryptionConfigurations"][0]["kmsKey"] == KEYS["images"]
    assert template["customRoleArn"].startswith(f"arn:aws:iam::{ACCOUNT}:role/prod-aws-mirror")
    host = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"
    assert built.value.mirrors[Upstream.QUAY] == f"{host}/prod-aws/quay"


@pytest.mark.parametrize(
    "wrong",
    [
        {"upstream": "docker-hub"},
        {"upstream": "github"},
        {"upstream": "quay", "credential_arn": "arn"},
        {"upstream": "nvcr"},
    ],
)
def test_a_copy_s_login_fits_its_registry(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match=r"credential_arn|upstream"):
        Mirror.model_validate(wrong)


def test_a_registry_without_copies_makes_no_role() -> None:
    built = registry(mirrors=())
    assert built.all("Role") == built.all("RepositoryCreationTemplate") == []
    assert built.value.mirrors == {}
