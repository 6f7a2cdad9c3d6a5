"""What Prometheus asks, and under which labels it keeps the answers."""

from typing import Any

from ..domain import labels
from ..domain.recording import MESH_JOB, PLATFORM_JOB, WORKERS_JOB, MeshKind

PLATFORM_PORTS = (8080, 8081)
WORKER_PORT = 5000
PROXY_PORT = 15090
"""Where a mesh's proxy beside a worker answers."""

_SAMPLES = 5000
"""One worker's answer at most: a pod of a team can't fill Prometheus' memory."""


def config(
    *, platform_namespace: str, mesh: MeshKind, scrape_seconds: int, rules_path: str
) -> dict[str, Any]:
    """Return Prometheus' configuration.

    Args:
        platform_namespace: Where the gateway and the cacher run.
        mesh: Whether the mesh's proxies are asked too.
        scrape_seconds: How often every target is asked.
        rules_path: The file of recording rules.
    """
    jobs = [_platform(platform_namespace), _workers(WORKERS_JOB, WORKER_PORT, "/metrics")]
    if mesh is MeshKind.ISTIO:
        jobs.append(_workers(MESH_JOB, PROXY_PORT, "/stats/prometheus"))
    return {
        "global": {
            "scrape_interval": f"{scrape_seconds}s",
            "scrape_timeout": f"{min(scrape_seconds, 10)}s",
            "evaluation_interval": f"{scrape_seconds}s",
        },
        "rule_files": [rules_path],
        "scrape_configs": jobs,
    }


def _platform(namespace: str) -> dict[str, Any]:
    """Ask the platform's own pods; they are trusted to say whom a figure is about."""
    return {
        "job_name": PLATFORM_JOB,
        "honor_labels": True,
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [namespace]}}],
        "relabel_configs": [
            _keep(
                "__meta_kubernetes_pod_container_port_number",
                "|".join(map(str, PLATFORM_PORTS)),
            ),
            *_running(),
            _copy("__meta_kubernetes_namespace", "namespace"),
            _copy(_pod_label("app.kubernetes.io/name"), "service"),
            _copy("__meta_kubernetes_pod_name", "pod"),
        ],
    }


def _workers(job: str, port: int, path: str) -> dict[str, Any]:
    """Ask the workers of every team; whose a figure is, Kubernetes says, never the worker."""
    series = "llm_platform_forwarder_.+" if job == WORKERS_JOB else _PROXY_SERIES
    return {
        "job_name": job,
        "honor_labels": False,
        # The time of a sample would be the worker's word too.
        "honor_timestamps": False,
        "metrics_path": path,
        "sample_limit": _SAMPLES,
        "body_size_limit": "4MB",
        "kubernetes_sd_configs": [{"role": "pod", "attach_metadata": {"namespace": True}}],
        "relabel_configs": [
            _keep(_namespace_label(labels.TEAM), ".+"),
            _keep(_pod_label(labels.ENDPOINT), ".+"),
            _keep("__meta_kubernetes_pod_container_port_number", str(port)),
            *_running(),
            _copy("__meta_kubernetes_namespace", "namespace"),
            _copy(_pod_label(labels.ENDPOINT), "endpoint"),
            _copy("__meta_kubernetes_pod_name", "pod"),
        ],
        "metric_relabel_configs": [
            _keep("__name__", series),
            # What a worker says of itself, Kubernetes has said already.
            {"action": "labeldrop", "regex": "exported_.+"},
        ],
    }


_PROXY_SERIES = "istio_requests_total|istio_request_duration_milliseconds_(sum|count)"


def _running() -> list[dict[str, Any]]:
    ended = {
        "source_labels": ["__meta_kubernetes_pod_phase"],
        "regex": "Succeeded|Failed",
        "action": "drop",
    }
    return [ended]


def _keep(source: str, regex: str) -> dict[str, Any]:
    return {"source_labels": [source], "regex": regex, "action": "keep"}


def _copy(source: str, target: str) -> dict[str, Any]:
    return {"source_labels": [source], "target_label": target}


def _pod_label(name: str) -> str:
    return f"__meta_kubernetes_pod_label_{_sanitized(name)}"


def _namespace_label(name: str) -> str:
    return f"__meta_kubernetes_namespace_label_{_sanitized(name)}"


def _sanitized(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)
