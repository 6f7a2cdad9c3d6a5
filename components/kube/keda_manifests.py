"""KEDA from its own manifests, as the platform runs it."""

from collections.abc import Sequence
from typing import Literal

from ..domain.args import Args
from ..domain.images import ImageRef
from . import rendered
from .addon import ManifestFile

_OPERATOR = "keda-operator"
_RESTRICT = "KEDA_RESTRICT_SECRET_ACCESS"
_READ = ["get", "list", "watch"]
_SCALABLE = [
    ("apps", ["deployments", "statefulsets", "replicasets"]),
    ("leaderworkerset.x-k8s.io", ["leaderworkersets"]),
]


class KedaManifests(Args):
    """KEDA's own manifests, rendered from its module, with images of one's own."""

    source: Literal["manifests"] = "manifests"
    """Says that it is made from manifests."""
    file: ManifestFile
    """What ``kubectl kustomize <KEDA's module>/config/default`` prints."""
    operator: ImageRef
    """The image with ``/keda``."""
    metrics_apiserver: ImageRef | None = None
    """The image with ``/keda-adapter``; the operator's when left out."""
    admission_webhooks: ImageRef | None = None
    """The image with ``/keda-admission-webhooks``; the operator's when left out."""


def manifests_of(source: KedaManifests, memory: str) -> list[rendered.Manifest]:
    """Return KEDA's manifests as they run here: hardened, and allowed no more than they use."""
    return [_adjusted(item, source, memory) for item in rendered.read_manifests(source.file)]


def _adjusted(manifest: rendered.Manifest, source: KedaManifests, memory: str) -> rendered.Manifest:
    match manifest["kind"]:
        case "Deployment":
            return _deployment(manifest, source, memory)
        case "ClusterRole" if manifest["metadata"]["name"] == _OPERATOR:
            return {**manifest, "rules": _rules(manifest["rules"])}
        case _:
            return manifest


def _deployment(
    manifest: rendered.Manifest, source: KedaManifests, memory: str
) -> rendered.Manifest:
    images = {
        _OPERATOR: source.operator,
        "keda-metrics-apiserver": source.metrics_apiserver or source.operator,
        "keda-admission-webhooks": source.admission_webhooks or source.operator,
    }
    spec = manifest["spec"]
    pod = rendered.harden(spec["template"]["spec"], images=images, memory=memory)
    for container in pod["containers"]:
        container["env"] = [*container.get("env", []), {"name": _RESTRICT, "value": "true"}]
        # Its own delay would make every installation wait; a failed probe costs nothing here.
        container["readinessProbe"] = {
            **container["readinessProbe"],
            "initialDelaySeconds": 1,
            "periodSeconds": 3,
        }
    template = {**spec["template"], "spec": pod}
    return {**manifest, "spec": {**spec, "template": template}}


def _rules(rules: Sequence[rendered.Manifest]) -> list[rendered.Manifest]:
    """Narrow what the operator may do to what the platform lets it scale; it reads no Secrets."""
    kept = [
        {**rule, "resources": [it for it in rule["resources"] if it != "secrets"]}
        for rule in rules
        if "*" not in rule["apiGroups"]
    ]
    scalable = [
        {"apiGroups": [group], "resources": resources, "verbs": verbs}
        for group, kinds in _SCALABLE
        for resources, verbs in (
            (kinds, _READ),
            ([f"{kind}/scale" for kind in kinds], [*_READ, "patch", "update"]),
        )
    ]
    return [*kept, *scalable]
