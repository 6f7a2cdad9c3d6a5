"""What the stand-in made and was asked, in one file that several processes may write."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Store:
    """Objects by type and id, the log of calls, and the faults that a test ordered."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "aws.json"
        self._lock = folder / "aws.lock"

    @contextmanager
    def edit(self) -> Iterator[dict[str, Any]]:
        """Give what is kept, and keep what is made of it."""
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = self.kept()
            yield kept
            partial = self._path.with_suffix(".partial")
            partial.write_text(json.dumps(kept, indent=1))
            partial.replace(self._path)

    def kept(self) -> dict[str, Any]:
        """Return all of it, to look at."""
        if not self._path.exists():
            return {"objects": {}, "log": [], "faults": []}
        return json.loads(self._path.read_text())

    def note(self, call: str, token: str, subject: str) -> None:
        """Add a line to the log: `create eks/cluster:Cluster dev-aws`."""
        with self.edit() as kept:
            kept["log"].append(f"{call} {token.removeprefix('aws:')} {subject}")

    def put(self, token: str, object_id: str, record: Record) -> None:
        """Keep an object as it is now."""
        with self.edit() as kept:
            kept["objects"][f"{token}|{object_id}"] = {"type": token, "id": object_id, **record}

    def get(self, token: str, object_id: str) -> Record | None:
        """Return an object, or None."""
        return self.kept()["objects"].get(f"{token}|{object_id}")

    def drop(self, token: str, object_id: str) -> None:
        """Forget an object."""
        with self.edit() as kept:
            kept["objects"].pop(f"{token}|{object_id}", None)

    def objects(self, *tokens: str) -> list[Record]:
        """Return what there is of these types; of all when none is named."""
        found = self.kept()["objects"].values()
        return [record for record in found if not tokens or record["type"] in tokens]

    def order_fault(self, when: str, token: str) -> None:
        """Have the next create of a type go wrong; see `Faults` for the ways."""
        with self.edit() as kept:
            kept["faults"].append({"when": when, "type": token})

    def take_fault(self, when: str, token: str) -> bool:
        """Say whether that fault was ordered; it happens once."""
        fault = {"when": when, "type": token}
        if fault not in self.kept()["faults"]:
            return False
        with self.edit() as kept:
            kept["faults"].remove(fault)
        return True
