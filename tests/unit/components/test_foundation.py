"""What the foundation gives, to whom, and through which doors."""

import base64
from collections.abc import Callable

import pulumi
import pytest

from components import Gateway, GeneratedSecret, GeneratedSecretArgs, Grant
from components.foundation import Foundation
from components.local.identity import LocalIdentity
from tests import samples
from tests.harness import Built, build


def bind(*grants: Grant) -> Built:
    return build(
        lambda: LocalIdentity().bind(
            "app",
            workload_name="app",
            namespace="apps",
            grants=grants,
            opts=pulumi.ResourceOptions(),
        )
    )


@pytest.mark.parametrize(
    ("grant", "variables"),
    [
        (lambda it: Grant.use_database(it.database), {"LLM_PLATFORM_DATABASE_URL"}),
        (lambda it: Grant.use_redis(it.redis), {"LLM_PLATFORM_REDIS_URL"}),
        (lambda it: Grant.consume_queue(it.redis), {"LLM_PLATFORM_BROKER_URL"}),
        (
            lambda it: Grant.read_bucket(it.weights),
            {"AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"},
        ),
    ],
)
def test_a_workload_gets_the_variables_of_exactly_what_it_was_granted(
    grant: Callable[[Foundation], Grant], variables: set[str]
) -> None:
    built = bind(grant(samples.foundation()))
    assert set(built.one("Secret", "app-access").inputs["stringData"]) == variables
    assert {entry["name"] for entry in built.value.env} == variables
    assert all("value" not in entry for entry in built.value.env)


def test_grants_add_up() -> None:
    foundation = samples.foundation()
    built = bind(Grant.use_database(foundation.database), Grant.use_redis(foundation.redis))
    assert built.one("Secret").inputs["stringData"] == {
        "LLM_PLATFORM_DATABASE_URL": (
            "postgresql://platform:canary-7f3a-database@postgres.llm-platform-data.svc:5432/platform"
        ),
        "LLM_PLATFORM_REDIS_URL": (
            "redis://default:canary-7f3a-redis@redis.llm-platform-data.svc:6379/0"
        ),
    }


def test_a_reader_is_never_given_the_owner_s_credentials() -> None:
    with pytest.raises(ValueError, match="weights"):
        bind(Grant.read_bucket(samples.foundation().bucket))
    with pytest.raises(ValueError, match="only read"):
        bind(Grant.write_bucket(samples.foundation().weights))


def test_a_generated_value_is_random_and_survives_later_runs() -> None:
    def once() -> Built:
        args = GeneratedSecretArgs(namespace="a", name="key", keys=("key",), prefix="lp-")
        return build(lambda: GeneratedSecret("key", args))

    first, second = (once().one("Secret", "key") for _ in range(2))
    values = [base64.b64decode(made.inputs["data"]["key"]).decode() for made in (first, second)]
    assert values[0] != values[1]
    assert all(value.startswith("lp-") and len(value) > 40 for value in values)
    assert first.ignore_changes == ("data.key",)
    assert "data" in first.secret_outputs
    assert "data.key" in first.secret_paths or "data" in first.secret_paths


def doors(built: Built, service: str) -> dict[int, list[str]]:
    """Return, for each port of a service, the namespaces that may come in there."""
    opened: dict[int, list[str]] = {}
    for policy in built.all("NetworkPolicy"):
        spec = policy.inputs["spec"]
        if spec["podSelector"].get("matchLabels", {}).get("app.kubernetes.io/name") != service:
            continue
        for rule in spec.get("ingress", []):
            for peer in rule["from"]:
                selector = peer["namespaceSelector"]
                who = selector.get("matchLabels", {}).get("kubernetes.io/metadata.name", "teams")
                for port in rule["ports"]:
                    opened.setdefault(port["port"], []).append(who)
    return opened


def test_teams_reach_only_the_bucket_s_read_only_door() -> None:
    built = samples.published_foundation()
    assert doors(built, "objectstore") == {
        7070: ["llm-platform"],
        7071: ["llm-platform", "teams"],
    }
    assert doors(built, "postgres") == {5432: ["llm-platform"]}
    assert doors(built, "redis") == {6379: ["llm-platform", "keda", "teams"]}


