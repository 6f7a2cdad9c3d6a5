"""Checking requests against a JSON schema before the model sees them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from components.domain.hooks import Validation

from .errors import Invalid
from .measures import Measures

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

_MESSAGE_CHARACTERS = 500
# A larger body is checked beside the loop, which other requests need.
_LONG_BYTES = 64 * 1024


class Checks:
    """The checks of one endpoint; each schema is compiled once.

    Args:
        hooks: the schemas.
        measures: where runs are counted.
    """

    def __init__(self, hooks: Sequence[Validation], measures: Measures) -> None:
        self._validators = [compiled(hook.body_schema) for hook in hooks]
        self._measures = measures

    def __bool__(self) -> bool:
        return bool(self._validators)

    async def check(self, body: bytes) -> None:
        """Refuse a body that isn't a request for this model.

        Raises:
            Invalid: the message names the place in the body, and what is wrong there.
        """
        try:
            if len(body) > _LONG_BYTES:
                await asyncio.to_thread(self._check, body)
            else:
                self._check(body)
        except Invalid:
            self._measures.hook("validation", "refused")
            raise
        self._measures.hook("validation", "passed")

    def _check(self, body: bytes) -> None:
        from jsonschema.exceptions import best_match  # noqa: PLC0415  (loaded with the schemas)

        try:
            document = msgspec.json.decode(body)
            for validator in self._validators:
                error = best_match(validator.iter_errors(document))
                if error is not None:
                    raise Invalid(_told(error))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Invalid(f"The body isn't valid JSON: {error}.") from error
        except RecursionError as error:
            raise Invalid("The body is nested too deeply.") from error


def compiled(schema: Mapping[str, Any]) -> "Validator":
    """Return a validator that fetches nothing.

    Raises:
        jsonschema.SchemaError: it isn't a JSON schema.
    """
    # Only an endpoint with a schema pays for the library at its start.
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(dict(schema))
    return kind(dict(schema), registry=Registry())


def _told(error: "ValidationError") -> str:
    message = error.message
    if len(message) > _MESSAGE_CHARACTERS:
        message = message[:_MESSAGE_CHARACTERS] + "…"
    return f"{error.json_path}: {message}"
