"""Access to a cluster that is there already: the lab's, or that of any kubeconfig."""

import base64
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pulumi
import pulumi_kubernetes as k8s
import yaml

from ..contracts import In

_EMBEDDED = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}
_CONNECT_SECONDS = 5


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


def server_of(kubeconfig: str) -> str:
    """Return the URL of the first API server that a kubeconfig names."""
    config: dict[str, Any] = yaml.safe_load(kubeconfig)
    return str(config["clusters"][0]["cluster"]["server"])


def host_of(kubeconfig: str) -> str:
    """Return the host of that URL: where a one-node cluster's node ports are."""
    return urlsplit(server_of(kubeconfig)).hostname or ""


Connect = Callable[[tuple[str, int], float], socket.socket]


def require_reachable(kubeconfig: str, connect: Connect = socket.create_connection) -> str:
    """Return the kubeconfig when its API server takes connections.

    Asked before anything is registered: an engine that can't see a cluster must not conclude
    anything about what runs there.

    Raises:
        pulumi.RunError: saying which server doesn't answer and why.
    """
    url = urlsplit(server_of(kubeconfig))
    port = url.port or (80 if url.scheme == "http" else 443)
    try:
        connect((url.hostname or "", port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise pulumi.RunError(
            f"cluster unreachable: {url.geturl()} doesn't take connections ({error}). Nothing was "
            "changed. Start the cluster or correct llm-platform:kubeconfig, then run this again"
        ) from error
    return kubeconfig


def provider(name: str, kubeconfig: In[str]) -> k8s.Provider:
    """Return the provider for a cluster, with the options that keep live objects whole.

    ConfigMaps and Secrets are updated in place (pods roll by the hash on their template), and an
    unreachable cluster is an error, never a reason to forget what runs there.
    """
    return k8s.Provider(
        name,
        kubeconfig=pulumi.Output.secret(kubeconfig),
        enable_server_side_apply=True,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        delete_unreachable=False,
    )
