"""Reading a request: who calls, what they call, and whether it can be carried out at all."""

import base64
import binascii
import json
import re
import uuid
from dataclasses import dataclass
from typing import Any

from services.core.connection import Headers
from services.core.relay import header

from .errors import BadRequest

_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_TOKEN_LIMITS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class Call:
    """What the gateway reads of a request's body; the body itself goes on untouched."""

    model: str
    stream: bool
    max_tokens: int


def request_id(headers: Headers) -> bytes:
    """Return the client's request id when it is one that logs can hold, else a new one."""
    given = header(headers, b"x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given
    return uuid.uuid4().hex.encode()


def api_key(headers: Headers) -> bytes | None:
    """Return the key of ``Bearer <key>``, or of Basic with the key as user name."""
    value = header(headers, b"authorization")
    if value is None:
        return None
    scheme, _, credentials = value.partition(b" ")
    credentials = credentials.strip()
    match scheme.lower():
        case b"bearer":
            return credentials
        case b"basic":
            try:
                return base64.b64decode(credentials, validate=True).partition(b":")[0]
            except binascii.Error:
                return None
        case _:
            return None


def read_call(body: bytes) -> Call:
    """Read the fields that routing needs.

    Raises:
        BadRequest: the body isn't JSON, or its model isn't a name; the message says which.
    """
    try:
        document = json.loads(body)
    except RecursionError as error:
        raise BadRequest("The body is nested too deeply.") from error
    except ValueError as error:
        raise BadRequest(f"The body isn't valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadRequest("The body must be a JSON object.")
    model = document.get("model")
    if model is None:
        raise BadRequest("You must give a model.", param="model", code="missing_required_parameter")
    if not isinstance(model, str):
        kind = type(model).__name__
        raise BadRequest(
            f"The model must be a string, not {kind}.", param="model", code="invalid_type"
        )
    return Call(model, document.get("stream") is True, _max_tokens(document))


def _max_tokens(document: dict[str, Any]) -> int:
    limits = [document.get(name) for name in _TOKEN_LIMITS]
    return max((limit for limit in limits if type(limit) is int), default=0)
