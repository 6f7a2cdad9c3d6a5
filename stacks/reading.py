"""Reading a stack's settings, and saying in words what is wrong with them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import pulumi
from pulumi.runtime import config as pulumi_config
from pydantic import ValidationError

from components.domain.args import Args

PROJECT = "llm-platform"
S = TypeVar("S", bound=Args)


class SettingsError(pulumi.RunError):
    """A setting is wrong; Pulumi prints the message and no traceback."""


def load(by_cloud: Mapping[str, type[S]]) -> S:
    """Read the running stack's settings.

    Args:
        by_cloud: The settings that the stack's layer understands, for each cloud.

    Raises:
        SettingsError: naming each wrong setting, its value, what to do, and the file.
    """
    return parse(by_cloud, _given(), pulumi.get_stack())


def parse(by_cloud: Mapping[str, type[S]], given: Mapping[str, Any], stack: str) -> S:
    """Check settings that were read before.

    Raises:
        SettingsError: as ``load`` does.
    """
    cloud = given.get("cloud", "local")
    kind = by_cloud.get(cloud)
    if kind is None:
        known = ", ".join(by_cloud)
        raise SettingsError(
            f"{PROJECT}:cloud in {_file(stack)}: {cloud!r} isn't built; known: {known}"
        )
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        lines = "\n".join(_lines(error, stack, given))
        raise SettingsError(f"The settings in {_file(stack)} can't be used:\n{lines}") from None


def _given() -> dict[str, Any]:
    """Return this project's settings; objects and numbers as what they stand for."""
    everything = {**pulumi_config.get_config_env(), **pulumi_config.CONFIG.get()}
    prefix = f"{PROJECT}:"
    return {
        key.removeprefix(prefix): _value(text)
        for key, text in everything.items()
        if key.startswith(prefix)
    }


def _value(text: Any) -> Any:
    if not isinstance(text, str) or not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        # A plain text that begins like an object, such as an IPv6 address; its field judges it.
        return text


def _file(stack: str) -> str:
    return f"stacks/Pulumi.{stack}.yaml"


def _lines(error: ValidationError, stack: str, given: Mapping[str, Any]) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        path = _path(_plain_location(problem["loc"], given))
        message = str(problem["msg"]).removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            yield f"  {PROJECT}:{path}: there is no such setting"
        elif problem["type"] == "missing":
            yield (
                f"  {PROJECT}:{path}: missing; `make up` writes it, or set it with "
                f"`pulumi config set --stack {stack} --path '{PROJECT}:{path}' VALUE`"
            )
        else:
            yield f"  {PROJECT}:{path}: {message} (it is {problem['input']!r})"


def _plain_location(
    location: tuple[int | str, ...], given: Mapping[str, Any]
) -> tuple[int | str, ...]:
    """Leave out which alternative of a setting was tried: nobody wrote that as a name."""
    plain: list[int | str] = []
    value: Any = given
    untold = False
    for part in location:
        if untold and part == value["source"]:
            untold = False
            continue
        plain.append(part)
        value = _inner(value, part)
        untold = isinstance(value, Mapping) and "source" in value
    return tuple(plain)


def _inner(value: Any, part: int | str) -> Any:
    try:
        return value[part]
    except (KeyError, IndexError, TypeError):
        return None


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Let what people wrote wrongly be said in words, without a traceback.

    Raises:
        SettingsError: for a value that a component refused, naming its fields.
    """
    try:
        yield
    except ValidationError as error:
        lines = [
            f"  {_path(problem['loc']) or error.title}: "
            f"{str(problem['msg']).removeprefix('Value error, ')}"
            for problem in error.errors(include_url=False)
        ]
        raise SettingsError(f"{error.title} can't be used:\n" + "\n".join(lines)) from None
