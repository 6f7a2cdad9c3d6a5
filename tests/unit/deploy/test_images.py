"""Images: equal inputs give equal bytes, and only what belongs in them is in them."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import BinaryIO

import pytest

from deploy.images.layers import LayerStore, key_of, tree, write_tree
from deploy.images.recipes import (
    RECIPES,
    Code,
    Programs,
    PublicAuthorities,
    Recipe,
    Workshop,
)
from deploy.images.registry import _write_layout
from lab import toolchain


def workshop(folder: Path) -> Workshop:
    return Workshop(LayerStore(folder), folder, print, lambda name: folder / name)


def packed(folder: Path) -> bytes:
    out = io.BytesIO()
    write_tree(out, tree(folder, "app"))
    return out.getvalue()


def test_the_same_files_give_the_same_bytes_whatever_their_times_and_owners(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / "sub").mkdir(parents=True)
        (folder / "sub/b.py").write_text("b")
        (folder / "a.py").write_text("a")
    import os

    os.utime(tmp_path / "two/a.py", (1, 1))
    assert packed(tmp_path / "one") == packed(tmp_path / "two")


def test_another_content_gives_another_layer(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.py").write_text("a")
    before = packed(folder)
    (folder / "a.py").write_text("A")
    assert packed(folder) != before


def test_bytecode_of_a_run_never_gets_into_the_code_layer(tmp_path: Path) -> None:
    (tmp_path / "pkg/__pycache__").mkdir(parents=True)
    (tmp_path / "pkg/__pycache__/a.cpython-311.pyc").write_bytes(b"x")
    assert [name for _, name in tree(tmp_path, "app")] == ["app/pkg"]


def test_a_layer_is_made_once(tmp_path: Path) -> None:
    store, made = LayerStore(tmp_path), []

    def make(out: BinaryIO, _: Path) -> None:
        made.append(1)
        write_tree(out, [])

    first, second = store.get("k", make), store.get("k", make)
    assert first == second
    assert len(made) == 1


def test_a_layer_whose_making_failed_is_made_again(tmp_path: Path) -> None:
    store = LayerStore(tmp_path)

    def broken(out: BinaryIO, _: Path) -> None:
        out.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.get("k", broken)
    layer = store.get("k", lambda out, _: write_tree(out, []))
    plain = gzip.decompress(layer.path.read_bytes())
    assert layer.diff_id == f"sha256:{hashlib.sha256(plain).hexdigest()}"


def test_keys_tell_where_a_part_ends() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")


def test_the_layout_is_whole_and_every_digest_is_true(tmp_path: Path) -> None:
    (tmp_path / "layout").mkdir()
    layer = Code(("deploy/__init__.py",)).layer(workshop(tmp_path / "store"))
    recipe = Recipe((), env={"B": "2", "A": "1"}, workdir="/app")
    digest = _write_layout(tmp_path / "layout", recipe, [layer])
    blobs = tmp_path / "layout/blobs/sha256"
    for blob in blobs.iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    manifest = json.loads((blobs / digest.removeprefix("sha256:")).read_text())
    named = [manifest["config"]["digest"], *(each["digest"] for each in manifest["layers"])]
    assert {name.removeprefix("sha256:") for name in named} | {digest[7:]} == {
        blob.name for blob in blobs.iterdir()
    }
    config = json.loads((blobs / manifest["config"]["digest"][7:]).read_text())
    assert config["config"] == {"User": "65532:65532", "WorkingDir": "/app", "Env": ["A=1", "B=2"]}


def configuration(folder: Path, recipe: Recipe) -> dict[str, object]:
    """Return how an image says that it runs."""
    digest = _write_layout(folder, recipe, [])
    blobs = folder / "blobs/sha256"
    manifest = json.loads((blobs / digest.removeprefix("sha256:")).read_text())
    return json.loads((blobs / manifest["config"]["digest"][7:]).read_text())["config"]


def test_an_image_says_by_which_signal_it_stops(tmp_path: Path) -> None:
    assert configuration(tmp_path, Recipe((), stop_signal="SIGINT"))["StopSignal"] == "SIGINT"


def test_an_image_of_one_program_says_what_runs(tmp_path: Path) -> None:
    entrypoint = configuration(tmp_path, RECIPES["prometheus-adapter"])["Entrypoint"]
    assert entrypoint == ["/adapter"]


def test_postgres_is_stopped_without_waiting_for_its_clients() -> None:
    assert RECIPES["postgres"].stop_signal == "SIGINT"


def test_the_code_layer_holds_the_domain_but_no_component(tmp_path: Path) -> None:
    layer = RECIPES["services"].parts[-1].layer(workshop(tmp_path))
    with tarfile.open(layer.path) as archive:
        names = archive.getnames()
    assert "app/components/domain/registration.py" in names
    assert "app/services/gateway/__main__.py" in names
    assert not [name for name in names if name.startswith("app/components/serving")]


def test_programs_stand_at_the_root_and_can_be_run(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("keda", "keda-adapter"):
        (tools / name).write_text(name)
        (tools / name).chmod(0o755)
    shop = Workshop(LayerStore(tmp_path / "store"), tmp_path, print, lambda name: tools / name)
    layer = Programs(("keda", "keda-adapter")).layer(shop)
    with tarfile.open(layer.path) as archive:
        modes = {entry.name: entry.mode for entry in archive}
    assert modes == {"keda": 0o755, "keda-adapter": 0o755}


def test_a_program_that_changed_gives_another_layer(tmp_path: Path) -> None:
    def digest(content: str) -> str:
        (tmp_path / "keda").write_text(content)
        return Programs(("keda",)).layer(workshop(tmp_path)).digest

    assert digest("one") != digest("two")


def test_authorities_lie_where_go_programs_look_for_them(tmp_path: Path) -> None:
    layer = PublicAuthorities().layer(workshop(tmp_path))
    with tarfile.open(layer.path) as archive:
        file = archive.extractfile("etc/ssl/certs/ca-certificates.crt")
        assert file is not None
        assert b"BEGIN CERTIFICATE" in file.read()


def test_every_image_of_programs_is_made_of_tools_that_are_built() -> None:
    """And runs as nobody: no image of ours says another user."""
    for name, recipe in RECIPES.items():
        assert recipe.user == "65532:65532", name
        for part in recipe.parts:
            if isinstance(part, Programs):
                assert [toolchain.program(each).name for each in part.names] == list(part.names)
