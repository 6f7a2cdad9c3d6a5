"""Reading what is asked for in a task: the body of the wire contract's task routes."""

import re
from typing import Any, ClassVar, TypeVar

import msgspec

from .errors import BadRequest

_NOTHING = msgspec.Raw(b"")
_PATH = re.compile(r"/[!-~]{0,1023}")
_CREDENTIAL_LIMIT = 16 * 1024


class Basic(msgspec.Struct, tag="basic", tag_field="kind"):
    """Credentials for a callback, by name and password."""

    username: str
    password: str


class Mtls(msgspec.Struct, tag="mtls", tag_field="kind"):
    """Credentials for a callback, by certificate."""

    cert: str
    key: str


class Submission(msgspec.Struct):
    """What is asked for."""

    REFUSED: ClassVar[tuple[str, ...]] = ("cloudpickle",)
    """Fields of the wire contract that this kind of task can't do anything with."""

    args: msgspec.Raw = _NOTHING
    url: str | None = None
    cloudpickle: str | None = None
    callback_url: str | None = None
    callback_auth: Basic | Mtls | None = None
    return_pickled: bool = False
    destination_path: str | None = None

    def content(self) -> bytes:
        """Return what the model gets."""
        if self.url is not None:
            return msgspec.json.encode({"url": self.url})
        return bytes(self.args)

    def credentials(self) -> dict[str, Any] | None:
        """Return the callback's credentials as plain data."""
        return None if self.callback_auth is None else msgspec.to_builtins(self.callback_auth)


Kind = TypeVar("Kind", bound=Submission)


def read_submission(body: bytes, kind: type[Kind] = Submission) -> Kind:
    """Read a task's body.

    Args:
        body: the body.
        kind: what is asked for, with the fields that this route knows.

    Raises:
        BadRequest: it can't be used; the message names the field.
    """
    try:
        body.decode()
        found = msgspec.json.decode(body, type=kind)
    except RecursionError as error:
        raise BadRequest("The body is nested too deeply.") from error
    except msgspec.ValidationError as error:
        raise BadRequest(f"The body can't be used: {_field(str(error))}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The body isn't valid JSON: {error}") from error
    _check(found)
    return found


def _check(found: Submission) -> None:
    for name in found.REFUSED:
        if getattr(found, name) is not None:
            raise BadRequest(f"{name}: it isn't supported; give the request as 'args'.", param=name)
    if found.return_pickled:
        raise BadRequest("return_pickled: results are JSON only.", param="return_pickled")
    if bytes(found.args) in {b"", b"null"} and found.url is None:
        raise BadRequest("args: they are what the model is asked; give some.", param="args")
    path = found.destination_path
    if path is not None and not _PATH.fullmatch(path):
        raise BadRequest(
            "destination_path: it must begin with '/' and hold no spaces.", param="destination_path"
        )
    credentials = found.credentials() or {}
    if sum(len(value) for value in credentials.values()) > _CREDENTIAL_LIMIT:
        raise BadRequest(
            f"callback_auth: it is longer than {_CREDENTIAL_LIMIT} characters.",
            param="callback_auth",
        )


def _field(message: str) -> str:
    """Put the field's name first, as people look for it there."""
    text, _, place = message.partition(" - at `$.")
    return f"{place.rstrip('`')}: {text}" if place else text
