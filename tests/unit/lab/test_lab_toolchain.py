"""What is built, under which name, and what is left alone."""

from pathlib import Path

import pytest

from lab import toolchain
from lab.errors import StepError
from lab.toolchain import TOOLS, Tool, build_key

TOOL = Tool("demo", "demo", "example.com/demo", flags="-X a=b")
FILES = {"go.mod": b"module demo", "go.sum": b"sums"}


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH with only the system's basic programs and a stand-in for Go."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.delenv("LLM_PLATFORM_GOCACHE", raising=False)
    monkeypatch.delenv("LLM_PLATFORM_GOMODCACHE", raising=False)
    return programs


def install(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


# Writes what follows `-o`, as `go build` does, and a build cache.
GO = """mkdir -p "$GOCACHE" "$GOMODCACHE"
while [ "$1" != "-o" ]; do shift; done
mkdir -p "$(dirname "$2")"
echo binary > "$2"
"""


def test_the_same_recipe_has_the_same_key() -> None:
    assert build_key(TOOL, FILES, "x86_64") == build_key(
        TOOL, dict(reversed(FILES.items())), "x86_64"
    )


@pytest.mark.parametrize(
    ("tool", "files", "machine"),
    [
        (Tool("demo", "demo", "example.com/demo", flags="-X a=c"), FILES, "x86_64"),
        (Tool("demo", "demo", "example.com/other", flags="-X a=b"), FILES, "x86_64"),
        (TOOL, {**FILES, "go.sum": b"other sums"}, "x86_64"),
        (TOOL, {**FILES, "main.go": b"package main"}, "x86_64"),
        (TOOL, {"go.mod": b"module demosums", "go.sum": b""}, "x86_64"),
        (TOOL, FILES, "aarch64"),
    ],
)
def test_any_other_recipe_has_another_key(
    tool: Tool, files: dict[str, bytes], machine: str
) -> None:
    assert build_key(tool, files, machine) != build_key(TOOL, FILES, "x86_64")


def test_every_tool_has_its_module_files() -> None:
    for tool in TOOLS.values():
        assert (toolchain.SOURCES / tool.name / "go.mod").exists(), tool.name


def test_kubernetes_is_built_first_because_the_cluster_waits_for_it() -> None:
    assert next(iter(TOOLS)) == "kubernetes"


def test_a_build_ends_in_the_cache_and_is_not_repeated(
    bare_machine: Path, reports: list[str]
) -> None:
    install(bare_machine, "go", GO)
    toolchain.ensure(["registry"], reports.append)
    assert toolchain.binary_of("registry").read_text() == "binary\n"
    install(bare_machine, "go", "exit 1")
    toolchain.ensure(["registry"], reports.append)
    assert sum("done" in line for line in reports) == 1


def test_a_failed_build_says_which_why_and_where_and_leaves_nothing(
    bare_machine: Path, reports: list[str]
) -> None:
    install(bare_machine, "go", "echo undefined: thing >&2; exit 2")
    with pytest.raises(StepError) as failure:
        toolchain.ensure(["registry"], reports.append)
    assert "building registry" in str(failure.value)
    assert "undefined: thing" in str(failure.value)
    assert failure.value.log is not None
    assert "undefined: thing" in failure.value.log.read_text()
    root = toolchain.home_of(TOOLS["registry"]).parent.parent
    assert [path.name for path in root.iterdir()] == ["lock"]


def test_what_a_killed_build_left_is_removed(bare_machine: Path, reports: list[str]) -> None:
    install(bare_machine, "go", GO)
    root = toolchain.home_of(TOOLS["registry"]).parent.parent
    (root / ".building-registry-killed" / "bin").mkdir(parents=True)
    toolchain.ensure(["registry"], reports.append)
    assert not list(root.glob(".building-*"))


def test_without_go_the_error_says_what_to_install(
    bare_machine: Path, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(bare_machine))
    with pytest.raises(StepError, match=r"install Go 1\.26"):
        toolchain.ensure(["registry"], reports.append)


def test_an_installed_pulumi_with_its_plugin_is_used(
    bare_machine: Path, reports: list[str]
) -> None:
    plugins = '[{"name": "kubernetes", "kind": "resource", "version": "4.34.2"}]'
    install(bare_machine, "pulumi", f"""[ "$1" = plugin ] && echo '{plugins}' || echo v3.276.0""")
    toolchain.ensure(["pulumi", "provider-kubernetes"], reports.append)
    assert reports == []


def test_an_installed_pulumi_that_does_not_run_is_not_used(bare_machine: Path) -> None:
    install(bare_machine, "pulumi", "exit 1")
    assert not TOOLS["pulumi"].on_path()


def test_the_build_caches_go_when_everything_is_built(
    bare_machine: Path, reports: list[str]
) -> None:
    plugins = '[{"name": "kubernetes", "kind": "resource", "version": "4.34.2"}]'
    install(bare_machine, "pulumi", f"""[ "$1" = plugin ] && echo '{plugins}' || echo v3.276.0""")
    install(bare_machine, "go", GO)
    caches = toolchain.cache_dir() / "build"
    toolchain.ensure(["kubernetes", "pause", "registry", "coredns"], reports.append)
    assert (caches / "objects").is_dir()
    toolchain.ensure(TOOLS, reports.append)
    assert not caches.exists()
