"""What is refused before anything is created: each refusal names the property and the reason."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import model, sdk
from .kinds.base import Call, Facts, Kind
from .moto import Cloud
from .values import UNKNOWN, below, unknown

Refusal = tuple[str, str]
ALWAYS_TAKEN = {"tags", "region"}
TAGS, TAG_KEY, TAG_VALUE = 50, 128, 256


def by_sdk(described: sdk.Described, value: Any, path: str = "") -> Iterator[Refusal]:
    """Give what the SDK's classes refuse: unknown names, missing ones, types, enums."""
    kind = described["is"]
    if unknown(value) or kind == "any":
        return
    if kind == "object":
        yield from _object(described, value, path)
    elif kind == "list":
        if not isinstance(value, list):
            yield path, f"must be a list, not {value!r}"
            return
        for at, inside in enumerate(value):
            yield from by_sdk(described["of"], inside, f"{path}[{at}]")
    elif kind == "map":
        if not isinstance(value, Mapping):
            yield path, f"must be a map, not {value!r}"
            return
        for key, inside in value.items():
            yield from by_sdk(described["of"], inside, below(path, key))
    else:
        yield from _scalar(described, value, path)


def _object(described: sdk.Described, value: Any, path: str) -> Iterator[Refusal]:
    if not isinstance(value, Mapping):
        yield path, f"must be an object, not {value!r}"
        return
    fields = described["fields"]
    for name in described.get("required", ()):
        if value.get(name) is None:
            yield below(path, name), "is required and missing"
    for name, inside in value.items():
        if name in fields:
            yield from by_sdk(fields[name], inside, below(path, name))
            continue
        near = difflib.get_close_matches(name, fields, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        yield below(path, name), f"is no property of this type{hint}"


def _scalar(described: sdk.Described, value: Any, path: str) -> Iterator[Refusal]:
    expected: Mapping[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "json": (str, dict),
    }
    kind = described["is"]
    if isinstance(value, bool) != (kind == "boolean") or not isinstance(value, expected[kind]):
        yield path, f"must be a {kind}, not {value!r}"
    elif "values" in described and value not in described["values"]:
        yield path, f"{value!r} is none of {', '.join(map(str, described['values']))}"


def by_name(kind: Kind, inputs: Mapping[str, Any]) -> Iterator[Refusal]:
    """Give what is wrong with the physical name."""
    named = kind.named
    name = inputs.get(named.property) if named else None
    if named is None or name is None or unknown(name):
        return
    if len(name) > named.limit:
        yield (
            named.property,
            f"{name!r} has {len(name)} characters, at most {named.limit} are allowed",
        )
    elif named.pattern and not re.fullmatch(named.pattern, name):
        yield named.property, f"{name!r} doesn't match {named.pattern}"


def by_tags(tags: Mapping[str, Any]) -> Iterator[Refusal]:
    """Give what AWS refuses of any tags."""
    if len(tags) > TAGS:
        yield "tags", f"has {len(tags)} tags, at most {TAGS} are allowed"
    for key, value in tags.items():
        if key.lower().startswith("aws:") or not 0 < len(key) <= TAG_KEY:
            yield "tags", f"{key[:40]!r} is no key that AWS allows"
        if isinstance(value, str) and not unknown(value) and len(value) > TAG_VALUE:
            yield below("tags", key), f"has {len(value)} characters, at most {TAG_VALUE}"


def by_models(kind: Kind, facts: Facts, inputs: Mapping[str, Any], cloud: Cloud) -> list[Refusal]:
    """Return what boto3's models of the calls that make it refuse, and what no call would send."""
    found: list[Refusal] = []
    sent = {*ALWAYS_TAKEN, *kind.local, f"{kind.named.property}Prefix" if kind.named else ""}
    for step in (kind.create, *kind.then):
        if not isinstance(step, Call):
            sent |= set(step.takes if step else ())
            continue
        shape = cloud.input(kind.service, step.operation)
        fitted = step.built(shape, facts, inputs)
        sent |= fitted.used
        found += [(path, f"has no parameter in {step.operation}") for path in fitted.strays]
        if step is kind.create or fitted.used:
            found += [
                (_origin(fitted, path), f"{reason} ({step.operation})")
                for path, reason in model.refusals(shape, fitted.params)
            ]
    for name in sorted(set(inputs) - sent):
        said = inputs[name]
        if said not in ({}, []):
            found.append(
                (name, f"the stand-in sends it nowhere: its entry for {kind.token} lacks it")
            )
    return found


def _origin(fitted: model.Fitted, path: str) -> str:
    """Return the property behind a parameter, or the parameter when there is none."""
    plain = re.sub(r"\[[^\]]*\]", "", path)
    while plain:
        if plain in fitted.origins:
            return fitted.origins[plain]
        plain = plain.rpartition(".")[0]
    return path


def facts_before(inputs: Mapping[str, Any], cloud: Cloud, tags: Mapping[str, Any]) -> Facts:
    """Return what is known of a resource before it is there."""
    nothing_yet = dict.fromkeys(("id", "fake"), UNKNOWN)
    return {
        **inputs,
        **nothing_yet,
        "region": inputs.get("region") or cloud.region,
        "account": cloud.account,
        "tagsAll": dict(tags),
        "made": {},
        "seen": {},
        "own": {},
        "old": {},
    }
