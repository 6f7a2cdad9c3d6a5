"""The few calls to the API server that the lab itself needs."""

import json
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

from . import network
from .errors import StepError

PORT = 6443
SERVER = f"https://{network.NODE_ADDRESS}:{PORT}"
_TIMEOUT_SECONDS = 5.0


class KubeApi:
    """The API server, as the administrator.

    Args:
        pki: The folder with the cluster's certificates.
    """

    def __init__(self, pki: Path) -> None:
        self._pki = pki

    def get(self, path: str) -> Any:
        """Return an object; None when there is no such object, or no server that answers."""
        try:
            status, body = self._call("GET", path, None, {})
        except (OSError, HTTPException):
            return None
        return json.loads(body) if status == 200 else None

    def is_ready(self) -> bool:
        """Tell whether the server would serve."""
        try:
            return self._call("GET", "/readyz", None, {})[0] == 200
        except (OSError, HTTPException):
            return False

    def apply(self, path: str, manifest: Mapping[str, Any]) -> None:
        """Make an object be like its manifest (server-side apply)."""
        self._patch(
            f"{path}?fieldManager=llm-platform-lab&force=true",
            manifest,
            "application/apply-patch+yaml",
        )

    def merge(self, path: str, patch: Mapping[str, Any]) -> None:
        """Change some fields of an object."""
        self._patch(path, patch, "application/merge-patch+json")

    def _patch(self, path: str, body: Mapping[str, Any], kind: str) -> None:
        step = f"changing {path.partition('?')[0]}"
        try:
            status, answer = self._call("PATCH", path, json.dumps(body), {"Content-Type": kind})
        except (OSError, HTTPException) as error:
            raise StepError(step, f"the API server doesn't answer: {error}") from error
        if status >= 300:
            raise StepError(step, f"the API server says {status}: {answer[:1000]}")

    def _call(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> tuple[int, str]:
        # A context reads the certificates once more with each call; calls are few.
        context = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
        context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        connection = HTTPSConnection(
            network.NODE_ADDRESS, PORT, timeout=_TIMEOUT_SECONDS, context=context
        )
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()


def answers(address: str, port: int, path: str, *, tls: ssl.SSLContext | None = None) -> bool:
    """Tell whether a server answers a request for `path` with 200."""
    connection = (
        HTTPSConnection(address, port, timeout=_TIMEOUT_SECONDS, context=tls)
        if tls
        else HTTPConnection(address, port, timeout=_TIMEOUT_SECONDS)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
