"""Which images there are, and what each is made of."""

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import certifi

from lab.commands import run_logged
from lab.progress import Report

from ..paths import REPOSITORY
from .layers import Layer, LayerStore, content_of, key_of, tree, write_tree
from .rootfs import SUITE, USER_ID, write_rootfs

IMAGE_PYTHON = "3.11"
"""Debian 12's."""

_SITE_PACKAGES = "opt/site-packages"


@dataclass(frozen=True)
class Workshop:
    """What making an image needs from outside.

    Args:
        store: Where layers are kept.
        logs: Gets what the programs print.
        report: Takes a line of progress.
        tool: Finds a program of the tool chain by its name.
        refresh: Part of the key of Debian layers: a new value fetches newer packages.
    """

    store: LayerStore
    logs: Path
    report: Report
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

        def make(out: BinaryIO, scratch: Path) -> None:
            workshop.report(f"making a Debian root file system with {self.packages[0]}, about 90 s")
            write_rootfs(out, self.packages, scratch, log)

        return workshop.store.get(key, make)


@dataclass(frozen=True)
class PythonPackages:
    """Locked packages, from wheels only: no package's code runs while the image is made."""

    requirements: Path

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        key = key_of("python", IMAGE_PYTHON, self.requirements.read_bytes())
        return workshop.store.get(key, lambda out, scratch: self._write(out, scratch, workshop))

    def _write(self, out: BinaryIO, scratch: Path, workshop: Workshop) -> None:
        site = scratch / "site"
        install = [
            *("uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes"),
            *("--python-version", IMAGE_PYTHON, "--python-platform", _platform()),
            *("--only-binary", ":all:", "--target", site, "--requirement", self.requirements),
        ]
        log = workshop.logs / f"packages-{self.requirements.stem}.log"
        run_logged(f"installing {self.requirements.name}", install, log, workshop.report)
        _compile(site, workshop)
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
        return workshop.store.get(key, lambda out, _: write_tree(out, files))


@dataclass(frozen=True)
class Overlay:
    """Files that stand below ``deploy/images/rootfs/<name>``, as they stand there."""

    name: str

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        files = tree(Path(__file__).parent / "rootfs" / self.name, "")
        key = key_of("overlay", content_of(files))
        return workshop.store.get(key, lambda out, _: write_tree(out, files))


@dataclass(frozen=True)
class Programs:
    """Static programs of the tool chain, at the root of the file system."""

    names: tuple[str, ...]

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        files = [(workshop.tool(name), name) for name in self.names]
        key = key_of("program", content_of(files))
        return workshop.store.get(key, lambda out, _: write_tree(out, files))


@dataclass(frozen=True)
class PublicAuthorities:
    """The certificate authorities of the public internet, where Go programs look for them.

    They come from a locked package and not from this machine, which may trust more than those.
    """

    def layer(self, workshop: Workshop) -> Layer:
        """Make it, or take it from the store."""
        files = [(Path(certifi.where()), "etc/ssl/certs/ca-certificates.crt")]
        key = key_of("authorities", content_of(files))
        return workshop.store.get(key, lambda out, _: write_tree(out, files))


@dataclass(frozen=True)
class Recipe:
    """An image: its layers from the bottom up, and how it runs.

    Args:
        parts: The layers.
        env: Environment of its containers.
        workdir: Where they start.
        stop_signal: What asks them to stop; SIGTERM when empty.
        user: Who they run as.
        entrypoint: What they run; empty where each container says it itself.
    """

    parts: tuple[Part, ...]
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    stop_signal: str = ""
    user: str = f"{USER_ID}:{USER_ID}"
    entrypoint: tuple[str, ...] = ()


def _compile(site: Path, workshop: Workshop) -> None:
    """Compile to bytecode that is never checked against its source: the image doesn't change.

    Left out where another Python runs than the image's: starting is a second slower then.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" != IMAGE_PYTHON:
        return
    command = [
        *(
            sys.executable,
            "-m",
            "compileall",
            "-q",
            "-j",
            "0",
            "-s",
            site,
            "-p",
            f"/{_SITE_PACKAGES}",
        ),
        *("--invalidation-mode", "unchecked-hash", site),
    ]
    log = workshop.logs / "compileall.log"
    run_logged("compiling Python packages", command, log, workshop.report)


def _platform() -> str:
    # Debian 12 has glibc 2.36.
    return f"{platform.machine()}-manylinux_2_36"


def _one_program(name: str) -> Recipe:
    return Recipe((Programs((name,)),), entrypoint=(f"/{name}",))


# One root file system for both, with what llama.cpp links: nodes hold it once.
_PYTHON = Debian(("python3", "ca-certificates", "libgomp1", "tini"))
_SERVICES = REPOSITORY / "services"
_PACKAGES = PythonPackages(_SERVICES / "requirements-services.txt")
_PYTHON_ENV = {
    "PYTHONPATH": f"/app:/{_SITE_PACKAGES}",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PATH": f"/{_SITE_PACKAGES}/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the only folder that every pod of ours may write
}
_CODE = Code(("components/__init__.py", "components/domain", "services"))

RECIPES: dict[str, Recipe] = {
    "services": Recipe((_PYTHON, _PACKAGES, _CODE), _PYTHON_ENV, "/app"),
    # The engine's packages lie on the services': most of both images is the same on a node.
    "llamacpp": Recipe(
        (_PYTHON, _PACKAGES, PythonPackages(_SERVICES / "requirements-llamacpp.txt"), _CODE),
        _PYTHON_ENV,
        "/app",
    ),
    # SIGTERM would let Postgres wait for its clients, whose pools never leave; SIGINT is its fast,
    # still orderly shutdown.
    "postgres": Recipe((Debian(("postgresql-15",)), Overlay("postgres")), stop_signal="SIGINT"),
    "redis": Recipe((Debian(("redis-server",)),)),
    "objectstore": Recipe((Programs(("versitygw",)),)),
    # One image for all three: they are mostly the same libraries' code. Its scalers ask the
    # queues and metrics of clouds too.
    "keda": Recipe(
        (PublicAuthorities(), Programs(("keda", "keda-adapter", "keda-admission-webhooks")))
    ),
    "prometheus": _one_program("prometheus"),
    "prometheus-adapter": _one_program("adapter"),
    "metrics-server": _one_program("metrics-server"),
}
"""Every image of the platform, by the name that settings know it by."""
