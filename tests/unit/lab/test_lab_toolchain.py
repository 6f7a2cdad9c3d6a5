"""What is built, under which name, and what is left alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab import toolchain
from lab.errors import StepError
from lab.toolchain import TOOLS, Tool, build_key
from lab.tools import Kustomization

KEDA = TOOLS["keda"]
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


# Writes what follows `-o`, as `go build` does: a file, or a folder's file for each package; says
# where a module is; and makes a build cache.
GO = """mkdir -p "$GOCACHE" "$GOMODCACHE"
if [ "$1" = list ]; then for word; do :; done; echo "$GOMODCACHE/$word"; fi
[ "$1" = build ] || exit 0
while [ "$1" != "-o" ]; do shift; done
target="$2"
case "$target" in
*/) mkdir -p "$target"; shift 2
    for package; do echo "$package" > "$target$(basename "$package")"; done ;;
*) mkdir -p "$(dirname "$target")"; echo binary > "$target" ;;
esac
"""
KUBECTL = 'echo "what $1 makes of $(basename "$2")"'


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
        (replace(TOOL, tags="small"), FILES, "x86_64"),
        (replace(TOOL, also=(("more", "example.com/more"),)), FILES, "x86_64"),
        (replace(TOOL, manifests=Kustomization("m", "config", "a.yaml")), FILES, "x86_64"),
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


def test_programs_that_are_built_together_get_their_names(
    bare_machine: Path, reports: list[str]
) -> None:
    install(bare_machine, "go", GO)
    install(bare_machine, "kubectl", KUBECTL)
    toolchain.ensure(["keda"], reports.append)
    built = {path.name: path.read_text().strip() for path in toolchain.home_of(KEDA).iterdir()}
    assert built == {
        "keda": "github.com/kedacore/keda/v2/cmd/operator",
        "keda-adapter": "github.com/kedacore/keda/v2/cmd/adapter",
        "keda-admission-webhooks": "github.com/kedacore/keda/v2/cmd/webhooks",
    }
    assert toolchain.program("keda-adapter").exists()


def test_manifests_are_rendered_beside_the_programs(bare_machine: Path, reports: list[str]) -> None:
    install(bare_machine, "go", GO)
    install(bare_machine, "kubectl", KUBECTL)
    toolchain.ensure(["keda"], reports.append)
    assert toolchain.manifests_of("keda").read_text() == "what kustomize makes of default\n"
    assert not any("kube" in line for line in reports), "an installed kubectl is enough"


def test_without_a_kubectl_the_built_one_renders_and_is_built_before(
    bare_machine: Path, reports: list[str]
) -> None:
    # What the stand-in built is no program, so rendering must fail; that it tries is what counts.
    install(bare_machine, "go", GO)
    install(bare_machine, "kubectl", "exit 1")
    with pytest.raises(StepError, match=r"rendering keda\.yaml") as failure:
        toolchain.ensure(["keda"], reports.append)
    assert "building kube (1 of 2): done" in reports
    kubernetes = toolchain.home_of(TOOLS["kubernetes"]).parent
    assert failure.value.reason.startswith(f"cannot run {kubernetes}/kubectl/kubectl")
    assert not toolchain.is_built("keda")


def test_a_tool_without_manifests_says_so() -> None:
    with pytest.raises(ValueError, match="registry has no manifests"):
        toolchain.manifests_of("registry")


def test_every_program_is_known_by_one_name() -> None:
    names = [name for tool in TOOLS.values() for name in tool.programs]
    assert len(names) == len(set(names))


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
    install(bare_machine, "kubectl", KUBECTL)
    caches = toolchain.cache_dir() / "build"
    toolchain.ensure(["kubernetes", "pause", "registry", "coredns"], reports.append)
    assert (caches / "objects").is_dir()
    toolchain.ensure(TOOLS, reports.append)
    assert not caches.exists()
