"""Access to a cluster that is there already: the lab's, or that of any kubeconfig."""

import base64
import json
from pathlib import Path
from typing import Any

import yaml

_EMBEDDED = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


def load_kubeconfig(path: Path, context: str | None = None) -> str:
    """Read one context of a kubeconfig as text that needs no other file.

    Args:
        path: The kubeconfig.
        context: The context to take; the current one when left out.

    Raises:
        ValueError: saying what is missing in which file.
    """
    try:
        config: dict[str, Any] = yaml.safe_load(path.read_text()) or {}
    except OSError as error:
        raise ValueError(f"can't read the kubeconfig {path}: {error.strerror}") from error
    chosen = context or str(config.get("current-context") or "")
    place = _named(config, "contexts", chosen, path)["context"]
    cluster = _named(config, "clusters", place["cluster"], path)
    user = _named(config, "users", place["user"], path)
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": cluster["name"], "cluster": _embed(cluster["cluster"], path.parent)}
            ],
            "users": [{"name": user["name"], "user": _embed(user["user"], path.parent)}],
            "contexts": [{"name": chosen, "context": place}],
            "current-context": chosen,
        }
    )


def _named(config: dict[str, Any], kind: str, name: str, path: Path) -> dict[str, Any]:
    entries: list[dict[str, Any]] = config.get(kind) or []
    for entry in entries:
        if entry.get("name") == name:
            return entry
    known = ", ".join(str(entry.get("name")) for entry in entries) or "none"
    raise ValueError(f"the kubeconfig {path} has no {kind[:-1]} {name!r}; it has: {known}")


def _embed(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Put the contents of the files that an entry names into it."""
    embedded = dict(entry)
    for field, target in _EMBEDDED.items():
        if field in embedded:
            content = (folder / str(embedded.pop(field))).read_bytes()
            embedded[target] = base64.b64encode(content).decode()
    return embedded
