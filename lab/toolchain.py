"""The tool chain: what is on PATH is used, what is missing is built once per machine."""

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .commands import alone, run, run_logged, run_quietly
from .errors import StepError
from .paths import cache_dir
from .progress import Report

SOURCES = Path(__file__).parent / "toolchain"
LANGUAGE_HOST = Path(__file__).parent / "language_host"
_KUBERNETES_VERSION = (
    "-X k8s.io/component-base/version.gitVersion=v1.34.4 "
    "-X k8s.io/component-base/version.gitMajor=1 "
    "-X k8s.io/component-base/version.gitMinor=34"
)
_PULUMI_VERSION = "-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.276.0"


@dataclass(frozen=True)
class ModuleFiles:
    """Files that a build embeds, and that a module carries somewhere else.

    Args:
        module: The module's path.
        folder: Where they are in it.
        names: Their names.
    """

    module: str
    folder: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Tool:
    """A program that is built from Go modules, if nothing else provides it.

    Args:
        name: The folder with its module files.
        binary: What the program is called.
        package: What is built: a package of a module, or the folder's own `main`.
        flags: More flags for the linker.
        embeds: Files that have to lie beside its `main`.
        on_path: Whether a usable one is installed; default: it is always built, because
            the cluster needs this very version.
    """

    name: str
    binary: str
    package: str = "."
    flags: str = ""
    embeds: ModuleFiles | None = None
    on_path: Callable[[], bool] = lambda: False


def _pulumi_works() -> bool:
    return bool(run_quietly(["pulumi", "version"]))


def _kubernetes_plugin_is_there() -> bool:
    if shutil.which("pulumi-resource-kubernetes"):
        return True
    plugins = json.loads(run_quietly(["pulumi", "plugin", "ls", "--json"]) or "[]")
    return any(each["name"] == "kubernetes" and each["kind"] == "resource" for each in plugins)


# In the order in which they are built: the cluster can start while the rest is made.
TOOLS = {
    tool.name: tool
    for tool in (
        Tool("kubernetes", "kube", flags=_KUBERNETES_VERSION),
        Tool("pause", "pause"),
        Tool("registry", "registry", "github.com/distribution/distribution/v3/cmd/registry"),
        Tool("coredns", "coredns", "github.com/coredns/coredns"),
        Tool("versitygw", "versitygw", "github.com/versity/versitygw/cmd/versitygw"),
        Tool(
            "pulumi",
            "pulumi",
            "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
            flags=_PULUMI_VERSION,
            on_path=_pulumi_works,
        ),
        Tool(
            "provider-kubernetes",
            "pulumi-resource-kubernetes",
            flags="-X main.version=v4.26.0",
            embeds=ModuleFiles(
                "github.com/pulumi/pulumi-kubernetes/provider/v4",
                "cmd/pulumi-resource-kubernetes",
                ("schema.json", "terraform-mapping.json"),
            ),
            on_path=_kubernetes_plugin_is_there,
        ),
    )
}
CLUSTER_TOOLS = ("kubernetes", "pause", "registry", "coredns")


def build_key(tool: Tool, files: Mapping[str, bytes], machine: str) -> str:
    """Name a build by everything that goes into it.

    Args:
        tool: What is built.
        files: Its module and Go files, by name.
        machine: The processor.
    """
    digest = hashlib.sha256()
    recipe = [tool.package, tool.binary, tool.flags, repr(tool.embeds), machine]
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
    wanted = [TOOLS[name] for name in TOOLS if name in set(names)]
    missing = [each for each in wanted if not is_built(each.name) and not each.on_path()]
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
            go_build(tool, temporary / "bin" / tool.binary),
            log,
            report,
            cwd=source,
            env=_go_environment(),
            keep_open=[lock],
        )
        shutil.rmtree(source)
        temporary.chmod(0o755)
        shutil.rmtree(home.parent, ignore_errors=True)
        temporary.rename(home.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    report(f"{step}: done")


def go_build(tool: Tool, target: Path) -> list[str]:
    """Write the command that builds a tool in its folder."""
    flags = f"-s -w {tool.flags}".strip()
    return ["go", "build", "-v", "-trimpath", "-ldflags", flags, "-o", str(target), tool.package]


def _copy_embeds(embeds: ModuleFiles, source: Path, log: Path, report: Report) -> None:
    step = f"downloading {embeds.module}"
    run_logged(
        step, ["go", "mod", "download", embeds.module], log, report, cwd=source,
        env=_go_environment(),
    )  # fmt: skip
    found = run(
        step,
        ["go", "list", "-C", source, "-m", "-f", "{{.Dir}}", embeds.module],
        env=_go_environment(),
    )
    for name in embeds.names:
        shutil.copyfile(Path(found.strip(), embeds.folder, name), source / name)


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


def path_entries() -> list[Path]:
    """List the folders to put before PATH: built tools that no usable program provides."""
    entries = [
        home_of(tool)
        for tool in (TOOLS["versitygw"], TOOLS["pulumi"], TOOLS["provider-kubernetes"])
        if is_built(tool.name) and not tool.on_path()
    ]
    if is_built("kubernetes") and not run_quietly(["kubectl", "version", "--client"]):
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
    """Say of each tool where it comes from."""
    lines: list[str] = []
    for name in names:
        tool = TOOLS[name]
        if tool.on_path():
            state = f"installed ({shutil.which(tool.binary) or 'a plugin of pulumi'})"
        else:
            state = str(binary_of(name)) if is_built(name) else "missing: would be built"
        lines.append(f"{tool.binary:28} {state}")
    return lines
