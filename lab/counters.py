"""The kernel's packet counters that kube-proxy makes, and that no installed program removes."""

import socket
import struct
from collections.abc import Iterable

_NETLINK_NETFILTER = 12
_DELETE = (7 << 8) | 3  # subsystem "accounting", message "delete"
_REQUEST = 1
_HEADER_BYTES = 16


def delete_message(name: str) -> bytes:
    """Write the netlink message that removes a counter."""
    value = name.encode() + b"\0"
    padding = b"\0" * (-len(value) % 4)
    attribute = struct.pack("=HH", 4 + len(value), 1) + value + padding
    family_version_resource = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0)
    body = family_version_resource + attribute
    return struct.pack("=IHHII", _HEADER_BYTES + len(body), _DELETE, _REQUEST, 0, 0) + body


def remove(names: Iterable[str]) -> None:
    """Remove counters; the kernel keeps one that a rule still uses, which then isn't ours."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as netlink:
            for name in names:
                netlink.send(delete_message(name))
    except OSError:
        return  # a kernel without counters has none to remove
