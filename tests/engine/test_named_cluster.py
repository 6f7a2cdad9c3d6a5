"""A cluster of the user's: reached before anything is changed, and never mixed up with another."""

import json
from pathlib import Path
from typing import Any

import pytest

from deploy.cluster import Cluster, choose, require_same
from deploy.errors import DeployError
from deploy.images import Registry


def kubeconfig(folder: Path, server: str) -> Path:
    path = folder / f"{len(server)}-kubeconfig"
    path.write_text(json.dumps(flat(server)))
    return path


def flat(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "prod",
    }


def test_a_cluster_that_does_not_answer_is_told_before_anything_is_changed(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    given = {"CONTEXT": "prod", "KUBECONFIG": str(path), "REGISTRY": "registry.example.com"}
    with pytest.raises(DeployError, match=r"cluster unreachable: context 'prod'.*Nothing was"):
        choose(given, print)


def test_stacks_are_never_moved_to_another_cluster(tmp_path: Path) -> None:
    first, second = "http://127.0.0.1:1", "http://127.0.0.1:22"
    cluster = Cluster(kubeconfig(tmp_path, second), "prod", Registry("registry.example.com"))
    require_same("", cluster)
    require_same(json.dumps(flat(second)), cluster)
    with pytest.raises(DeployError, match=r"run on http://127.0.0.1:1, which isn't the cluster"):
        require_same(json.dumps(flat(first)), cluster)
