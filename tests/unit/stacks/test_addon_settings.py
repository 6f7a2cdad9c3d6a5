"""The cluster's add-ons: one of each, from where the settings say, in the order of need."""

from typing import Any

import pytest

from tests import samples
from tests.harness import Built, Recorded

PROGRAMS = {
    "prometheus": "/prometheus",
    "prometheus-adapter": "/adapter",
    "metrics-server": "/metrics-server",
}
CHARTS = {"keda", "metrics-server", "prometheus-adapter"}


def releases(built: Built) -> dict[str, Recorded]:
    return {release.inputs["chart"]: release for release in built.all("Release")}


def behind(built: Built, resource: Recorded) -> set[str]:
    """Return the names of all that a resource waits for, even through others."""
    return {it.name for it in built.before(resource)}


def test_add_ons_come_from_manifests_or_from_charts_and_never_from_both() -> None:
    assert releases(samples.usual_platform()) == {}
    chart = {"source": "chart"}
    changes: dict[str, Any] = dict.fromkeys(["keda", "metrics_server", "prometheus_adapter"], chart)
    built = samples.build_platform(addons=samples.addon_settings(**changes))
    assert set(releases(built)) == CHARTS
    ours = {it.object_name for it in built.all("Deployment")}
    assert ours == {"prometheus", "gateway", "cacher", "gemma"}
    assert built.all("CustomResourceDefinition") == []


def test_programs_of_our_images_are_at_their_root_and_those_of_others_where_it_says() -> None:
    def commands(**changes: Any) -> dict[str, Any]:
        built = samples.build_platform(addons=samples.addon_settings(**changes))
        return {
            name: pod["containers"][0]["command"]
            for name, pod in built.pods()
            if name.removeprefix("Deployment/") in PROGRAMS
        }

    assert commands() == {f"Deployment/{name}": [path] for name, path in PROGRAMS.items()}
    own = {"source": "manifests", "image": samples.image("prom"), "command": ["/bin/prometheus"]}
    assert commands(prometheus=own)["Deployment/prometheus"] == ["/bin/prometheus"]


def test_another_version_of_a_chart_is_a_setting() -> None:
    keda = {"source": "chart", "version": "2.19.0"}
    built = samples.build_platform(addons=samples.addon_settings(keda=keda))
    assert releases(built)["keda"].inputs["version"] == "2.19.0"


def test_nothing_is_installed_over_what_the_cluster_has() -> None:
    there = {"source": "existing"}
    url = "http://prometheus.monitoring.svc:9090"
    built = samples.build_platform(
        addons={
            **dict.fromkeys(["keda", "metrics_server", "prometheus_adapter"], there),
            "prometheus": {**there, "url": url},
        }
    )
    assert built.all("Release") == []
    assert {it.object_name for it in built.all("Deployment")} == {"gateway", "cacher", "gemma"}
    assert built.exports["prometheus_url"] == url
    # KEDA that is there needs credentials of ours all the same.
    assert built.one("ClusterTriggerAuthentication").object_name == "llm-platform-activation"


def test_each_api_service_has_one_owner() -> None:
    built = samples.usual_platform()
    names = [it.object_name for it in built.all("APIService")]
    assert sorted(names) == sorted(set(names))
    groups = {it.inputs["spec"]["group"] for it in built.all("APIService")}
    assert {"custom.metrics.k8s.io", "metrics.k8s.io"} <= groups


def test_with_keda_for_metrics_there_is_no_adapter() -> None:
    built = samples.build_platform(metrics="keda")
    assert built.all("PrometheusAdapter") == []
    assert len(built.all("Keda")) == 1


def test_a_mesh_is_there_only_when_the_settings_say_so() -> None:
    assert samples.usual_platform().all("Mesh") == []
    built = samples.build_platform(mesh="istio")
    labelled = {it.object_name for it in built.all("NamespacePatch")}
    assert labelled == {"llm-platform", "team-demo"}
    pod = built.one("Deployment", "gateway").inputs["spec"]["template"]["spec"]
    env = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    assert env["LLM_PLATFORM_ROUTING"] == "service"


@pytest.mark.parametrize("source", ["manifests", "chart"])
def test_an_endpoint_comes_after_what_scales_it_and_goes_before_it(source: str) -> None:
    changes = {} if source == "manifests" else {"keda": {"source": "chart"}}
    built = samples.build_platform(addons=samples.addon_settings(**changes))
    operator = built.one("Deployment", "keda-operator") if not changes else releases(built)["keda"]
    for kind in ("ModelEndpoint", "Team"):
        assert operator.name in behind(built, built.one(kind)), kind


def test_a_scaled_object_that_somebody_else_made_goes_with_its_namespace_before_keda() -> None:
    """Its finalizer needs the operator, so every team's namespace goes while KEDA still runs."""
    built = samples.build_platform(teams=[{"name": "demo"}, {"name": "search"}])
    operator = built.one("Deployment", "keda-operator").name
    for team in ("team-demo", "team-search"):
        assert operator in behind(built, built.one("Namespace", team))


def test_the_gateway_s_scaling_is_a_setting() -> None:
    built = samples.build_platform(gateway={"max_replicas": 4, "target_concurrency": 50})
    hpa = built.one("HorizontalPodAutoscaler", "gateway").inputs["spec"]
    assert hpa["maxReplicas"] == 4
    by_keda = samples.build_platform(gateway={"max_replicas": 4}, metrics="keda")
    scaled = by_keda.one("ScaledObject", "gateway")
    assert scaled.inputs["spec"]["maxReplicaCount"] == 4
    assert by_keda.one("Deployment", "keda-operator").name in behind(by_keda, scaled)


def test_a_team_s_callbacks_are_a_setting() -> None:
    def opened(**team: Any) -> bool:
        built = samples.build_platform(teams=[{"name": "demo", **team}])
        return "to-callbacks" in {it.object_name for it in built.all("NetworkPolicy")}

    assert opened(callbacks=True)
    assert not opened()


def test_the_endpoints_of_the_program_know_who_reads_their_metrics() -> None:
    settings = samples.platform_settings(metrics="keda")
    from stacks import platform

    seen: dict[str, str] = {}

    def spy(teams: Any, _: Any) -> dict[str, Any]:
        seen.update({name: view.metrics for name, view in teams.items()})
        return {}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(platform, "endpoints", spy)
        platform.check_endpoints(platform.cloud_of("local", settings), settings)
    assert seen == {"demo": "keda"}