def test_the_read_only_door_takes_other_credentials_and_refuses_writes() -> None:
    built = samples.published_foundation()
    pod = built.one("StatefulSet", "objectstore").inputs["spec"]["template"]["spec"]
    owner, reader = pod["containers"]
    assert "--readonly" in reader["command"]
    assert "--readonly" not in owner["command"]
    assert {entry["valueFrom"]["secretKeyRef"]["name"] for entry in reader["env"]} == {
        "bucket-reader"
    }
    assert {entry["valueFrom"]["secretKeyRef"]["name"] for entry in owner["env"]} == {
        "bucket-owner"
    }


@pytest.mark.parametrize("name", ["postgres", "redis", "objectstore"])
def test_every_data_service_keeps_its_disk(name: str) -> None:
    spec = samples.build_foundation(storage_class="fast").one("StatefulSet", name).inputs["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    mounts = [
        mount["mountPath"]
        for container in spec["template"]["spec"]["containers"]
        for mount in container["volumeMounts"]
        if mount["name"] == claim["metadata"]["name"]
    ]
    assert set(mounts) == {"/data"}


def test_no_password_is_on_a_command_line() -> None:
    built = samples.published_foundation()
    redis = built.one("StatefulSet", "redis").inputs["spec"]["template"]["spec"]["containers"][0]
    assert redis["command"] == ["redis-server", "/etc/redis/redis.conf"]
    config = built.one("Secret", "redis-config").inputs["stringData"]["redis.conf"]
    password = built.one("Secret", "redis-password").inputs["data"]["password"]
    assert f"requirepass {base64.b64decode(password).decode()}\n" in config
    assert "appendonly yes" in config


def test_a_closed_namespace_asks_for_names_at_the_cluster_s_name_servers_only() -> None:
    for built in (samples.published_foundation(), samples.usual_platform()):
        denials = [it for it in built.all("NetworkPolicy") if it.object_name == "default-deny"]
        assert denials
        for policy in denials:
            (rule,) = policy.inputs["spec"]["egress"]
            assert rule["to"] == [
                {
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": "kube-system"}
                    },
                    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
                }
            ]


def test_the_migration_is_done_before_the_new_gateway_starts() -> None:
    built = build(lambda: samples.COMPONENTS["Gateway"]("gateway"))
    gateway: Gateway = built.value
    assert gateway.deployment is not None
    before = {built.by_urn()[urn].kind for urn in built.one("Deployment").depends_on}
    assert "Job" in before


def test_the_migration_s_pod_is_none_of_the_gateway_s_pods() -> None:
    built = build(lambda: samples.COMPONENTS["Gateway"]("gateway"))
    labels = built.one("Job").inputs["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget"):
        selector = built.one(kind).inputs["spec"]["selector"]
        wanted: dict[str, str] = selector.get("matchLabels", selector)
        assert not wanted.items() <= labels.items(), kind


def test_every_team_s_key_and_the_admin_key_are_files_that_the_gateway_reads() -> None:
    built = build(lambda: samples.COMPONENTS["Gateway"]("gateway"))
    keys = built.one("Secret", "gateway-keys").inputs["stringData"]
    assert set(keys) == {"demo", "admin"}
    assert keys["demo"] == samples.CANARIES["team"]
    assert keys["admin"].startswith("lp-")


def test_a_service_may_ask_the_api_server_for_what_it_needs_and_nothing_else() -> None:
    built = samples.usual_platform()
    granted = {
        role.inputs["metadata"]["labels"]["app.kubernetes.io/name"]: role.inputs["rules"]
        for role in built.all("ClusterRole")
        if role.inputs["metadata"]["labels"]["app.kubernetes.io/name"] in {"gateway", "cacher"}
    }
    assert set(granted) == {"gateway", "cacher"}
    for rules in granted.values():
        for rule in rules:
            assert set(rule["verbs"]) <= {"list", "watch"}
            assert "secrets" not in rule["resources"]
    (role,) = [role for role in built.all("Role") if role.object_name == "llm-platform-cacher"]
    assert role.namespace == "team-demo"
    assert role.inputs["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "patch"]},
        {"apiGroups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": ["get"]},
    ]
