"""A Pulumi backend that is a folder, and what a killed engine can leave torn in it.

The engine replaces each file whole, by renaming, but not two kinds: the ``.attrs`` beside a file,
which is opened and then written, and the ``.tmp`` that waits to be renamed. A kill in between
leaves an empty ``.attrs``, on which each later reading of the state ends with ``EOF``, or a
``.tmp`` among the locks, which counts as somebody's lock.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PROJECT = "llm-platform"
# Writing a lock takes milliseconds; one that is still not whole after this long never will be.
_TORN_AFTER_SECONDS = 5


@dataclass(frozen=True)
class FileBackend:
    """The folder that a ``file://`` address names.

    Args:
        root: The folder, with ``.pulumi`` in it.
    """

    root: Path

    @classmethod
    def at(cls, address: str) -> "FileBackend | None":
        """The folder behind the address; nothing when it isn't a ``file://`` one."""
        parts = urlsplit(address)
        if parts.scheme != "file":
            return None
        return cls(Path(parts.netloc + parts.path).expanduser())

    @property
    def address(self) -> str:
        """How the engine is told of it: without ``.attrs``, which nothing reads."""
        return f"file://{self.root}?metadata=skip"

    def state(self, stack: str) -> Path:
        """The stack's last checkpoint."""
        return self.root / ".pulumi/stacks" / PROJECT / f"{stack}.json"

    def locks(self, stack: str) -> Iterator[Path]:
        """All that the engine takes for a lock of the stack, half-written ones too."""
        folder = self.root / ".pulumi/locks/organization" / PROJECT / stack
        for file in folder.glob("*"):
            if file.suffix != ".attrs":
                yield file

    def mend(self) -> list[Path]:
        """Remove each torn ``.attrs``; the files that they stood beside are whole without them.

        Returns:
            What was removed.
        """
        torn = [attrs for attrs in self.root.glob(".pulumi/**/*.attrs") if not _is_json(attrs)]
        for attrs in torn:
            attrs.unlink(missing_ok=True)
        return torn


def is_torn(lock: Path) -> bool:
    """Whether a lock was left half-written by a process that can't be writing it any more."""
    try:
        age = time.time() - lock.stat().st_mtime
    except FileNotFoundError:
        return False
    return age > _TORN_AFTER_SECONDS and not _is_json(lock)


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_bytes())
    except FileNotFoundError:
        return True
    except ValueError:
        return False
    return True
