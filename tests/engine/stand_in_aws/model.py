"""Pulumi's properties as parameters of a boto3 call, by boto3's own model of the call.

The two name things alike (`cidrBlock`, `CidrBlock`), so a call finds its parameters by itself; an
entry of the table only says where the names differ.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .values import below, plain_path, unknown

Renames = Mapping[str, str | None]


@dataclass
class Fitted:
    """Parameters of a call, and how they came about."""

    params: dict[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """The properties, of the first level, that the call sends."""
    origins: dict[str, str] = field(default_factory=dict)
    """The property behind each parameter, by path."""
    strays: list[str] = field(default_factory=list)
    """Paths below a used property that have no parameter."""


def fit(shape: Any, properties: Mapping[str, Any], renames: Renames, inside: str = "") -> Fitted:
    """Turn properties into the parameters of a call.

    Args:
        shape: The call's input, as botocore knows it.
        properties: What to send; those that the call doesn't know are left alone.
        renames: Parameter by property path, where the names differ; dotted when it lies deeper;
            None for what isn't to be sent.
        inside: A structure among the parameters that takes what isn't found at the top.
    """
    fitted = Fitted()
    for name, value in properties.items():
        target = renames[name] if name in renames else _home(shape, name, inside)
        if target is None:
            if name in renames:
                fitted.used.add(name)
            continue
        fitted.used.add(name)
        place, member = _reach(shape, target, fitted.params)
        last = target.rpartition(".")[2]
        fitted.origins[target] = name
        place[last] = _Fitting(fitted, renames).value(member, value, name, target)
    return fitted


def knows(shape: Any, name: str, renames: Renames, inside: str = "") -> bool:
    """Say whether a call has a parameter for a property."""
    return name in renames or _home(shape, name, inside) is not None


def _home(shape: Any, name: str, inside: str) -> str | None:
    found = _member(shape, name)
    if found or not inside:
        return found
    deeper = _member(shape.members[inside], name)
    return f"{inside}.{deeper}" if deeper else None


def _reach(shape: Any, target: str, params: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the structure that a dotted parameter lies in, made where missing, and its shape."""
    *above, last = target.split(".")
    for name in above:
        shape = shape.members[name]
        params = params.setdefault(name, {})
    return params, shape.members[last]


def _bare(name: str) -> str:
    return re.sub(r"\W|_", "", name).lower()


def _member(shape: Any, name: str) -> str | None:
    """Return the parameter of a property's name, in any case, in the singular or the plural."""
    bare = _bare(name)
    wanted = (bare, bare.removesuffix("s"), f"{bare}s")
    members = {_bare(member): member for member in shape.members}
    return next((members[w] for w in wanted if w in members), None)


class _Fitting:
    """Fits nested values, and notes in `Fitted` where they came from."""

    def __init__(self, fitted: Fitted, renames: Renames) -> None:
        self._fitted = fitted
        self._renames = renames

    def value(self, shape: Any, value: Any, path: str, target: str) -> Any:
        if unknown(value):
            return value
        kind = shape.type_name
        if kind == "structure":
            return self._structure(shape, value, path, target)
        if kind == "list":
            return self._list(shape, value, path, target)
        if kind == "map" and isinstance(value, Mapping):
            return {
                key: self.value(shape.value, inside, below(path, key), below(target, key))
                for key, inside in value.items()
            }
        return _scalar(kind, value)

    def _structure(self, shape: Any, value: Any, path: str, target: str) -> Any:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, Mapping):
            # EC2's attributes come as {"Value": true}.
            return {"Value": value} if list(shape.members) == ["Value"] else value
        made: dict[str, Any] = {}
        for key, inside in value.items():
            here = below(path, key)
            renamed = self._renames.get(plain_path(here), "")
            if renamed is None:
                continue
            member = renamed or _member(shape, key)
            if member is None:
                self._fitted.strays.append(here)
                continue
            there = below(target, member)
            self._fitted.origins[plain_path(there)] = here
            made[member] = self.value(shape.members[member], inside, here, there)
        return made

    def _list(self, shape: Any, value: Any, path: str, target: str) -> Any:
        if isinstance(value, Mapping) and _pair(shape.member):
            first, second = _pair(shape.member)
            return [{first: key, second: inside} for key, inside in value.items()]
        several = value if isinstance(value, list) else [value]
        return [
            self.value(shape.member, inside, f"{path}[{at}]", f"{target}[{at}]")
            for at, inside in enumerate(several)
        ]


