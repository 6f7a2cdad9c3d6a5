"""One question to the cluster's DNS server, through its Service, as a pod would ask it."""

import socket
import struct

from . import network

_QUESTION = "kubernetes.default.svc.cluster.local"
_NUMBER = 4711
_TIMEOUT_SECONDS = 1.0


def query(name: str) -> bytes:
    """Write the question for a name's IPv4 address (RFC 1035)."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    wants_recursion, questions = 0x0100, 1
    header = struct.pack("!6H", _NUMBER, wants_recursion, questions, 0, 0, 0)
    return header + labels + b"\0" + struct.pack("!2H", 1, 1)


def is_answer(packet: bytes) -> bool:
    """Tell whether a packet answers `query` with at least one record."""
    if len(packet) < 12:
        return False
    number, flags, _, records, _, _ = struct.unpack("!6H", packet[:12])
    is_response, error = flags & 0x8000, flags & 0x000F
    return number == _NUMBER and bool(is_response) and not error and records > 0


def answers(address: str = network.DNS_SERVICE_ADDRESS) -> bool:
    """Ask for the API server's Service; tell whether the answer is there within a second."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(_TIMEOUT_SECONDS)
        try:
            client.connect((address, 53))
            client.send(query(_QUESTION))
            return is_answer(client.recv(512))
        except OSError:
            return False
