"""Property values as the engine sends them: unknown ones, paths into them, what differs."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# How the engine writes a value that it doesn't know yet: one text for each type.
UNKNOWNS = (
    UNKNOWN,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
)
Properties = dict[str, Any]


def unknown(value: Any) -> bool:
    """Say whether a value isn't known, or has in its text one that isn't."""
    return isinstance(value, str) and any(mark in value for mark in UNKNOWNS)


def all_known(value: Any) -> bool:
    """Say whether nothing in a value is unknown."""
    return not any(unknown(leaf) for _, leaf in leaves(value))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Give each plain value with its path: `taints[0].key`."""
    if isinstance(value, Mapping):
        for key, inside in value.items():
            yield from leaves(inside, below(path, key))
    elif isinstance(value, list):
        for at, inside in enumerate(value):
            yield from leaves(inside, f"{path}[{at}]")
    else:
        yield path, value


def below(path: str, key: str) -> str:
    """Return a path one name further."""
    if not re.fullmatch(r"\w+", key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def plain_path(path: str) -> str:
    """Return a path without the places in lists: `taints.key`."""
    return re.sub(r"\[[^\]]*\]", "", path)


def simplified(value: Any) -> Any:
    """Make whole numbers of the protocol's floats, and drop what is null."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        kept = {key: simplified(inside) for key, inside in value.items()}
        return {key: inside for key, inside in kept.items() if inside is not None}
    if isinstance(value, list):
        return [simplified(inside) for inside in value]
    return value


def same(old: Any, new: Any) -> bool:
    """Say whether two values mean the same: policies are compared as JSON."""
    if old == new:
        return True
    texts = isinstance(old, str) and isinstance(new, str) and old[:1] in "{[" and new[:1] in "{["
    if not texts or not old or not new:
        return False
    try:
        return json.loads(old) == json.loads(new)
    except ValueError:
        return False


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Give the path of each value that is another than before, as deep as both sides go."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key), new.get(key), below(path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{at}]")
    elif not same(old, new):
        yield path


def filled(template: Any, facts: Mapping[str, Any]) -> Any:
    """Put facts into the `{...}` of a template; a template that is only one gives its value.

    What stands in braces is a JMESPath expression: `{id}`, `{made.Vpc.VpcId}`.
    """
    import jmespath

    if isinstance(template, Mapping):
        return {key: filled(inside, facts) for key, inside in template.items()}
    if isinstance(template, list):
        return [filled(inside, facts) for inside in template]
    if not isinstance(template, str):
        return template
    whole = re.fullmatch(r"\{([^{}]+)\}", template)
    if whole:
        return jmespath.search(whole.group(1), facts)
    return re.sub(r"\{([^{}]+)\}", lambda m: str(jmespath.search(m.group(1), facts)), template)
