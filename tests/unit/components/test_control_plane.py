"""The gateway and the cacher: what they may use, and how many of them there are."""

from typing import Any

import pulumi
import pytest
from pydantic import ValidationError

from components import Gateway, GatewayArgs
from tests import samples
from tests.harness import Built, build

PROMETHEUS = "http://prometheus.llm-platform-monitoring.svc:9090"


def gateway_args(**changes: Any) -> GatewayArgs:
    fields: dict[str, Any] = {
        "namespace": "llm-platform",
        "image": samples.image("services"),
        "foundation": samples.foundation(),
    }
    return GatewayArgs(**{**fields, **changes})


def gateway(**changes: Any) -> Built:
    return build(lambda: Gateway("gateway", gateway_args(**changes)))


def variables(built: Built, deployment: str) -> dict[str, Any]:
    pod = built.one("Deployment", deployment).inputs["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def scalers(built: Built) -> list[str]:
    kinds = {"HorizontalPodAutoscaler", "ScaledObject"}
    return [resource.kind for resource in built.resources if resource.kind in kinds]


@pytest.mark.parametrize("changes", [{}, {"replicas": 3}, {"replicas": 3, "max_replicas": 3}])
def test_a_fixed_number_of_gateways_is_the_deployment_s_own(changes: dict[str, int]) -> None:
    built = gateway(**changes)
    deployment = built.one("Deployment", "gateway")
    assert scalers(built) == []
    assert deployment.inputs["spec"]["replicas"] == changes.get("replicas", 1)
    assert deployment.ignore_changes == ()


def test_an_hpa_counts_open_and_waiting_requests_and_processors() -> None:
    built = gateway(replicas=2, max_replicas=5, target_concurrency=150)
    spec = built.one("HorizontalPodAutoscaler", "gateway").inputs["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 5)
    assert spec["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "gateway",
    }
    requests, processors = spec["metrics"]
    assert requests["object"]["metric"]["name"] == "gateway-concurrency-average"
    assert requests["object"]["describedObject"]["kind"] == "Service"
    assert requests["object"]["describedObject"]["name"] == built.one("Service").object_name
    assert requests["object"]["target"] == {"type": "AverageValue", "averageValue": "150"}
    assert processors["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_with_an_autoscaler_the_number_of_gateways_is_ignored_and_cpu_is_worth_measuring() -> None:
    deployment = gateway(max_replicas=5).one("Deployment", "gateway")
    assert deployment.ignore_changes == ("spec.replicas",)
    assert deployment.inputs["spec"]["replicas"] == 1
    (container,) = deployment.inputs["spec"]["template"]["spec"]["containers"]
    # 80 % of 50m would be reached by anything that runs at all.
    assert container["resources"]["requests"]["cpu"] == "500m"


def test_keda_scales_the_gateway_where_there_is_no_adapter() -> None:
    built = gateway(max_replicas=5, metrics="keda", prometheus_url=PROMETHEUS)
    assert scalers(built) == ["ScaledObject"]
    spec = built.one("ScaledObject", "gateway").inputs["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 5)
    requests, processors = spec["triggers"]
    assert requests["metadata"] == {
        "serverAddress": PROMETHEUS,
        "query": 'llm_platform:gateway_concurrency{namespace="llm-platform",service="gateway"}',
        "threshold": "200",
        "ignoreNullValues": "false",
    }
    assert (processors["type"], processors["metadata"]) == ("cpu", {"value": "80"})


def test_a_scaled_gateway_waits_for_what_the_caller_waits_for() -> None:
    def program() -> None:
        crd = pulumi.CustomResource("test:index:Definition", "crd")
        args = gateway_args(max_replicas=5, metrics="keda", prometheus_url=PROMETHEUS)
        Gateway("gateway", args, pulumi.ResourceOptions(depends_on=[crd]))

    built = build(program)
    waits_for = {built.by_urn()[urn].name for urn in built.one("ScaledObject").depends_on}
    assert waits_for == {"crd", "gateway-deployment", "gateway-service"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"replicas": 3, "max_replicas": 2}, "max_replicas=2 is below replicas=3"),
        ({"max_replicas": 2, "metrics": "keda"}, "prometheus_url is missing"),
    ],
)
def test_a_range_that_means_nothing_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        gateway_args(**changes)


def test_the_gateway_may_write_results_and_publish_tasks() -> None:
    built = gateway(routing="service")
    found = variables(built, "gateway")
    assert found["LLM_PLATFORM_BUCKET"] == "weights"
    assert found["LLM_PLATFORM_BROKER"] == "redis"
    assert found["LLM_PLATFORM_ROUTING"] == "service"
    granted = built.one("Secret", "gateway-access").inputs["stringData"]
    assert granted["AWS_ACCESS_KEY_ID"] == f"{samples.CANARIES['owner']}-access"
    ports = {
        port["port"]
        for policy in built.all("NetworkPolicy")
        if policy.object_name == "gateway-to-what-it-uses"
        for port in policy.inputs["spec"]["egress"][0]["ports"]
    }
    assert ports == {5432, 6379, 7070}


def test_the_migration_ends_in_a_mesh_too() -> None:
    metadata = gateway().one("Job").inputs["spec"]["template"]["metadata"]
    for place in ("labels", "annotations"):
        assert metadata[place]["sidecar.istio.io/inject"] == "false"


def test_the_cacher_knows_every_team_s_password_by_file_and_answers_keda_and_prometheus() -> None:
    built = build(lambda: samples.COMPONENTS["Cacher"]("cacher"))
    users = built.one("Secret", "redis-users").inputs["stringData"]
    assert users == {"demo": samples.CANARIES["team-redis"]}
    found = variables(built, "cacher")
    pod = built.one("Deployment", "cacher").inputs["spec"]["template"]["spec"]
    mounted = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    volume = volumes[mounted[found["LLM_PLATFORM_REDIS_USERS_DIR"]]]
    assert volume["secret"]["secretName"] == "redis-users"
    assert (found["LLM_PLATFORM_BROKER"], found["LLM_PLATFORM_BUCKET"]) == ("redis", "weights")
    (rule,) = built.one("NetworkPolicy", "cacher-from-scaling").inputs["spec"]["ingress"]
    callers = [
        peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for peer in rule["from"]
    ]
    assert (callers, rule["ports"]) == (
        ["keda", "llm-platform-monitoring"],
        [{"port": 8081, "protocol": "TCP"}],
    )
    service = built.one("Service", "cacher").inputs["spec"]
    assert service["ports"] == [{"name": "http", "port": 80, "targetPort": "http"}]
    assert build(lambda: pulumi.export("url", samples.COMPONENTS["Cacher"]("c").url)).exports == {  # pyright: ignore[reportAttributeAccessIssue]
        "url": "http://cacher.llm-platform.svc"
    }
