"""The way to a cluster's API server."""

import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pulumi
import pulumi_kubernetes as k8s
import yaml

from ..contracts import In

_CONNECT_SECONDS = 5


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
            "changed. Start the cluster, or reach it from here: by llm-platform:kubeconfig where "
            "that says it, from inside of its network where its API is private"
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
