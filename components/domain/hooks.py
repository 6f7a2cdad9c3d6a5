"""What a worker does before and after the model, on requests and tasks of every type.

Hooks are values that travel as JSON to the forwarder beside the model; they hold no secrets.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, Discriminator, Field, Tag

from .args import Args

LARGEST_SCHEMA_BYTES = 64 * 1024
"""It is part of the pod, and etcd takes objects of a megabyte and a half."""


def _self_contained(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        size = len(json.dumps(schema))
    except (TypeError, ValueError) as error:
        raise ValueError(f"schema isn't JSON: {error}") from error
    if size > LARGEST_SCHEMA_BYTES:
        raise ValueError(
            f"schema has {size} bytes as JSON; at most {LARGEST_SCHEMA_BYTES} fit: describe what "
            "the model can't do without, and leave the rest to it"
        )
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise ValueError(
                f"schema refers to {reference!r}, which would be fetched for every request: put "
                'it under "$defs" and refer to "#/$defs/…"'
            )
    return schema


def _references(part: object) -> Iterator[str]:
    if isinstance(part, Mapping):
        for key, value in cast("Mapping[object, object]", part).items():
            if key in {"$ref", "$dynamicRef"} and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(part, list | tuple):
        for value in cast("Sequence[object]", part):
            yield from _references(value)


def _web_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{value!r} isn't a web address: write https://host/path")
    if parts.username or parts.password:
        raise ValueError(
            "the address holds a password, which everyone who sees the pod could read: take it "
            "out, and give callback_auth with the task"
        )
    return value


WebAddress = Annotated[str, Field(max_length=2048), AfterValidator(_web_address)]
"""An address outside the platform; what resolves to one inside it is never asked."""


class Validation(Args):
    """Refuses what isn't a request for this model, before the model sees it: 422, and why."""

    kind: Literal["validation"] = "validation"
    """Says which it is."""
    body_schema: Annotated[Mapping[str, Any], AfterValidator(_self_contained)] = Field(
        alias="schema"
    )
    """A JSON schema of the request's body; ``Validation(schema={…})``."""


class Callback(Args):
    """Posts every result to an address, at least once, with the task's id."""

    kind: Literal["callback"] = "callback"
    """Says which it is."""
    url: WebAddress
    """Where to; an address that a task brings itself is used instead."""


class Logging(Args):
    """Writes one structured line per answer: ids, status, seconds and sizes, never its text."""

    kind: Literal["logging"] = "logging"
    """Says which it is."""


PreHook = Validation
"""What runs before the model."""


def _kind(hook: object) -> str:
    if isinstance(hook, Mapping):
        return str(cast("Mapping[str, object]", hook).get("kind", ""))
    return str(getattr(hook, "kind", ""))


PostHook = Annotated[
    Annotated[Callback, Tag("callback")] | Annotated[Logging, Tag("logging")],
    Discriminator(_kind),
]
"""What runs after the model."""


class Hooks(Args):
    """What runs before and after the model, in order."""

    pre: tuple[PreHook, ...] = ()
    """Before the model; the first that refuses answers the request."""
    post: tuple[PostHook, ...] = ()
    """After the model; what fails here never changes the answer."""

    def __bool__(self) -> bool:
        """Say whether there is anything to run."""
        return bool(self.pre or self.post)

    def to_json(self) -> str:
        """Return the text that the forwarder reads; equal hooks give equal text."""
        return self.model_dump_json(by_alias=True)

    @classmethod
    def from_json(cls, text: str) -> "Hooks":
        """Read it back; no text is no hooks.

        Raises:
            pydantic.ValidationError: naming the hook and the field that is wrong.
        """
        return cls.model_validate_json(text) if text else cls()
