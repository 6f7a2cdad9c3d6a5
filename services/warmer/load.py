"""Loading one version of weights into a directory, whole or not at all."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from .address import WeightsAddress
from .errors import BadContent, BadManifest
from .manifest import NAME, READY, FileEntry, Manifest, sha256_of
from .progress import Progress
from .settings import WarmerSettings
from .store import Store

_PARTIAL = ".partial"
_LOCK = ".lock"


@dataclass(frozen=True)
class _Piece:
    entry: FileEntry
    start: int
    end: int


class Loader:
    """Brings a version's files into a directory.

    The files are gathered in a temporary directory beside the target. A range that is there is
    marked in a file of its own, so a killed load goes on where it was. Checksums are compared
    before a file moves to its place, and the READY marker, written last, names the version.
    """

    def __init__(
        self, store: Store, settings: WarmerSettings, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._store = store
        self._settings = settings
        self._log = log

    def load(self, address: WeightsAddress, directory: Path) -> None:
        """Load ``address`` into ``directory``; nothing is fetched that is there already.

        Raises:
            BadManifest: there is no manifest, or none that can be trusted.
            BadContent: the bucket's bytes aren't those of the manifest.
            StoreAway: the bucket can't be read.
        """
        directory.mkdir(parents=True, exist_ok=True)
        with _only_one(directory / _LOCK):
            document = self._store.read(address, NAME)
            if document is None:
                raise BadManifest(f"{address} has no {NAME}: publish the weights first")
            manifest = Manifest.from_bytes(document, str(address))
            if _is_ready(directory, manifest):
                self._log.info("weights are there already", source=str(address))
                return
            (directory / READY).unlink(missing_ok=True)
            self._bring(address, directory, manifest)
            _write_atomically(directory / READY, manifest.to_bytes())
        self._log.info("weights are ready", source=str(address), bytes=manifest.total_bytes)

    def _bring(self, address: WeightsAddress, directory: Path, manifest: Manifest) -> None:
        partial = directory / _PARTIAL
        missing = [entry for entry in manifest.files if not _is_there(directory, entry)]
        pieces = [
            piece
            for entry in missing
            for piece in self._pieces(entry)
            if not _mark(partial, piece).exists()
        ]
        have = manifest.total_bytes - sum(piece.end - piece.start for piece in pieces)
        progress = Progress(
            "loading weights", manifest.total_bytes, self._settings.progress_seconds, self._log
        )
        progress.add(have)
        for entry in missing:
            _make_room(partial / "files" / entry.path, entry.size)
        with ThreadPoolExecutor(self._settings.transfers) as threads:
            jobs = [
                threads.submit(self._fetch, address, partial, piece, progress) for piece in pieces
            ]
            try:
                for job in as_completed(jobs):
                    job.result()
            except BaseException:
                threads.shutdown(wait=True, cancel_futures=True)
                raise
            list(threads.map(lambda entry: _take(directory, partial, entry), missing))
        progress.finish()
        shutil.rmtree(partial, ignore_errors=True)

    def _pieces(self, entry: FileEntry) -> Iterator[_Piece]:
        step = self._settings.range_bytes
        for start in range(0, entry.size, step):
            yield _Piece(entry, start, min(start + step, entry.size))

    def _fetch(
        self, address: WeightsAddress, partial: Path, piece: _Piece, progress: Progress
    ) -> None:
        with (partial / "files" / piece.entry.path).open("r+b") as file:
            file.seek(piece.start)
            counting = _Counting(file, progress, piece.end - piece.start)
            self._store.copy_range(address, piece.entry.path, piece.start, piece.end, counting)
            if counting.left:
                raise BadContent(
                    f"{address}{piece.entry.path} is shorter than its manifest says:"
                    f" {counting.left} bytes of {piece.start}-{piece.end} are missing"
                )
            file.flush()
            os.fsync(file.fileno())
        mark = _mark(partial, piece)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


class _Counting:
    """Passes writes on, counts them, and never lets a range grow into the next one."""

    def __init__(self, file: BinaryIO, progress: Progress, size: int) -> None:
        self._file = file
        self._progress = progress
        self.left = size

    def write(self, data: bytes) -> int:
        if len(data) > self.left:
            raise BadContent("the bucket's server sent more than the range that was asked for")
        self.left -= len(data)
        self._progress.add(len(data))
        return self._file.write(data)


def _mark(partial: Path, piece: _Piece) -> Path:
    # The checksum in the name: marks of another version's file don't count.
    return partial / "done" / piece.entry.sha256 / f"{piece.start}-{piece.end}"


def _make_room(file: Path, size: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as stream:
        stream.truncate(size)


def _take(directory: Path, partial: Path, entry: FileEntry) -> None:
    file = partial / "files" / entry.path
    found = sha256_of(file)
    if found != entry.sha256:
        shutil.rmtree(partial / "done" / entry.sha256, ignore_errors=True)
        file.unlink()
        raise BadContent(f"{entry.path} has the checksum {found}, its manifest says {entry.sha256}")
    target = directory / entry.path
    target.parent.mkdir(parents=True, exist_ok=True)
    file.replace(target)


def _is_there(directory: Path, entry: FileEntry) -> bool:
    # A file gets its name only after its checksum was compared; but another version's file of
    # the same name and size may stand there, so without READY the checksum is compared again.
    file = directory / entry.path
    if not file.is_file() or file.is_symlink() or file.stat().st_size != entry.size:
        return False
    return sha256_of(file) == entry.sha256


def _is_ready(directory: Path, manifest: Manifest) -> bool:
    marker = directory / READY
    if not marker.is_file() or marker.read_bytes() != manifest.to_bytes():
        return False
    files = [(directory / entry.path, entry.size) for entry in manifest.files]
    return all(file.is_file() and file.stat().st_size == size for file, size in files)


def _write_atomically(file: Path, content: bytes) -> None:
    temporary = file.with_name(f".{file.name}.tmp")
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
