"""Whether something takes connections at an address, as seen from this machine."""

import socket
import time
from urllib.parse import urlsplit

from lab.progress import Heartbeat, Report

PATIENCE_SECONDS = 30
"""How long what may be private is tried: a new name is known by then."""

_PORTS = {"https": 443, "http": 80}
_CONNECT_SECONDS = 5


def why_unreachable(address: str, within_seconds: float, report: Report) -> str:
    """Say why nothing takes a connection there; nothing when something does.

    Args:
        address: Such as ``https://llm.example.com``.
        within_seconds: How long it is tried.
        report: Takes a line of progress.
    """
    parts = urlsplit(address)
    where = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
    heartbeat = Heartbeat(report, f"looking for {address}")
    deadline = time.monotonic() + within_seconds
    while True:
        try:
            socket.create_connection(where, _CONNECT_SECONDS).close()
        except OSError as error:
            if time.monotonic() >= deadline:
                return str(error)
        else:
            return ""
        heartbeat.beat()
        time.sleep(0.5)
