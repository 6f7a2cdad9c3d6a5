"""The list of files of one version, with sizes and checksums."""

import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from .errors import BadManifest

NAME = "manifest.json"
READY = "READY"
_CHUNK_BYTES = 1024 * 1024
_LONGEST_PATH = 1024


class FileEntry(BaseModel):
    """One file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    path: str = Field(min_length=1, max_length=_LONGEST_PATH)
    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        path = PurePosixPath(value)
        plain = str(path) == value and "\\" not in value and value.isprintable()
        if path.is_absolute() or not plain or {".", ".."} & set(path.parts):
            raise ValueError(f"{value!r} isn't a plain relative path")
        if path.parts[0].startswith(".") or value in {NAME, READY}:
            raise ValueError(f"{value!r} is a name that the loader needs itself")
        return value


class Manifest(BaseModel):
    """All files of one version."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    files: list[FileEntry] = Field(min_length=1)

    @model_validator(mode="after")
    def _no_file_twice(self) -> Self:
        paths = {entry.path for entry in self.files}
        if len(paths) != len(self.files):
            raise ValueError("a file is listed twice")
        folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
        if paths & folders:
            raise ValueError(f"{min(paths & folders)!r} is both a file and a folder")
        return self

    @property
    def total_bytes(self) -> int:
        """The size of all files together."""
        return sum(entry.size for entry in self.files)

    def to_bytes(self) -> bytes:
        """Return the document; equal manifests give equal bytes."""
        return self.model_dump_json(indent=1).encode()

    @classmethod
    def from_bytes(cls, document: bytes, source: str) -> "Manifest":
        """Read a manifest.

        Raises:
            BadManifest: it can't be trusted; the message names its source and what is wrong.
        """
        try:
            return cls.model_validate_json(document)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BadManifest(
                f"the manifest of {source} can't be used: {where} {first['msg']}"
            ) from error

    @classmethod
    def of_folder(cls, folder: Path, files: Iterable[Path]) -> "Manifest":
        """Make the manifest of files in a folder.

        Raises:
            BadManifest: a file's name isn't one that a manifest may hold.
        """
        try:
            entries = [
                FileEntry(
                    path=file.relative_to(folder).as_posix(),
                    size=file.stat().st_size,
                    sha256=sha256_of(file),
                )
                for file in files
            ]
            return cls(files=entries)
        except ValidationError as error:
            raise BadManifest(f"{folder}: {error.errors()[0]['msg']}") from error


def sha256_of(file: Path) -> str:
    """Return a file's checksum."""
    with file.open("rb") as stream:
        digest = hashlib.sha256()
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
