"""Access to the cluster: a kubeconfig that stands alone, and a server that answers."""

import base64
import json
import socket
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components.kube import connection
from components.local import cluster
from tests import samples
from tests.harness import build


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_text("the authority")
    (tmp_path / "me.key").write_text("the key")
    path = tmp_path / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "lab",
                "contexts": [
                    {"name": "lab", "context": {"cluster": "one", "user": "me"}},
                    {"name": "other", "context": {"cluster": "two", "user": "me"}},
                ],
                "clusters": [
                    {
                        "name": "one",
                        "cluster": {
                            "server": "https://one:6443",
                            "certificate-authority": "ca.crt",
                        },
                    },
                    {"name": "two", "cluster": {"server": "https://two"}},
                ],
                "users": [
                    {"name": "me", "user": {"client-key": str(tmp_path / "me.key"), "token": "t"}}
                ],
            }
        )
    )
    return path


def test_a_kubeconfig_holds_what_its_files_held_and_one_context_only(kubeconfig: Path) -> None:
    loaded: dict[str, Any] = json.loads(cluster.load_kubeconfig(kubeconfig))
    assert [entry["name"] for entry in loaded["clusters"]] == ["one"]
    authority = loaded["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(authority) == b"the authority"
    user = loaded["users"][0]["user"]
    assert base64.b64decode(user["client-key-data"]) == b"the key"
    assert "client-key" not in user
    assert loaded["current-context"] == "lab"


def test_another_context_is_taken_when_named(kubeconfig: Path) -> None:
    loaded = cluster.load_kubeconfig(kubeconfig, "other")
    assert connection.server_of(loaded) == "https://two"
    assert connection.host_of(loaded) == "two"


def test_an_unknown_context_is_refused_with_the_known_ones(kubeconfig: Path) -> None:
    with pytest.raises(ValueError, match=r"no context 'prod'; it has: lab, other"):
        cluster.load_kubeconfig(kubeconfig, "prod")


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"can't read the kubeconfig .*nowhere"):
        cluster.load_kubeconfig(tmp_path / "nowhere")


def at(address: str) -> str:
    return json.dumps({"clusters": [{"name": "lab", "cluster": {"server": address}}]})


def test_a_cluster_that_answers_is_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        config = at(f"https://127.0.0.1:{server.getsockname()[1]}")
        assert connection.require_reachable(config) == config


def test_a_cluster_that_does_not_answer_stops_the_program_in_plain_words() -> None:
    with pytest.raises(pulumi.RunError) as refused:
        connection.require_reachable(at("https://127.0.0.1:1"))
    assert "cluster unreachable: https://127.0.0.1:1" in str(refused.value)
    assert "Nothing was changed" in str(refused.value)


def test_the_provider_updates_in_place_and_never_forgets_what_it_cannot_see() -> None:
    provider = build(lambda: connection.provider("lab", samples.KUBECONFIG)).one("kubernetes")
    assert provider.inputs["enableConfigMapMutable"] == "true"
    assert provider.inputs["enableSecretMutable"] == "true"
    assert provider.inputs["enableServerSideApply"] == "true"
    assert provider.inputs["deleteUnreachable"] == "false"
    assert "enablePatchForce" not in provider.inputs
    assert provider.secret_paths == ("kubeconfig",)
