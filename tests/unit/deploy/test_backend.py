"""What a killed engine leaves torn in a folder of state is mended, and nothing else is touched."""

import json
from pathlib import Path

import pytest

from deploy.backend import FileBackend


@pytest.mark.parametrize(
    ("address", "root"),
    [
        ("file:///srv/state", "/srv/state"),
        ("file:///srv/state?metadata=skip&no_tmp_dir=true", "/srv/state"),
        ("file://~", str(Path.home())),
        ("file://~/state", str(Path.home() / "state")),
    ],
)
def test_the_folder_behind_an_address(address: str, root: str) -> None:
    assert FileBackend.at(address) == FileBackend(Path(root))


@pytest.mark.parametrize("address", ["", "s3://bucket?region=eu-west-1", "https://api.pulumi.com"])
def test_other_backends_have_no_folder(address: str) -> None:
    assert FileBackend.at(address) is None


def test_an_own_address_leads_back_to_its_folder(tmp_path: Path) -> None:
    assert FileBackend.at(FileBackend(tmp_path).address) == FileBackend(tmp_path)


def test_only_torn_attributes_are_removed(tmp_path: Path) -> None:
    backend = FileBackend(tmp_path)
    state = backend.state("platform.local")
    state.parent.mkdir(parents=True)
    state.write_text("{}")
    torn = state.with_name(state.name + ".attrs")
    torn.write_text("")
    whole = state.with_name("other.json.attrs")
    whole.write_text(json.dumps({"md5": ""}))
    assert backend.mend() == [torn]
    assert not torn.exists()
    assert whole.exists()
    assert state.read_text() == "{}"
    assert backend.mend() == []
