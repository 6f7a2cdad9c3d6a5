"""Socket options that make the death of a peer known, also when its network sends nothing more."""

import contextlib
import socket

_KEEPALIVE_IDLE_SECONDS = 15
_KEEPALIVE_INTERVAL_SECONDS = 5
_KEEPALIVE_PROBES = 3
_UNACKNOWLEDGED_MILLISECONDS = 30_000


def harden(sock: socket.socket) -> None:
    """Detect a silent peer: by probes while idle, by unacknowledged bytes while sending."""
    options = {
        (socket.SOL_SOCKET, "SO_KEEPALIVE"): 1,
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE"): _KEEPALIVE_IDLE_SECONDS,
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL"): _KEEPALIVE_INTERVAL_SECONDS,
        (socket.IPPROTO_TCP, "TCP_KEEPCNT"): _KEEPALIVE_PROBES,
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT"): _UNACKNOWLEDGED_MILLISECONDS,
        (socket.IPPROTO_TCP, "TCP_NODELAY"): 1,
    }
    for (level, name), value in options.items():
        if hasattr(socket, name):  # some exist on Linux only
            with contextlib.suppress(OSError):
                sock.setsockopt(level, getattr(socket, name), value)


def listener(host: str, port: int) -> socket.socket:
    """Bind a listening socket; accepted connections inherit its options."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    harden(sock)
    sock.bind((host, port))
    sock.setblocking(False)
    return sock
