"""The real engine on a folder that a kill left torn: it stops at every reading, until mended."""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.backend import PROJECT, FileBackend

STACK = "torn.local"
Pulumi = subprocess.CompletedProcess[str]


class Cli:
    """The CLI on one backend."""

    def __init__(self, folder: Path, address: str) -> None:
        self._project = folder / "project"
        self._project.mkdir()
        (self._project / "Pulumi.yaml").write_text(f"name: {PROJECT}\nruntime: python\n")
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": address,
            "PULUMI_CONFIG_PASSPHRASE": "for tests only",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }

    def __call__(self, *arguments: str) -> Pulumi:
        return subprocess.run(
            ["pulumi", "--non-interactive", *arguments],
            cwd=self._project,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def backend(tmp_path: Path) -> FileBackend:
    (tmp_path / "state").mkdir()
    return FileBackend(tmp_path / "state")


def test_torn_attributes_stop_the_engine_until_they_are_mended(
    backend: FileBackend, tmp_path: Path
) -> None:
    pulumi = Cli(tmp_path, f"file://{backend.root}")
    assert pulumi("stack", "init", STACK).returncode == 0
    attributes = list(backend.root.glob(".pulumi/**/*.attrs"))
    assert attributes, "the engine writes no attributes any more: mend() can go"
    for file in attributes:
        file.write_text("")
    assert "EOF" in pulumi("stack", "select", STACK).stderr
    assert sorted(backend.mend()) == sorted(attributes)
    assert pulumi("stack", "select", STACK).returncode == 0
    assert STACK in pulumi("stack", "ls", "--json").stdout


def test_our_own_address_has_the_engine_write_none(backend: FileBackend, tmp_path: Path) -> None:
    pulumi = Cli(tmp_path, backend.address)
    assert pulumi("stack", "init", STACK).returncode == 0
    assert backend.state(STACK).exists()
    assert list(backend.root.glob(".pulumi/**/*.attrs")) == []
