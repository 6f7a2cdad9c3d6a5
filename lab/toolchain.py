"""The tool chain: what is on PATH is used, what is missing is built once per machine."""

import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .commands import alone, run, run_logged, write
from .errors import StepError
from .paths import cache_dir
from .progress import Report
from .tools import CLUSTER_TOOLS, TOOLS, Kustomization, ModuleFiles, Tool, kubectl_works

SOURCES = Path(__file__).parent / "toolchain"
LANGUAGE_HOST = Path(__file__).parent / "language_host"

__all__ = ["CLUSTER_TOOLS", "TOOLS", "Tool"]


def build_key(tool: Tool, files: Mapping[str, bytes], machine: str) -> str:
    """Name a build by everything that goes into it.

    Args:
        tool: What is built.
        files: Its module and Go files, by name.
        machine: The processor.
    """
    digest = hashlib.sha256()
    recipe = [tool.package, tool.binary, tool.flags, repr(tool.embeds), machine]
    # Only what a tool has of these: the others keep their names, and needn't be built again.
    recipe += [repr(each) for each in (tool.tags, tool.also, tool.manifests) if each]
    for name, content in [
        *((f"recipe {number}", text.encode()) for number, text in enumerate(recipe)),
        *sorted(files.items()),
    ]:
        # With its length, so that nothing can move from one field into the next.
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _sources(tool: Tool) -> dict[str, bytes]:
    folder = SOURCES / tool.name
    files = [*folder.glob("*.go"), folder / "go.mod", folder / "go.sum"]
    return {path.name: path.read_bytes() for path in files if path.exists()}


def home_of(tool: Tool) -> Path:
    """Return the cache's folder for this tool's binary, whether or not it was built."""
    key = build_key(tool, _sources(tool), platform.machine())
    return cache_dir() / "toolchain" / f"{tool.name}-{key}" / "bin"


def binary_of(name: str) -> Path:
    """Return where the built binary of a tool is, or will be."""
    return home_of(TOOLS[name]) / TOOLS[name].binary


def program(name: str) -> Path:
    """Return where a built program is, or will be, by what it is called."""
    tool = next(each for each in TOOLS.values() if name in each.programs)
    return home_of(tool) / name


def manifests_of(name: str) -> Path:
    """Return where the rendered manifests of a tool are, or will be.

    Args:
        name: A key of `TOOLS` whose tool has manifests.
    """
    tool = TOOLS[name]
    if tool.manifests is None:
        raise ValueError(f"{name} has no manifests")
    return _manifests(tool.manifests, home_of(tool).parent)


def _manifests(kustomization: Kustomization, folder: Path) -> Path:
    return folder / "manifests" / kustomization.name


def is_built(name: str) -> bool:
    """Tell whether the cache has this tool."""
    return binary_of(name).exists()


def ensure(names: Iterable[str], report: Report) -> None:
    """Provide these tools: leave what PATH has, build what is missing.

    Args:
        names: Keys of `TOOLS`.
        report: Takes lines of progress.

    Raises:
        StepError: A build failed, or Go is missing.
    """
    missing = _missing(set(names))
    if missing:
        _require_go()
        root = cache_dir() / "toolchain"
        with alone(root / "lock", report, "waiting for another build of the tool chain") as lock:
            _remove_unfinished(root)
            for number, tool in enumerate(missing, 1):
                if not is_built(tool.name):
                    _build(tool, f"{number} of {len(missing)}", report, lock)
    if all(is_built(each.name) or each.on_path() for each in TOOLS.values()):
        _remove_build_caches(report)


def _missing(names: set[str]) -> list[Tool]:
    """List what is to be built: these, and a `kubectl` when something of theirs is rendered."""
    wanted = {
        tool.name
        for tool in TOOLS.values()
        if tool.name in names and not is_built(tool.name) and not tool.on_path()
    }
    renders = any(TOOLS[name].manifests for name in wanted)
    if renders and not is_built("kubernetes") and not kubectl_works():
        wanted.add("kubernetes")
    return [tool for tool in TOOLS.values() if tool.name in wanted]


def _require_go() -> None:
    if not shutil.which("go"):
        raise StepError(
            "building the tool chain",
            "there is no `go` on PATH; install Go 1.26 or newer (https://go.dev/dl), "
            "or install the tools themselves: pulumi, and a cluster with its kubeconfig",
        )


