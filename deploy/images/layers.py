"""Layers: a folder or a Debian root file system as one reproducible tar file, kept by content."""

import gzip
import hashlib
import json
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

EPOCH = 1_767_225_600
"""2026-01-01, the time of every file in our images: equal inputs give equal bytes."""

_CHUNK_BYTES = 1 << 20
_SCRATCH = "scratch-"


@dataclass(frozen=True)
class Layer:
    """A compressed layer on disk.

    Args:
        path: The compressed tar file.
        digest: SHA-256 of the compressed bytes, as the manifest names it.
        diff_id: SHA-256 of the plain tar, as the image's configuration names it.
        size_bytes: Length of the compressed file.
    """

    path: Path
    digest: str
    diff_id: str
    size_bytes: int


class LayerStore:
    """Keeps layers below a folder, one per key; a key is the hash of everything that goes in."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is made when it isn't there."""
        self.folder = folder

    def remove_unfinished(self) -> None:
        """Remove what a killed run left; only one process at a time may make layers."""
        for scratch in self.folder.glob(f"{_SCRATCH}*"):
            shutil.rmtree(scratch, ignore_errors=True)

    def scratch(self) -> tempfile.TemporaryDirectory[str]:
        """A folder for the time of making something."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=self.folder, prefix=_SCRATCH)

    def get(self, key: str, make: Callable[[BinaryIO, Path], None]) -> Layer:
        """Return the layer of ``key``; make it when it isn't there yet.

        Args:
            key: The hash of everything that goes in.
            make: Writes the plain tar; it may use the folder for what it needs meanwhile.
        """
        described = self.folder / f"{key}.json"
        if described.exists():
            facts = json.loads(described.read_text())
            return Layer(**{**facts, "path": Path(facts["path"])})
        with self.scratch() as name:
            scratch = Path(name)
            plain, packed = scratch / "layer.tar", scratch / "layer.tar.gz"
            with plain.open("wb") as target:
                make(target, scratch)
            layer = Layer(
                path=self.folder / f"{key}.tar.gz",
                diff_id=_digest(plain),
                digest=_compress(plain, packed),
                size_bytes=packed.stat().st_size,
            )
            packed.replace(layer.path)
        # The description comes last: a layer whose making was cut off is made again.
        partial = described.with_suffix(".partial")
        partial.write_text(json.dumps({**asdict(layer), "path": str(layer.path)}))
        partial.replace(described)
        return layer


def key_of(*parts: str | bytes) -> str:
    """Hash ``parts`` to a layer's key."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:24]


def write_tree(target: BinaryIO, files: Iterable[tuple[Path, str]]) -> None:
    """Write files and folders as a tar in sorted order, owned by root, all of the same time.

    Args:
        target: Gets the tar.
        files: Where each thing lies here and the name it has in the image.
    """
    with tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for source, name in sorted(files, key=lambda entry: entry[1]):
            entry = archive.gettarinfo(str(source), arcname=name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = EPOCH
            entry.mode = 0o755 if entry.isdir() or entry.mode & stat.S_IXUSR else 0o644
            if entry.isreg():
                with source.open("rb") as content:
                    archive.addfile(entry, content)
            else:
                archive.addfile(entry)


def tree(folder: Path, prefix: str, *, bytecode: bool = False) -> list[tuple[Path, str]]:
    """All below ``folder``, named below ``prefix``; what Python compiled only with ``bytecode``."""
    found: list[tuple[Path, str]] = []
    for current, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if bytecode or name != "__pycache__")
        at = Path(current)
        found += [
            (at / name, str(Path(prefix) / (at / name).relative_to(folder)))
            for name in sorted(folders + files)
        ]
    return found


def content_of(files: Iterable[tuple[Path, str]]) -> bytes:
    """Hash names, modes and contents of ``files``."""
    digest = hashlib.sha256()
    for source, name in sorted(files, key=lambda entry: entry[1]):
        executable = os.access(source, os.X_OK)
        digest.update(f"{name}\0{source.is_dir()}\0{executable}\0".encode())
        if source.is_file():
            digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.digest()


def _compress(plain: Path, packed: Path) -> str:
    with (
        plain.open("rb") as source,
        packed.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=3, mtime=0) as target,
    ):
        shutil.copyfileobj(source, target, _CHUNK_BYTES)
    return _digest(packed)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
