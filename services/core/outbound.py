"""Requests to addresses that tenants give: never to anything inside, whatever a name resolves to.

A name is resolved here, every address of it is checked, and the connection goes to what was
checked: between a check and a second look-up the answer could change. Redirects aren't followed.
"""

import asyncio
import base64
import contextlib
import ipaddress
import os
import socket
import ssl
from collections.abc import Iterable, Mapping
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from .errors import OutboundFailed, OutboundRefused

_READ_BYTES = 64 * 1024
_CONNECTIONS = 50
_CHECK_SECONDS = 2
_DEFAULT_PORTS = {"http": 80, "https": 443}

# Public by their numbers, and yet a cloud's own: Azure's agent hands out a node's secrets.
_CLOUD_SERVICES = frozenset({ipaddress.ip_address("168.63.129.16")})
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.ip_network("::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Outbound:
    """Sends requests to addresses outside; one client for the whole process.

    Args:
        allow: host names, and networks such as ``10.1.0.0/16``, that may be asked although they
            are inside.
        timeout_seconds: how long one request may take in all.
    """

    def __init__(self, allow: Iterable[str] = (), timeout_seconds: float = 10) -> None:
        self._names: set[str] = set()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for entry in allow:
            try:
                self._networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                self._names.add(entry.lower())
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        basic: tuple[str, str] | None = None,
        certificate: tuple[str, str] | None = None,
    ) -> int:
        """Post a body and return the answer's status.

        Args:
            url: where to.
            body: what.
            headers: with which headers.
            basic: name and password, when they are asked for.
            certificate: certificate and key as PEM, when they are asked for.

        Raises:
            OutboundRefused: the address isn't one that may be asked.
            OutboundFailed: there was no whole answer.
        """
        target = self._checked(url)
        given = {**headers, "authorization": _basic(*basic)} if basic else dict(headers)
        try:
            async with self._client().post(
                target,
                data=body,
                headers=given,
                allow_redirects=False,
                ssl=_client_certificate(*certificate) if certificate else True,
            ) as answer:
                await answer.content.read(_READ_BYTES)
                return answer.status
        except OutboundRefused:
            raise
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            refused = _refusal_in(error)
            if refused is not None:
                raise refused from error
            raise OutboundFailed(f"no answer: {type(error).__name__}") from error

    async def check(self, url: str) -> None:
        """Refuse an address before anything is to be sent there; a name that is unknown now passes.

        Raises:
            OutboundRefused: the address isn't one that may be asked.
        """
        target = self._checked(url)
        with contextlib.suppress(OSError, UnicodeError, TimeoutError):
            async with asyncio.timeout(_CHECK_SECONDS):
                await _CheckedResolver(self).resolve(target.raw_host or "", target.port or 0)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def check_host(self, host: str) -> None:
        """Refuse a host that is an address inside, or looks like one but isn't written as one.

        Raises:
            OutboundRefused: it is.
        """
        if host.lower() in self._names:
            return
        # The client takes all digits, and anything with a colon, for an address and resolves
        # nothing; the system then reads 2130706433 as 127.0.0.1.
        if ":" not in host and not host.replace(".", "").isdigit():
            return
        try:
            address = ipaddress.ip_address(host)
        except ValueError as error:
            raise OutboundRefused(f"{host!r} is neither a name nor an address") from error
        self.check_address(address)

    def check_address(self, address: Address) -> None:
        """Refuse an address that isn't outside.

        Raises:
            OutboundRefused: it isn't.
        """
        if any(address.version == net.version and address in net for net in self._networks):
            return
        if not is_outside(address):
            raise OutboundRefused(f"{address} isn't an address outside the platform")

    def resolved(self, host: str, found: list[ResolveResult]) -> list[ResolveResult]:
        """Return what a name resolved to, all of it outside.

        Raises:
            OutboundRefused: one of the addresses isn't.
        """
        if host.lower() not in self._names:
            for entry in found:
                self.check_address(ipaddress.ip_address(entry["host"]))
        return found

    def _checked(self, url: str) -> URL:
        try:
            target = URL(url)
            host, port = target.raw_host, target.port
        except ValueError as error:
            raise OutboundRefused("the address can't be read") from error
        if target.scheme not in _DEFAULT_PORTS or not host or not port:
            raise OutboundRefused("the address must begin with https:// or http:// and a host")
        if target.user is not None or target.password is not None:
            raise OutboundRefused("the address must hold no name and no password")
        self.check_host(host)
        return target

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=_CheckedResolver(self),
                use_dns_cache=False,
                force_close=True,
                limit=_CONNECTIONS,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=self._timeout,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


class _CheckedResolver(AbstractResolver):
    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        results = [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=int(address[1]),
                family=kind,
                proto=proto,
                flags=socket.AI_NUMERICHOST,
            )
            for kind, _, proto, _, address in found
        ]
        return self._outbound.resolved(host, results)

    async def close(self) -> None:
        pass


def is_outside(address: Address) -> bool:
    """Return whether an address is one of the public internet, and no cloud's own service."""
    inner = _embedded(address)
    if inner is not None:
        return is_outside(inner)
    if address in _CLOUD_SERVICES or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False
    return address.is_global


def _embedded(address: Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that a translator would make of an IPv6 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in (*_NAT64, _COMPATIBLE)):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _refusal_in(error: BaseException) -> OutboundRefused | None:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OutboundRefused):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def _basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def _client_certificate(certificate: str, key: str) -> ssl.SSLContext:
    """Return a context that shows a certificate; the key never touches a disk."""
    context = ssl.create_default_context()
    with _in_memory(certificate) as first, _in_memory(key) as second:
        context.load_cert_chain(
            f"/proc/self/fd/{first.fileno()}", f"/proc/self/fd/{second.fileno()}"
        )
    return context


def _in_memory(text: str) -> Any:
    file = os.fdopen(os.memfd_create("callback"), "w+b")
    file.write(text.encode())
    file.flush()
    file.seek(0)
    return file
