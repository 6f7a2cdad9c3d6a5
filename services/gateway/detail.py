"""Routes whose errors have the wire contract's shape, ``{"detail": …}``, in place of OpenAI's."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from fastapi import Request, Response
from fastapi.routing import APIRoute

from services.core.errors import ClientGone

from . import call as calls
from .errors import Refused
from .inference import refusal_headers

_STATUS_CLIENT_GONE = 499


class DetailRoute(APIRoute):
    """A route that tells what was refused as ``{"detail": …}``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with refusals made answers."""
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except Refused as refusal:
                return refused(refusal, calls.request_id(request.headers.raw))
            except ClientGone:
                return Response(status_code=_STATUS_CLIENT_GONE)

        return told


def refused(refusal: Refused, request_id: bytes) -> Response:
    """Return a refusal as an answer."""
    headers = {n.decode(): v.decode() for n, v in refusal_headers(refusal, request_id)}
    return json_response({"detail": str(refusal)}, refusal.status, headers)


def detail_body(message: str) -> bytes:
    """Return an error's document."""
    return msgspec.json.encode({"detail": message})


def json_response(
    document: object, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return JSON; a ``msgspec.Raw`` in it goes out as it is."""
    body = msgspec.json.encode(document)
    return Response(body, status, headers, media_type="application/json")
