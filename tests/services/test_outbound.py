import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from services.core.errors import OutboundFailed, OutboundRefused
from services.core.outbound import Outbound, is_outside

INSIDE = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/29",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/128",
    "::1/128",
    "fc00::/7",
    "fd00:ec2::254/128",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]
inside_v4 = st.sampled_from([net for net in INSIDE if ":" not in net]).flatmap(
    lambda net: st.ip_addresses(network=net)
)
inside = st.sampled_from(INSIDE).flatmap(lambda net: st.ip_addresses(network=net))


@settings(deadline=None)
@given(inside)
def test_no_address_inside_may_be_asked(address: Any) -> None:
    assert not is_outside(address)


@settings(deadline=None)
@given(inside_v4, st.sampled_from(["::ffff:0:0", "64:ff9b::", "::", "2002::"]))
def test_no_address_inside_may_be_asked_in_another_ones_clothes(
    address: ipaddress.IPv4Address, prefix: str
) -> None:
    number = int(address) << (80 if prefix == "2002::" else 0)
    assert not is_outside(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | number))


@settings(deadline=None)
@given(st.ip_addresses())
def test_what_is_outside_is_public(address: Any) -> None:
    if is_outside(address):
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_public_addresses_may_be_asked(address: str) -> None:
    assert is_outside(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fe80::1%25lo]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://168.63.129.16/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "//example.com/",
        "http:///x",
        "http://user:secret@example.com/",
        "not an address",
        "",
    ],
)
@pytest.mark.asyncio(loop_scope="session")
async def test_addresses_that_tenants_may_not_give(url: str) -> None:
    outbound = Outbound(timeout_seconds=5)
    # A system's resolver may take an odd spelling for no name at all; it isn't asked then either.
    with pytest.raises((OutboundRefused, OutboundFailed)):
        await outbound.post(url, b"{}", {})
    await outbound.close()


class Receiver:
    """A server on loopback that remembers what came."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str | None]] = []
        self.port = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append((request.path, request.headers.get("authorization")))
        if request.path == "/moved":
            raise web.HTTPTemporaryRedirect("/inside")
        if request.path == "/slow":
            await asyncio.sleep(30)
        return web.Response(body=b"x" * 10_000_000 if request.path == "/large" else b"")


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[Receiver]:
    it = Receiver()
    app = web.Application()
    app.router.add_post("/{path}", it.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        it.port = runner.addresses[0][1]
        yield it
    finally:
        await runner.cleanup()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names that resolve to what a test says, one address after the other at each look-up."""
    known: dict[str, list[str]] = {}

    async def look_up(_loop: Any, host: str, port: int, **_: Any) -> list[Any]:
        answers = known[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        family = socket.AF_INET6 if ":" in found else socket.AF_INET
        kind, protocol = socket.SOCK_STREAM, socket.IPPROTO_TCP
        return [(family, kind, protocol, "", (address, port)) for address in found.split()]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", look_up)
    return known


@pytest.mark.asyncio(loop_scope="session")
async def test_every_address_of_a_name_counts(names: dict[str, list[str]]) -> None:
    outbound = Outbound(timeout_seconds=5)
    names["mixed.example"] = ["1.1.1.1 10.0.0.1"]
    with pytest.raises(OutboundRefused, match=r"10\.0\.0\.1"):
        await outbound.post("https://mixed.example/", b"", {})
    await outbound.close()


@pytest.mark.asyncio(loop_scope="session")
async def test_the_connection_goes_to_the_address_that_was_checked(
    names: dict[str, list[str]], receiver: Receiver
) -> None:
    # Were the name looked up again after the check, the second answer would be taken.
    outbound = Outbound(["127.0.0.1/32"], timeout_seconds=5)
    names["rebound.example"] = ["127.0.0.1", "127.0.0.2"]
    assert await outbound.post(f"http://rebound.example:{receiver.port}/x", b"", {}) == 200
    with pytest.raises(OutboundRefused, match=r"127\.0\.0\.2"):
        await outbound.post(f"http://rebound.example:{receiver.port}/x", b"", {})
    await outbound.close()


@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_allowed_is_asked_and_no_redirect_is_followed(receiver: Receiver) -> None:
    outbound = Outbound(["127.0.0.0/8"], timeout_seconds=5)
    base = f"http://127.0.0.1:{receiver.port}"
    assert await outbound.post(f"{base}/x", b"{}", {}, basic=("me", "pässword")) == 200
    assert receiver.requests == [("/x", "Basic bWU6cMOkc3N3b3Jk")]
    assert await outbound.post(f"{base}/moved", b"{}", {}) == 307
    assert [path for path, _ in receiver.requests] == ["/x", "/moved"]
    assert await outbound.post(f"{base}/large", b"{}", {}) == 200
    await outbound.close()


@pytest.mark.asyncio(loop_scope="session")
async def test_an_address_that_doesnt_answer_is_given_up(receiver: Receiver) -> None:
    outbound = Outbound(["127.0.0.1"], timeout_seconds=0.2)
    with pytest.raises(OutboundFailed):
        await outbound.post(f"http://127.0.0.1:{receiver.port}/slow", b"", {})
    await outbound.close()
