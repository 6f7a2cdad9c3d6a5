"""Reading a request: who calls, what they call, and whether it can be carried out at all."""

import base64
import binascii
import codecs
import re
import uuid
from dataclasses import dataclass

import msgspec

from services.core.connection import Headers
from services.core.relay import header

from .errors import BadRequest

_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_INTEGER = re.compile(rb"-?[0-9]+")
_DIGITS = 19
_PIECE_BYTES = 64 * 1024
_NOTHING = msgspec.Raw(b"")


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


class _Fields(msgspec.Struct):
    """What is looked at; all the rest is checked to be JSON and skipped without building it."""

    model: msgspec.Raw = _NOTHING
    stream: msgspec.Raw = _NOTHING
    max_tokens: msgspec.Raw = _NOTHING
    max_completion_tokens: msgspec.Raw = _NOTHING


_fields = msgspec.json.Decoder(_Fields)
_text = msgspec.json.Decoder(str)


def read_call(body: bytes) -> Call:
    """Read the fields that routing needs.

    Raises:
        BadRequest: the body isn't JSON, or its model isn't a name; the message says which.
    """
    try:
        _check_utf8(body)
        fields = _fields.decode(body)
        model = _model(bytes(fields.model))
    except RecursionError as error:
        raise BadRequest("The body is nested too deeply.") from error
    except msgspec.ValidationError as error:  # the fields take any value, so it is the whole
        raise BadRequest("The body must be a JSON object.") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise BadRequest(f"The body isn't valid JSON: {error}") from error
    limits = (fields.max_completion_tokens, fields.max_tokens)
    return Call(model, bytes(fields.stream) == b"true", max(map(_whole_number, limits)))


def _check_utf8(body: bytes) -> None:
    if body.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), _PIECE_BYTES):  # never the whole text at once
        decoder.decode(body[start : start + _PIECE_BYTES])
    decoder.decode(b"", final=True)


def _model(value: bytes) -> str:
    if value in {b"", b"null"}:
        raise BadRequest("You must give a model.", param="model", code="missing_required_parameter")
    if not value.startswith(b'"'):
        kinds = {b"[": "list", b"{": "dict", b"t": "bool", b"f": "bool"}
        kind = kinds.get(value[:1]) or ("int" if _INTEGER.fullmatch(value) else "float")
        raise BadRequest(
            f"The model must be a string, not {kind}.", param="model", code="invalid_type"
        )
    return _text.decode(value)


def _whole_number(value: msgspec.Raw) -> int:
    """Return a limit of tokens, 0 when there is none; of an absurd one its beginning is enough."""
    digits = bytes(value)
    return int(digits[:_DIGITS]) if _INTEGER.fullmatch(digits) else 0
