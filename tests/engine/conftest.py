"""Runs the real Pulumi engine on a file backend, with a stand-in for the cluster."""

import gc
import itertools
import json
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

from components.kube import generated_secret
from stacks import foundation, platform
from tests import samples

HERE = Path(__file__).parent
PROJECT = "llm-platform"
Program = Callable[[], None]


class Engine:
    """One file backend, one stand-in cluster, and the stacks on them."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(samples.KUBECONFIG.replace("10.88.0.1:6443", server))
        (folder / "state").mkdir()
        self._install_provider()

    def _install_provider(self) -> None:
        plugin = self._folder / "bin" / "pulumi-resource-kubernetes"
        plugin.parent.mkdir()
        plugin.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "stand_in_provider.py"}" "$@"\n'
        )
        plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)

    def environment(self, path: str) -> dict[str, str]:
        return {
            "PATH": f"{self._folder / 'bin'}:{path}",
            "PULUMI_HOME": str(self._folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self._folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "for tests only",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "false",
            "STAND_IN_CLUSTER": str(self._folder / "cluster.json"),
        }

    def stack(self, name: str, program: Program, **config: Any) -> automation.Stack:
        """Select a stack, made when it isn't there, with this program and these settings."""
        import os

        stack = automation.create_or_select_stack(
            name,
            project_name=PROJECT,
            program=program,
            opts=automation.LocalWorkspaceOptions(env_vars=self.environment(os.environ["PATH"])),
        )
        for key, value in config.items():
            text = value if isinstance(value, str) else json.dumps(value)
            stack.set_config(f"{PROJECT}:{key}", automation.ConfigValue(value=text))
        return stack

    def foundation(self) -> automation.Stack:
        return self.stack(
            "foundation.local",
            lambda: foundation.deploy("local").publish(),
            kubeconfig=str(self.kubeconfig),
            registry=samples.REGISTRY,
            images=samples.data_images().model_dump(),
        )

    def platform(self, **config: Any) -> automation.Stack:
        settings = {
            "images": {"services": samples.image("services"), "llamacpp": samples.image("llama")},
            "addons": samples.addon_settings(),
            "weights": {"gemma": samples.WEIGHTS},
            **config,
        }
        return self.stack("platform.local", lambda: platform.deploy("local").publish(), **settings)

    def state(self, stack: str) -> str:
        """Return a stack's state as the backend keeps it (the API's export decrypts it)."""
        return (self._folder / "state/.pulumi/stacks" / PROJECT / f"{stack}.json").read_text()

    @property
    def cluster(self) -> dict[str, Any]:
        path = self._folder / "cluster.json"
        return json.loads(path.read_text()) if path.exists() else {"objects": {}, "log": []}


@pytest.fixture(scope="session", autouse=True)
def _pulumi_is_there() -> None:
    if shutil.which("pulumi") is None:
        pytest.fail("`pulumi` isn't on PATH: `make test` puts the tool chain there")


@pytest.fixture(autouse=True)
def _failed_updates_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Drop what the Automation API leaves behind of a program that failed: an unclosed loop."""
    yield
    with monkeypatch.context() as quiet:
        quiet.setattr(sys, "unraisablehook", lambda _: None)
        gc.collect()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Something that takes connections, as an API server would."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def engine(tmp_path: Path, server: str) -> Engine:
    return Engine(tmp_path, server)


@pytest.fixture(scope="module")
def canaries() -> Iterator[list[str]]:
    """Make every generated secret recognisable, and another one each time."""
    made: list[str] = []
    numbers = itertools.count()

    def canary(_: int) -> str:
        made.append(f"canary-7f3a-{next(numbers):04}")
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generated_secret.secrets, "token_urlsafe", canary)
        yield made


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory, server: str, canaries: list[str]) -> Engine:
    """Both stacks of an environment, up."""
    assert canaries == []
    engine = Engine(tmp_path_factory.mktemp("engine"), server)
    engine.foundation().up()
    engine.platform().up()
    return engine
