"""The add-ons: where they come from, what they may do, and that each part has one owner."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pydantic import ValidationError

from components import (
    Chart,
    Existing,
    ExistingIstio,
    ExistingPrometheus,
    Image,
    IstioCharts,
    Keda,
    KedaManifests,
    Mesh,
    MeshArgs,
    MeshKind,
    MetricsServer,
    MetricsServerArgs,
    Prometheus,
    PrometheusAdapter,
    PrometheusAdapterArgs,
    PrometheusArgs,
)
from components.domain.metrics import (
    CONCURRENCY,
    CUSTOM_METRIC,
    GATEWAY_CUSTOM_METRIC,
    WINDOWS,
    concurrency_query,
    windows_for,
)
from components.domain.predicates import hardening_problems
from components.kube import rendered
from components.kube.addon import merged
from components.kube.keda import CHART
from components.kube.prometheus_adapter import adapter_rules
from components.local.foundation import data_paths
from tests import samples
from tests.harness import Built, Recorded, build

CANARY = samples.CANARIES["scaler"]


def keda(**changes: Any) -> Built:
    return build(lambda: Keda("keda", samples.keda_args(**changes)))


def prometheus(**changes: Any) -> Built:
    return build(lambda: Prometheus("prometheus", samples.prometheus_args(**changes)))


def adapter(**changes: Any) -> Built:
    fields = {"source": Image(image=samples.image("prometheus-adapter")), **changes}
    return build(lambda: PrometheusAdapter("adapter", PrometheusAdapterArgs(**fields)))


def metrics_server(**changes: Any) -> Built:
    fields = {"source": Image(image=samples.image("metrics-server")), **changes}
    return build(lambda: MetricsServer("processors", MetricsServerArgs(**fields)))


def mesh(**changes: Any) -> Built:
    fields = {"namespaces": ("llm-platform", "team-demo"), **changes}
    return build(lambda: Mesh("mesh", MeshArgs(**fields)))


def every_addon() -> Built:
    """All add-ons of one cluster in one program."""

    def program() -> None:
        for name in ("Keda", "Prometheus", "PrometheusAdapter", "MetricsServer"):
            samples.COMPONENTS[name](name.lower())

    return build(program)


def config_of(built: Built, file: str) -> Any:
    return yaml.safe_load(built.one("ConfigMap").inputs["data"][file])


def args_of(built: Built, name: str) -> list[str]:
    pod = dict(built.pods())[f"Deployment/{name}"]
    return pod["containers"][0]["args"]


def transitive(built: Built, resource: Recorded) -> set[str]:
    urns, found, todo = built.by_urn(), set[str](), list(resource.depends_on)
    while todo:
        urn = todo.pop()
        if urn not in found:
            found.add(urn)
            todo.extend(urns[urn].depends_on if urn in urns else ())
    return found


# One owner


def test_every_api_service_and_definition_has_one_owner() -> None:
    built = every_addon()
    for kind in ("APIService", "CustomResourceDefinition"):
        names = [it.object_name for it in built.all(kind)]
        assert len(names) == len(set(names)), names
    assert {it.object_name for it in built.all("APIService")} == {
        "v1beta1.external.metrics.k8s.io",
        "v1beta1.custom.metrics.k8s.io",
        "v1beta2.custom.metrics.k8s.io",
        "v1beta1.metrics.k8s.io",
    }


def test_no_two_add_ons_share_the_name_of_an_object() -> None:
    built = every_addon()
    names = [(it.kind, it.namespace, it.object_name) for it in built.resources if it.custom]
    assert len(names) == len(set(names))


def test_the_adapter_serves_custom_metrics_and_nothing_else() -> None:
    served = {it.inputs["spec"]["group"] for it in adapter().all("APIService")}
    assert served == {"custom.metrics.k8s.io"}
    config = config_of(adapter(), "config.yaml")
    assert set(config) == {"rules"}, "neither externalRules nor resourceRules"
    chart = adapter(source=Chart(repository="https://c.example", chart="a", version="4.11.0"))
    rules = chart.one("Release").inputs["values"]["rules"]
    assert rules["external"] == []
    assert rules["resource"] == {}
    assert rules["default"] is False
    assert rules["custom"] == config["rules"]


def test_the_adapter_s_rules_name_our_metrics_on_services() -> None:
    rules = {rule["name"]["as"]: rule for rule in adapter_rules()["rules"]}
    assert set(rules) == {CUSTOM_METRIC, GATEWAY_CUSTOM_METRIC}
    rule = rules["request-concurrency-average"]
    assert rule["seriesQuery"] == f'{{__name__="{CONCURRENCY}"}}'
    assert rule["resources"]["overrides"] == {
        "namespace": {"resource": "namespace"},
        "endpoint": {"resource": "service"},
    }
    # Without a window chosen there are several series; their sum would be a multiple.
    assert rule["metricsQuery"].startswith("max(")


@pytest.mark.parametrize("make", [adapter, metrics_server])
def test_the_autoscaler_may_read_what_is_served(make: Callable[..., Built]) -> None:
    built = make()
    groups = {it.inputs["spec"]["group"] for it in built.all("APIService")}
    readers = [
        it.inputs["rules"][0]["apiGroups"][0]
        for it in built.all("ClusterRole")
        if it.object_name.endswith("-reader")
    ]
    assert set(readers) == groups
    subjects = [it.inputs["subjects"][0]["name"] for it in built.all("ClusterRoleBinding")]
    assert "horizontal-pod-autoscaler" in subjects


# Order


def test_custom_resources_wait_for_their_definitions_and_for_who_keeps_them() -> None:
    built = keda()
    trigger = built.one("ClusterTriggerAuthentication")
    waits = transitive(built, trigger)
    for kind in ("CustomResourceDefinition", "Deployment", "ValidatingWebhookConfiguration"):
        assert {it.urn for it in built.all(kind)} <= waits, kind


def test_definitions_come_first_and_what_leads_requests_to_pods_last() -> None:
    built = keda()
    definitions = {it.urn for it in built.all("CustomResourceDefinition")}
    pods = {it.urn for it in built.all("Deployment")}
    for deployment in built.all("Deployment"):
        assert definitions <= set(deployment.depends_on)
        assert not pods & set(deployment.depends_on)
    assert pods <= set(built.one("APIService").depends_on)


def test_pods_wait_for_their_rights_and_their_network_paths() -> None:
    for built in (keda(), prometheus(), adapter(), metrics_server()):
        needed = {
            it.urn
            for it in built.resources
            if it.kind in {"ClusterRoleBinding", "ServiceAccount", "NetworkPolicy"}
            and it.object_name != "default-deny"
        }
        for deployment in built.all("Deployment"):
            assert needed <= transitive(built, deployment), deployment.name


# Secrets


def test_the_scaler_s_password_is_in_one_secret_and_never_in_values() -> None:
    for source in (samples.keda_args().source, CHART):
        built = keda(source=source)
        holders = [it for it in built.resources if CANARY in json.dumps(it.inputs)]
        assert [it.kind for it in holders] == ["Secret"]
        secret = holders[0]
        assert secret.inputs["stringData"]["username"] == "scaler"
        assert {"stringData", "stringData.password"} & set(secret.secret_paths)
        trigger = built.one("ClusterTriggerAuthentication")
        assert trigger.inputs["spec"]["secretTargetRef"] == [
            {"parameter": "username", "name": secret.object_name, "key": "username"},
            {"parameter": "password", "name": secret.object_name, "key": "password"},
        ]
        assert secret.namespace == "keda"


def test_an_output_in_a_chart_s_values_is_refused() -> None:
    with pytest.raises(ValidationError, match="values decides shape and must be a plain value"):
        Chart(
            repository="https://c.example",
            chart="keda",
            version="2.20.2",
            values={"redis": {"password": pulumi.Output.from_input("x")}},
        )


def test_the_first_preview_shows_a_chart_with_all_of_its_values() -> None:
    def program() -> None:
        Keda("keda", samples.keda_args(source=CHART))
        PrometheusAdapter("adapter", PrometheusAdapterArgs())
        MetricsServer("processors", MetricsServerArgs())

    previewed, updated = build(program, preview=True), build(program)
    for one, other in zip(previewed.all("Release"), updated.all("Release"), strict=True):
        assert one.inputs == other.inputs
    assert len(previewed.resources) == len(updated.resources)


# Charts


@pytest.mark.parametrize("version", ["2.x", "^2.20.0", ">=2", "latest", "2.20"])
def test_a_range_of_versions_is_refused(version: str) -> None:
    with pytest.raises(ValidationError, match="version"):
        Chart(repository="https://c.example", chart="keda", version=version)


def test_a_chart_is_installed_wholly_in_one_version() -> None:
    release = keda(source=CHART).one("Release").inputs
    assert release["version"] == "2.20.2"
    assert release["repositoryOpts"] == {"repo": "https://kedacore.github.io/charts"}
    assert release["atomic"] is True
    assert release["namespace"] == "keda"
    assert release["values"]["watchNamespace"] == ""


def test_one_s_own_values_go_over_the_platform_s() -> None:
    base = {"operator": {"replicaCount": 2, "name": "o"}, "list": [1, 2]}
    over = {"operator": {"replicaCount": 1}, "list": [3], "more": True}
    assert merged(base, over) == {
        "operator": {"replicaCount": 1, "name": "o"},
        "list": [3],
        "more": True,
    }
    chart = Chart(
        repository="https://c.example",
        chart="keda",
        version="2.20.2",
        values={"operator": {"replicaCount": 1}},
    )
    values = keda(source=chart).one("Release").inputs["values"]
    assert values["operator"]["replicaCount"] == 1
    assert values["permissions"]["operator"]["restrict"]["secret"] is True


# What exists already


def test_what_exists_already_is_not_made_again() -> None:
    assert not [it for it in adapter(source=Existing()).resources if it.custom]
    assert not [it for it in metrics_server(source=Existing()).resources if it.custom]
    joined = prometheus(source=ExistingPrometheus(url="https://metrics.example/api"))
    assert not [it for it in joined.resources if it.custom]
    top = next(it.urn for it in joined.resources if it.name == "prometheus")
    assert joined.registered_outputs[top] == {"url": "https://metrics.example/api"}


def test_a_keda_that_exists_gets_the_scaler_s_credentials_only() -> None:
    built = keda(source=Existing(), namespace="autoscaling")
    kinds = sorted(it.kind for it in built.resources if it.custom)
    assert kinds == ["ClusterTriggerAuthentication", "Secret"]
    assert built.one("Secret").namespace == "autoscaling"


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(ValidationError, match="source"):
        MetricsServerArgs.model_validate({"source": {"source": "guess"}})
    chosen = MetricsServerArgs.model_validate({"source": {"source": "existing"}})
    assert chosen.source == Existing()


# Manifests


def test_pods_from_manifests_are_hardened_and_run_our_images() -> None:
    built = keda()
    pods = dict(built.pods())
    assert set(pods) == {
        "Deployment/keda-operator",
        "Deployment/keda-metrics-apiserver",
        "Deployment/keda-admission",
    }
    for name, pod in pods.items():
        assert hardening_problems(pod) == [], name
        (container,) = pod["containers"]
        assert container["image"] == samples.image("keda")
        assert container["imagePullPolicy"] == "IfNotPresent"
        assert container["resources"]["requests"] == {"cpu": "20m", "memory": "64Mi"}
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert sorted(mounts) == ["/certs", "/tmp"]
        assert len({volume["name"] for volume in pod["volumes"]}) == len(pod["volumes"]) == 2


def test_each_of_keda_s_programs_may_have_an_image_of_its_own() -> None:
    source = KedaManifests(
        file=samples.KEDA_MANIFESTS,
        operator=samples.image("keda"),
        metrics_apiserver=samples.image("keda-metrics-apiserver"),
        admission_webhooks=samples.image("keda-admission-webhooks"),
    )
    images = {pod["containers"][0]["image"] for _, pod in keda(source=source).pods()}
    assert images == {source.operator, source.metrics_apiserver, source.admission_webhooks}


def test_keda_reads_no_secrets_but_its_own_and_changes_only_what_is_scaled() -> None:
    built = keda()
    rules = built.one("ClusterRole", "keda-operator").inputs["rules"]
    assert not [rule for rule in rules if "secrets" in rule["resources"]]
    assert not [rule for rule in rules if "*" in rule["apiGroups"]]
    scale = [rule for rule in rules if "deployments/scale" in rule["resources"]]
    assert [rule["apiGroups"] for rule in scale] == [["apps"]]
    whole = [rule for rule in rules if "deployments" in rule["resources"]]
    assert [rule["verbs"] for rule in whole] == [["get", "list", "watch"]]
    for _, pod in built.pods():
        env = {item["name"]: item.get("value") for item in pod["containers"][0]["env"]}
        assert env["KEDA_RESTRICT_SECRET_ACCESS"] == "true"
    own = built.one("Role", "keda-operator").inputs["rules"]
    assert own[0]["resources"] == ["secrets"]


def test_objects_keep_their_own_labels_and_get_ours() -> None:
    role = keda().one("ClusterRole", "keda:edit")
    assert role.name == "keda-clusterrole-keda-edit"
    labels = role.inputs["metadata"]["labels"]
    assert labels["app.kubernetes.io/part-of"] == "llm-platform"
    assert labels["app.kubernetes.io/name"] == "keda-edit"


def test_keda_s_namespace_is_made_once_by_us() -> None:
    namespaces = keda().all("Namespace")
    custom = [it for it in namespaces if it.custom]
    assert len(custom) == 1
    assert custom[0].inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == (
        "restricted"
    )


def test_a_definition_s_schema_arrives_as_it_was_written() -> None:
    definition = keda().one("CustomResourceDefinition").inputs
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] is True


def test_manifests_that_are_not_there_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="isn't a file: render the add-on's manifests"):
        KedaManifests(file=str(tmp_path / "none.yaml"), operator=samples.image("keda"))


def test_manifests_for_another_namespace_are_refused() -> None:
    with pytest.raises(ValidationError, match="leave namespace out, or install the chart"):
        samples.keda_args(namespace="elsewhere")


def test_an_object_of_a_kind_that_nobody_knows_is_refused() -> None:
    odd = {"apiVersion": "example.com/v1", "kind": "Odd", "metadata": {"name": "odd"}}

    def program() -> None:
        parent = pulumi.ComponentResource("llm-platform:index:Test", "test")
        rendered.apply_manifests("test", [odd], component="test", parent=parent)

    with pytest.raises(ValueError, match=r"example.com/v1 Odd aren't known here"):
        build(program)


# Network


def test_keda_reaches_what_it_asks_and_nothing_else() -> None:
    policy = keda().one("NetworkPolicy", "to-what-it-asks").inputs["spec"]
    reach = {
        tuple(port["port"] for port in rule["ports"]): bool(rule.get("to"))
        for rule in policy["egress"]
    }
    assert reach == {(9666,): True, (6379,): True, (8081,): True, (9090,): True, (443, 6443): False}


def test_a_redis_outside_of_the_cluster_is_reached_by_its_port() -> None:
    anywhere = [([], [6380])]
    paths = replace(data_paths("data"), redis=anywhere, tasks=anywhere)
    policy = keda(paths=paths).one("NetworkPolicy", "to-what-it-asks")
    rules = policy.inputs["spec"]["egress"]
    assert {"ports": [{"port": 6380, "protocol": "TCP"}]} in rules


def test_prometheus_is_asked_by_who_scales_and_asks_who_is_measured() -> None:
    built = prometheus()
    spec = built.one("NetworkPolicy", "prometheus-from-who-asks").inputs["spec"]
    assert [port["port"] for port in spec["ingress"][0]["ports"]] == [9090]
    asks = [
        peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for peer in spec["ingress"][0]["from"]
    ]
    assert asks == ["llm-platform-monitoring", "keda", "llm-platform"]
    egress = built.one("NetworkPolicy", "prometheus-to-what-it-asks").inputs["spec"]["egress"]
    assert [[port["port"] for port in rule["ports"]] for rule in egress] == [
        [8080, 8081],
        [5000],
        [443, 6443],
    ]


# Prometheus


def test_a_worker_s_figures_carry_the_labels_of_kubernetes() -> None:
    config = config_of(prometheus(), "prometheus.yml")
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert set(jobs) == {"platform", "workers"}
    workers = jobs["workers"]
    assert workers["honor_labels"] is False
    assert workers["honor_timestamps"] is False
    targets = {
        rule["target_label"]: rule["source_labels"][0]
        for rule in workers["relabel_configs"]
        if "target_label" in rule
    }
    assert targets == {
        "namespace": "__meta_kubernetes_namespace",
        "endpoint": "__meta_kubernetes_pod_label_llm_platform_endpoint",
        "pod": "__meta_kubernetes_pod_name",
    }
    kept = {
        rule["source_labels"][0]: rule["regex"]
        for rule in workers["relabel_configs"]
        if rule.get("action") == "keep"
    }
    assert kept == {
        "__meta_kubernetes_namespace_label_llm_platform_team": ".+",
        "__meta_kubernetes_pod_label_llm_platform_endpoint": ".+",
        "__meta_kubernetes_pod_container_port_number": "5000",
    }
    # A worker can neither make up the gateway's series nor fill the memory.
    assert workers["metric_relabel_configs"][0]["regex"] == "llm_platform_forwarder_.+"
    assert workers["sample_limit"] > 0
    platform = jobs["platform"]
    assert platform["honor_labels"] is True
    discovery = platform["kubernetes_sd_configs"][0]
    assert discovery["namespaces"]["names"] == ["llm-platform"]


def test_with_a_mesh_the_proxies_are_asked_too() -> None:
    built = prometheus(mesh=MeshKind.ISTIO)
    jobs = {job["job_name"]: job for job in config_of(built, "prometheus.yml")["scrape_configs"]}
    assert jobs["mesh"]["metrics_path"] == "/stats/prometheus"
    assert jobs["mesh"]["honor_labels"] is False
    rules = config_of(built, "rules.yml")["groups"][0]["rules"]
    assert any('reporter="destination"' in rule["expr"] for rule in rules)
    egress = built.one("NetworkPolicy", "prometheus-to-what-it-asks").inputs["spec"]["egress"]
    assert [port["port"] for port in egress[1]["ports"]] == [5000, 15090]


def test_a_change_of_what_is_asked_rolls_the_pod() -> None:
    def annotation(**changes: Any) -> str:
        template = prometheus(**changes).one("Deployment").inputs["spec"]["template"]
        return template["metadata"]["annotations"]["llm-platform/config-hash"]

    assert annotation() == annotation()
    assert annotation() != annotation(scrape_interval_seconds=10)


def test_there_is_one_prometheus_and_its_disk_outlives_it() -> None:
    built = prometheus(volume="5Gi", storage_class="fast")
    deployment = built.one("Deployment").inputs["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    claim = built.one("PersistentVolumeClaim").inputs["spec"]
    assert claim["resources"]["requests"] == {"storage": "5Gi"}
    assert claim["storageClassName"] == "fast"
    assert not prometheus().all("PersistentVolumeClaim")
    volumes = dict(prometheus().pods())["Deployment/prometheus"]["volumes"]
    assert {"name": "data", "emptyDir": {"sizeLimit": "2Gi"}} in volumes


def test_an_old_sample_is_not_taken_for_now() -> None:
    assert "--query.lookback-delta=30s" in args_of(prometheus(), "prometheus")
    slow = prometheus(scrape_interval_seconds=15)
    assert "--query.lookback-delta=90s" in args_of(slow, "prometheus")


def test_the_metrics_server_trusts_unsigned_kubelets_only_when_told_to() -> None:
    flag = "--kubelet-insecure-tls"
    assert flag not in args_of(metrics_server(), "metrics-server")
    assert flag in args_of(metrics_server(kubelet_insecure_tls=True), "metrics-server")
    chart = MetricsServerArgs().source
    values = metrics_server(source=chart, kubelet_insecure_tls=True).one("Release").inputs["values"]
    assert values["args"] == [flag]


def test_an_image_may_name_its_program() -> None:
    image = Image(image=samples.image("prometheus"), command=("/bin/prometheus",))
    pod = dict(prometheus(source=image).pods())["Deployment/prometheus"]
    assert pod["containers"][0]["command"] == ["/bin/prometheus"]
    assert "command" not in dict(prometheus().pods())["Deployment/prometheus"]["containers"][0]


# Windows


def test_a_window_that_holds_too_few_scrapes_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"a window of 60 s .* make it at least 240 s"):
        samples.prometheus_args(scrape_interval_seconds=60, windows=(60,))
    with pytest.raises(ValueError, match="at least 60 s"):
        windows_for(15, (20, 60))


def test_windows_follow_from_how_often_targets_are_asked() -> None:
    assert windows_for(5) == WINDOWS == (20, 60, 120, 300)
    assert windows_for(15) == (60, 120, 300)
    assert windows_for(15, (60,)) == (60,)
    assert windows_for(60) == (300,)
    assert windows_for(120) == (480,)


def test_every_window_has_a_rule_and_rules_are_reckoned_as_often_as_targets_are_asked() -> None:
    group = config_of(prometheus(windows=(20, 60)), "rules.yml")["groups"][0]
    windows = [rule["labels"]["window"] for rule in group["rules"] if "labels" in rule]
    assert windows == ["20", "60"]
    assert group["interval"] == "5s"


def test_the_query_for_one_endpoint_names_all_of_its_labels() -> None:
    assert concurrency_query("team-red", "llama", 60) == (
        'llm_platform:request_concurrency{namespace="team-red",endpoint="llama",window="60"}'
    )


# The mesh


def test_joining_a_mesh_makes_nothing_but_what_is_the_namespaces_own() -> None:
    built = mesh(source=ExistingIstio(revision="stable"))
    kinds = {it.kind for it in built.resources if it.custom}
    assert kinds == {"NamespacePatch", "DestinationRule", "NetworkPolicy"}
    patches = {
        it.object_name: it.inputs["metadata"]["labels"] for it in built.all("NamespacePatch")
    }
    assert set(patches) == {"llm-platform", "team-demo"}
    assert patches["team-demo"]["istio.io/rev"] == "stable"


def test_an_installed_mesh_repeats_no_inference_and_leaves_jobs_alone() -> None:
    built = mesh(source=IstioCharts())
    releases = {it.inputs["chart"]: it for it in built.all("Release")}
    assert set(releases) == {"base", "cni", "istiod"}
    assert {it.inputs["version"] for it in releases.values()} == {"1.30.4"}
    values = releases["istiod"].inputs["values"]
    assert values["meshConfig"]["defaultHttpRetryPolicy"] == {"attempts": 0}
    never = values["sidecarInjectorWebhook"]["neverInjectSelector"][0]["matchExpressions"][0]
    assert never == {"key": "batch.kubernetes.io/job-name", "operator": "Exists"}
    assert releases["base"].urn in releases["cni"].depends_on
    for rule in built.all("DestinationRule"):
        assert releases["istiod"].urn in rule.depends_on
        policy = rule.inputs["spec"]["trafficPolicy"]
        assert policy == {"loadBalancer": {"simple": "LEAST_REQUEST"}}
        assert rule.inputs["spec"]["host"] == f"*.{rule.namespace}.svc.cluster.local"


def test_a_prometheus_that_is_joined_may_be_known_later() -> None:
    args = PrometheusArgs(
        source=ExistingPrometheus(url=pulumi.Output.from_input("http://later")), namespace="m"
    )
    assert isinstance(args.source, ExistingPrometheus)