def _pair(shape: Any) -> tuple[str, str] | tuple[()]:
    """Return the two members of a tag's structure, whatever they are called."""
    if shape.type_name != "structure":
        return ()
    for pair in (("Key", "Value"), ("TagKey", "TagValue"), ("key", "value")):
        if set(pair) <= set(shape.members):
            return pair
    return ()


def _scalar(kind: str, value: Any) -> Any:
    """Return a plain value in the type of its parameter, where its text says the same."""
    if kind == "string" and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str):
        return value
    if kind in {"integer", "long"} and re.fullmatch(r"-?\d+", value):
        return int(value)
    if kind == "boolean" and value in {"true", "false"}:
        return value == "true"
    return value.encode() if kind == "blob" else value


def refusals(shape: Any, value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Give what the model of a call refuses of its parameters: path and reason.

    botocore's own check looks at types and what is required; enums, patterns and lengths stand in
    its models, and the service would refuse them.
    """
    if unknown(value):
        return
    kind, limits = shape.type_name, shape.metadata
    if kind == "structure" and isinstance(value, Mapping):
        for name in shape.required_members:
            if name not in value:
                yield below(path, name), "is missing"
        for name, inside in value.items():
            if name not in shape.members:
                yield below(path, name), "is no parameter of this call"
            else:
                yield from refusals(shape.members[name], inside, below(path, name))
        return
    if kind == "list" and isinstance(value, list):
        yield from _out_of_range("has {} elements", len(value), limits, path)
        for at, inside in enumerate(value):
            yield from refusals(shape.member, inside, f"{path}[{at}]")
        return
    if kind == "map" and isinstance(value, Mapping):
        for name, inside in value.items():
            yield from refusals(shape.key, name, path)
            yield from refusals(shape.value, inside, below(path, str(name)))
        return
    yield from _refused_scalar(shape, value, path)


TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "double": (int, float),
    "float": (int, float),
    "boolean": (bool,),
    "blob": (bytes, str),
}


def _refused_scalar(shape: Any, value: Any, path: str) -> Iterator[tuple[str, str]]:
    kind, limits = shape.type_name, shape.metadata
    expected = TYPES.get(kind)
    wrong = expected and (
        not isinstance(value, expected) or (isinstance(value, bool) and kind != "boolean")
    )
    if kind in {"structure", "list", "map"} or wrong:
        yield path, f"must be a {kind}, not {value!r}"
    elif kind in {"integer", "long", "double", "float"}:
        yield from _out_of_range("is {}", value, limits, path)
    elif kind == "string":
        yield from _refused_text(value, limits, path)


def _refused_text(value: str, limits: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    if limits.get("enum") and value not in limits["enum"]:
        yield path, f"{value!r} is none of {', '.join(limits['enum'])}"
        return
    yield from _out_of_range(f"{value[:80]!r} has {{}} characters", len(value), limits, path)
    try:
        fits = not limits.get("pattern") or re.fullmatch(limits["pattern"], value, re.DOTALL)
    except re.error:  # one of Java's that Python doesn't read
        return
    if not fits:
        yield path, f"{value[:80]!r} doesn't match {limits['pattern']}"


def _out_of_range(
    said: str, number: float, limits: Mapping[str, Any], path: str
) -> Iterator[tuple[str, str]]:
    if number < limits.get("min", number):
        yield path, f"{said.format(number)}, at least {limits['min']} are needed"
    if number > limits.get("max", number):
        yield path, f"{said.format(number)}, at most {limits['max']} are allowed"


def taken(described: Mapping[str, Any], seen: Any) -> Any:
    """Return what a service answered in the form of a property that the SDK describes."""
    kind = described["is"]
    if kind == "object":
        first = seen[0] if isinstance(seen, list) and seen else seen
        return matching(described["fields"], first) if isinstance(first, Mapping) else None
    if kind == "list":
        several = seen if isinstance(seen, list) else [seen]
        return [taken(described["of"], inside) for inside in several]
    if kind == "map":
        return dict(seen) if isinstance(seen, Mapping) else None
    if isinstance(seen, str | int | float | bool):
        return seen if kind != "string" else _scalar("string", seen)
    return seen.isoformat() if hasattr(seen, "isoformat") else None


def matching(fields: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return those properties that an answer has, by their names in any case."""
    answers = {_bare(name): value for name, value in seen.items()}
    found: dict[str, Any] = {}
    for name, described in fields.items():
        bare = _bare(name)
        for wanted in (bare, bare.removesuffix("s"), f"{bare}s"):
            if wanted in answers and answers[wanted] is not None:
                found[name] = taken(described, answers[wanted])
                break
    return {name: value for name, value in found.items() if value is not None}


def is_base64(text: str) -> bool:
    """Say whether EC2 would take it as user data."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True