def _remove_unfinished(root: Path) -> None:
    for folder in root.glob(".building-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _build(tool: Tool, position: str, report: Report, lock: int) -> None:
    home = home_of(tool)
    root = home.parent.parent
    log = cache_dir() / "logs" / f"build-{tool.name}.log"
    step = f"building {tool.binary} ({position})"
    report(f"{step}: it is neither installed nor in {root}; log: {log}")
    temporary = Path(tempfile.mkdtemp(dir=root, prefix=f".building-{tool.name}-"))
    try:
        source = temporary / "source"
        shutil.copytree(SOURCES / tool.name, source)
        if tool.embeds:
            _copy_embeds(tool.embeds, source, log, report)
        # The build inherits the lock: if we are killed, the next builder waits for it.
        run_logged(
            step,
            go_build(tool, temporary / "bin"),
            log,
            report,
            cwd=source,
            env=_go_environment(),
            keep_open=[lock],
        )
        _name_programs(tool, temporary / "bin")
        if tool.manifests:
            _render(tool.manifests, source, temporary, log, report)
        shutil.rmtree(source)
        temporary.chmod(0o755)
        shutil.rmtree(home.parent, ignore_errors=True)
        temporary.rename(home.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    report(f"{step}: done")


def go_build(tool: Tool, folder: Path) -> list[str]:
    """Write the command that builds a tool's programs into a folder.

    Several are built by one command, so that what they share is compiled once.
    """
    # Go names several programs itself, and wants to be told by a slash that this is a folder.
    target = f"{folder}/" if tool.also else str(folder / tool.binary)
    tags = ["-tags", tool.tags] if tool.tags else []
    linker = ["-ldflags", f"-s -w {tool.flags}".strip()]
    packages = tool.programs.values()
    return ["go", "build", "-v", "-trimpath", *tags, *linker, "-o", target, *packages]


def _name_programs(tool: Tool, folder: Path) -> None:
    """Give what was built together the names that we want instead of those of its packages."""
    if tool.also:
        for name, package in tool.programs.items():
            (folder / package.rpartition("/")[2]).rename(folder / name)


def _copy_embeds(embeds: ModuleFiles, source: Path, log: Path, report: Report) -> None:
    module = _module(embeds.module, source, log, report)
    for name in embeds.names:
        shutil.copyfile(module / embeds.folder / name, source / name)


def _render(
    kustomization: Kustomization, source: Path, folder: Path, log: Path, report: Report
) -> None:
    module = _module(kustomization.module, source, log, report)
    kubectl = "kubectl" if kubectl_works() else _kubectl_folder() / "kubectl"
    command = [kubectl, "kustomize", module / kustomization.folder]
    rendered = run(f"rendering {kustomization.name}", command)
    write(_manifests(kustomization, folder), rendered)


def _module(path: str, source: Path, log: Path, report: Report) -> Path:
    """Download a module in the version that the module files of `source` say."""
    step = f"downloading {path}"
    download = ["go", "mod", "download", path]
    run_logged(step, download, log, report, cwd=source, env=_go_environment())
    folder = ["go", "list", "-C", source, "-m", "-f", "{{.Dir}}", path]
    return Path(run(step, folder, env=_go_environment()).strip())


def _go_caches() -> dict[str, str]:
    build = cache_dir() / "build"
    return {
        "GOMODCACHE": os.environ.get("LLM_PLATFORM_GOMODCACHE") or str(build / "modules"),
        "GOCACHE": os.environ.get("LLM_PLATFORM_GOCACHE") or str(build / "objects"),
    }


def _go_environment() -> dict[str, str]:
    ours = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -modcacherw", "GOWORK": "off"}
    return {**os.environ, **ours, **_go_caches()}


def _remove_build_caches(report: Report) -> None:
    build = cache_dir() / "build"
    if build.exists():
        report(f"everything is built: removing the build caches in {build}")
        shutil.rmtree(build, ignore_errors=True)


# What people and tests call by name; the rest runs in the cluster or below it.
_FOR_PEOPLE = ("versitygw", "prometheus", "pulumi", "provider-kubernetes")


def path_entries() -> list[Path]:
    """List the folders to put before PATH: built tools that no usable program provides."""
    entries = [
        home_of(tool)
        for tool in map(TOOLS.__getitem__, _FOR_PEOPLE)
        if is_built(tool.name) and not tool.on_path()
    ]
    if is_built("kubernetes") and not kubectl_works():
        entries.append(_kubectl_folder())
    if not shutil.which("pulumi-language-python"):
        entries.append(LANGUAGE_HOST)
    return entries


def _kubectl_folder() -> Path:
    """Make a folder with the built `kubectl` in it, which is one of the faces of `kube`."""
    folder = home_of(TOOLS["kubernetes"]).parent / "kubectl"
    folder.mkdir(exist_ok=True)
    link = folder / "kubectl"
    if not link.is_symlink():
        link.symlink_to(binary_of("kubernetes"))
    return folder


def describe(names: Sequence[str] = tuple(TOOLS)) -> list[str]:
    """Say of each program where it comes from."""
    lines: list[str] = []
    for tool in map(TOOLS.__getitem__, names):
        installed = tool.on_path()
        for name in tool.programs:
            if installed:
                state = f"installed ({shutil.which(name) or 'a plugin of pulumi'})"
            else:
                built = is_built(tool.name)
                state = str(home_of(tool) / name) if built else "missing: would be built"
            lines.append(f"{name:28} {state}")
    return lines
