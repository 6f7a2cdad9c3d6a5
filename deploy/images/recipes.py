"""Which images there are, and what each is made of."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from ..commands import run
from ..paths import REPOSITORY
from .layers import Layer, LayerStore, content_of, key_of, tree, write_tree
from .rootfs import SUITE, USER_ID, write_rootfs

_SITE_PACKAGES = "opt/site-packages"


@dataclass(frozen=True)
class Workshop:
    """What making an image needs from outside.

    Args:
        store: Where layers are kept.
        python: The interpreter whose pip fetches locked packages: Python 3.11, as in the image.
        logs: Gets what the programs print.
        tool: Finds a program of the tool chain by its name.
        refresh: Part of the key of Debian layers: a new value fetches newer packages.
    """

    store: LayerStore
    python: Path
    logs: Path
    tool: Callable[[str], Path]
    refresh: str = ""


class Part(Protocol):
    """A layer's recipe."""

    def layer(self, workshop: Workshop) -> Layer:
        """Make the layer, or take it from the store."""
        ...


@dataclass(frozen=True)
class Debian:
    """A root file system with these packages; about a minute the first time."""

    packages: tuple[str, ...]

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        code = (Path(__file__).parent / "rootfs.py").read_bytes()
        key = key_of("debian", SUITE, *self.packages, code, workshop.refresh)
        log = workshop.logs / f"rootfs-{self.packages[0]}.log"
        return workshop.store.get(key, lambda out: write_rootfs(out, self.packages, log))


@dataclass(frozen=True)
class PythonPackages:
    """Locked packages, from wheels only: no package's code runs while the image is made."""

    requirements: Path

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        key = key_of("python", self.requirements.read_bytes())
        return workshop.store.get(key, lambda out: self._write(out, workshop))

    def _write(self, out: BinaryIO, workshop: Workshop) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            site = Path(scratch) / "site"
            install = [
                *(workshop.python, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps"),
                *("--require-hashes", "--only-binary=:all:", "--target", site),
                *("--requirement", self.requirements),
            ]
            run(install, workshop.logs / f"pip-{self.requirements.stem}.log")
            _compile(workshop.python, site, workshop.logs)
            write_tree(out, tree(site, _SITE_PACKAGES, bytecode=True))


@dataclass(frozen=True)
class Code:
    """Folders and files of this repository below ``/app``."""

    paths: tuple[str, ...]

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        files: list[tuple[Path, str]] = []
        for name in self.paths:
            source = REPOSITORY / name
            files.append((source, f"app/{name}"))
            if source.is_dir():
                files += tree(source, f"app/{name}")
        key = key_of("code", content_of(files))
        return workshop.store.get(key, lambda out: write_tree(out, files))


@dataclass(frozen=True)
class Overlay:
    """Files that stand below ``deploy/images/rootfs/<name>``, as they stand there."""

    name: str

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        files = tree(Path(__file__).parent / "rootfs" / self.name, "")
        key = key_of("overlay", content_of(files))
        return workshop.store.get(key, lambda out: write_tree(out, files))


@dataclass(frozen=True)
class Program:
    """One static program of the tool chain, at the root of the file system."""

    name: str

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        files = [(workshop.tool(self.name), self.name)]
        key = key_of("program", content_of(files))
        return workshop.store.get(key, lambda out: write_tree(out, files))


@dataclass(frozen=True)
class Recipe:
    """An image: its layers from the bottom up, and how it runs.

    Args:
        parts: The layers.
        env: Environment of its containers.
        workdir: Where they start.
    """

    parts: tuple[Part, ...]
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = f"{USER_ID}:{USER_ID}"


def _compile(python: Path, site: Path, logs: Path) -> None:
    """Compile to bytecode that is never checked against its source: the image doesn't change."""
    command = [
        *(python, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"),
        *("-s", site, "-p", f"/{_SITE_PACKAGES}", site),
    ]
    run(command, logs / "compileall.log")


_PYTHON = Debian(("python3", "ca-certificates"))
_SERVICES = REPOSITORY / "services"
_PYTHON_ENV = {
    "PYTHONPATH": f"/app:/{_SITE_PACKAGES}",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PATH": f"/{_SITE_PACKAGES}/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the only folder that every pod of ours may write
}
_CODE = Code(("components/__init__.py", "components/domain", "services"))

RECIPES: dict[str, Recipe] = {
    "services": Recipe(
        (_PYTHON, PythonPackages(_SERVICES / "requirements.txt"), _CODE), _PYTHON_ENV, "/app"
    ),
    "llamacpp": Recipe(
        (_PYTHON, PythonPackages(_SERVICES / "requirements-llamacpp.txt"), _CODE),
        _PYTHON_ENV,
        "/app",
    ),
    "postgres": Recipe((Debian(("postgresql-15",)), Overlay("postgres"))),
    "redis": Recipe((Debian(("redis-server",)),)),
    "objectstore": Recipe((Program("versitygw"),)),
}
"""Every image of the platform, by the name that settings know it by."""
