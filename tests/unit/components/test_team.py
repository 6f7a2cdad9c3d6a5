"""What a team may use, reach and change."""

import ipaddress
import json
from typing import Any

from components import Team, TeamArgs
from components.local.foundation import data_paths
from tests import samples
from tests.harness import Built, build


def test_a_team_s_kubeconfig_reaches_its_namespace_and_holds_no_admin_right() -> None:
    built = team()
    published = samples.usual_platform().exports["team_demo_kubeconfig"]
    config: dict[str, Any] = json.loads(published)
    assert config["contexts"][0]["context"]["namespace"] == "team-demo"
    assert config["users"] == [{"name": "deployer", "user": {"token": "canary-token"}}]
    assert "canary-admin-token" not in published
    assert [role.namespace for role in built.all("Role")] == ["team-demo"]
    assert built.all("ClusterRole") == []


def test_a_team_may_not_change_what_limits_it() -> None:
    rules = team().one("Role").inputs["rules"]
    for rule in rules:
        writes = {"create", "update", "patch", "delete"} & set(rule["verbs"])
        limits = {"resourcequotas", "networkpolicies", "roles", "rolebindings", "limitranges"}
        assert not (writes and limits & set(rule["resources"])), rule
        assert "*" not in {*rule["verbs"], *rule["resources"], *rule["apiGroups"]}


def team(**changes: Any) -> Built:
    """Return a team with these arguments."""
    fields: dict[str, Any] = {
        "name": "demo",
        "kubeconfig": samples.KUBECONFIG,
        "platform_namespace": "llm-platform",
        "paths": data_paths("llm-platform-data"),
    }
    return build(lambda: Team("demo", TeamArgs(**{**fields, **changes})))


def quota(**changes: Any) -> dict[str, str]:
    """Return the limits of a team with these arguments."""
    return team(**changes).one("ResourceQuota", "quota").inputs["spec"]["hard"]


def test_a_team_s_quota_counts_gpus_endpoints_and_workers() -> None:
    hard = quota(gpus=2, endpoints=3, workers=7)
    assert hard["requests.nvidia.com/gpu"] == "2"
    assert hard["services"] == "3"
    assert hard["pods"] == "7"
    assert quota()["requests.nvidia.com/gpu"] == "0"


def test_a_team_s_quota_limits_processors_and_memory_only_when_told() -> None:
    assert not {"requests.cpu", "requests.memory"} & quota().keys()
    hard = quota(cpu="8", memory="32Gi")
    assert (hard["requests.cpu"], hard["requests.memory"]) == ("8", "32Gi")


def test_a_team_s_quota_has_room_for_exactly_what_its_endpoints_are_made_of() -> None:
    runtime = samples.RunnableImage(image=samples.image("own"), env={"TOKEN": samples.secret("x")})
    # One that has everything: weights, a queue, and variables that may be secret.
    args = samples.async_endpoint(runtime=runtime, weights=samples.Weights(samples.WEIGHTS))
    endpoint = build(lambda: samples.ModelEndpoint("gemma", args))
    assert len(endpoint.all("Secret")) == 3
    hard = quota(endpoints=3)
    # kube-root-ca.crt is there without anybody's doing.
    assert int(hard["count/configmaps"]) == 3 * len(endpoint.all("ConfigMap")) + 1
    assert int(hard["count/secrets"]) == 3 * len(endpoint.all("Secret")) + len(team().all("Secret"))


def test_a_team_may_have_no_pod_that_takes_the_place_of_everybody_else_s() -> None:
    spec = team().one("ResourceQuota", "no-preemption").inputs["spec"]
    assert spec["hard"] == {"pods": "0"}
    (scope,) = spec["scopeSelector"]["matchExpressions"]
    assert (scope["scopeName"], scope["operator"]) == ("PriorityClass", "In")
    assert set(scope["values"]) == {"system-node-critical", "system-cluster-critical"}


def test_a_team_s_quota_limits_autoscalers_with_room_for_a_change_of_owner() -> None:
    hard = quota(endpoints=3)
    assert hard["count/scaledobjects.keda.sh"] == "3"
    assert hard["count/horizontalpodautoscalers.autoscaling"] == "6"


def test_a_team_s_deployer_may_declare_autoscalers_but_scale_nothing_by_hand() -> None:
    allowed = {
        f"{group}/{resource}": set(rule["verbs"])
        for rule in team().one("Role", "deployer").inputs["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert "create" in allowed["autoscaling/horizontalpodautoscalers"]
    assert "create" in allowed["keda.sh/scaledobjects"]
    assert "apps/deployments/scale" not in allowed
    assert not [name for name in allowed if "triggerauthentications" in name]


def ways_out(built: Built) -> dict[str, list[Any]]:
    """Return the rules of every egress policy but the default one, by its name."""
    return {
        policy.object_name: policy.inputs["spec"]["egress"]
        for policy in built.all("NetworkPolicy")
        if "Egress" in policy.inputs["spec"]["policyTypes"] and policy.object_name != "default-deny"
    }


def in_namespace(name: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def test_a_team_s_workers_reach_weights_tasks_and_the_gateway_and_nothing_else() -> None:
    found = {
        (name, *peer["namespaceSelector"]["matchLabels"].values(), port["port"])
        for name, rules in ways_out(team()).items()
        for rule in rules
        for peer in rule["to"]
        for port in rule["ports"]
    }
    assert found == {
        ("to-weights", "llm-platform-data", 7071),
        ("to-tasks", "llm-platform-data", 6379),
        ("to-tasks", "llm-platform", 8080),
    }


def test_callbacks_reach_public_addresses_only() -> None:
    (rule,) = ways_out(team(callbacks=True))["to-callbacks"]
    assert rule["ports"] == [{"port": 443, "protocol": "TCP"}]
    (peer,) = rule["to"]
    assert peer["ipBlock"]["cidr"] == "0.0.0.0/0"
    kept = [ipaddress.ip_network(cidr) for cidr in peer["ipBlock"]["except"]]

    def reachable(address: str) -> bool:
        return not any(ipaddress.ip_address(address) in network for network in kept)

    inside = [
        *("10.88.0.1", "172.16.0.9", "172.31.255.254", "192.168.1.1", "100.64.0.1", "127.0.0.1"),
        *("169.254.169.254", "169.254.170.23", "0.0.0.1", "224.0.0.1", "255.255.255.255"),
    ]
    assert [address for address in inside if reachable(address)] == []
    assert all(map(reachable, ["1.1.1.1", "172.32.0.1", "100.128.0.1", "93.184.215.14"]))


def test_the_gateway_and_prometheus_reach_workers_on_their_port_and_nobody_else() -> None:
    (rule,) = team().one("NetworkPolicy", "from-gateway").inputs["spec"]["ingress"]
    assert rule["from"] == [in_namespace("llm-platform"), in_namespace("llm-platform-monitoring")]
    assert rule["ports"] == [{"port": 5000, "protocol": "TCP"}]
