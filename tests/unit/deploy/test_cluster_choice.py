"""A cluster that can't be used is refused before anything is changed, naming the variable."""

from pathlib import Path

import pytest

from deploy.cluster import choose
from deploy.errors import DeployError


def test_a_named_cluster_needs_a_registry(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    given = {"CONTEXT": "prod", "KUBECONFIG": str(tmp_path / "config")}
    with pytest.raises(DeployError, match="REGISTRY is missing"):
        choose(given, print)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match=r"KUBECONFIG: there is no file .*/nowhere"):
        choose({"CONTEXT": "prod", "KUBECONFIG": str(tmp_path / "nowhere")}, print)
