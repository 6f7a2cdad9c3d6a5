"""What the SDK's own classes say of a resource: its properties, their types, what is required.

A description is plain data, so that one process can keep it for the next (importing the SDK's
classes takes longer than everything else here). The key `is` tells what a value must be::

    {"is": "object", "fields": {"cidrBlock": {"is": "string"}, ...}, "required": [...]}
    {"is": "list", "of": ...}  {"is": "map", "of": ...}  {"is": "string", "values": [...]}
"""

import enum
import importlib
import importlib.metadata
import inspect
import json
import os
import re
import typing
import warnings
from collections import abc
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

Described = dict[str, Any]

# Enums that list what AWS had when the SDK was made, where the service takes more.
OPEN_ENUMS = {"ManagedPolicy", "InstanceType"}
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
ANYTHING: Described = {"is": "any"}
PROVIDER = "pulumi:providers:aws"


@cache
def resource(token: str) -> Described | None:
    """Return `{"inputs": ..., "outputs": ...}` of a type, or None when the SDK has no such type."""
    kept = _kept(token)
    if kept is not None and kept.exists():
        return json.loads(kept.read_text())
    with warnings.catch_warnings():
        # Importing one type's file may import others that the SDK has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        described = _provider() if token == PROVIDER else _describe(token)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(described))
        partial.replace(kept)
    return described


def _kept(token: str) -> Path | None:
    """Return the file that keeps a description for this version of the SDK, if any does."""
    folder = os.environ.get("STAND_IN_AWS_CACHE")
    if not folder:
        return None
    version = importlib.metadata.version("pulumi_aws")
    return Path(folder) / f"sdk-{version}" / (re.sub(r"\W", "_", token) + ".json")


def _describe(token: str) -> Described | None:
    from pulumi._types import resource_types

    path = token.split(":")[1]
    folder, _, name = path.partition("/")
    file = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    try:
        module = importlib.import_module(f"pulumi_aws.{folder}.{file}")
        made = getattr(module, token.rpartition(":")[2])
    except (ImportError, AttributeError):
        return None
    # A resource's arguments are the first public name of its file; by its name it could be another
    # class (s3.BucketVersioningArgs is also a part of s3.Bucket).
    arguments = getattr(module, module.__all__[0])
    outputs = {name: of_type(kind) for name, kind in resource_types(made).items()}
    return {"inputs": of_class(arguments), "outputs": {"is": "object", "fields": outputs}}


def _provider() -> Described:
    module = importlib.import_module("pulumi_aws.provider")
    return {"inputs": of_class(module.ProviderArgs), "outputs": ANYTHING}


def of_class(made: type, above: tuple[type, ...] = ()) -> Described:
    """Describe an `...Args` class, or the class of a nested output."""
    from pulumi import _types

    if made in above:
        return ANYTHING
    if not _types.is_input_type(made):
        parts = _types.output_type_types(made)
        return {"is": "object", "fields": {k: of_type(v, (*above, made)) for k, v in parts.items()}}
    names = _types.input_type_py_to_pulumi_names(made)
    types = _types.input_type_types(made)
    given = inspect.signature(made.__init__).parameters
    return {
        "is": "object",
        "fields": {names[n]: of_type(types[names[n]], (*above, made)) for n in given if n in names},
        "required": [
            names[n]
            for n, parameter in given.items()
            if n in names and parameter.default is inspect.Parameter.empty
        ],
    }


def of_type(declared: Any, above: tuple[type, ...] = ()) -> Described:
    """Describe a declared type, with Output, Awaitable and None taken off."""
    kinds = _alternatives(declared)
    values = _closed_enum(kinds)
    kinds = tuple(kind for kind in kinds if not _is_enum(kind)) or (str,)
    if len(kinds) > 1:
        # A policy may be a text or an object: the provider makes a text of it.
        return {"is": "json"} if str in kinds else ANYTHING
    described = _one(kinds[0], above)
    return {**described, "values": values} if values else described


def _one(kind: Any, above: tuple[type, ...]) -> Described:
    from pulumi import _types

    if kind in PLAIN:
        return {"is": PLAIN[kind]}
    origin, inside = get_origin(kind), get_args(kind)
    if origin in {abc.Sequence, list}:
        return {"is": "list", "of": of_type(inside[0], above)}
    if origin in {abc.Mapping, dict}:
        return {"is": "map", "of": of_type(inside[1], above)}
    if isinstance(kind, type) and (_types.is_input_type(kind) or _types.is_output_type(kind)):
        return of_class(kind, above)
    return ANYTHING


def _alternatives(declared: Any) -> tuple[Any, ...]:
    """Return the types that a declared one allows, without what only carries them."""
    import pulumi

    if get_origin(declared) in {typing.Union, UnionType}:
        found = [kind for part in get_args(declared) for kind in _alternatives(part)]
        return tuple(dict.fromkeys(found))
    carrier = get_origin(declared) in {abc.Awaitable, pulumi.Output}
    if carrier or declared is NoneType or isinstance(declared, typing.ForwardRef):
        return ()
    return (declared,)


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def _closed_enum(kinds: tuple[Any, ...]) -> list[Any] | None:
    """Return the values of an enum among the types, or None when any value will do."""
    for kind in kinds:
        if _is_enum(kind) and kind.__name__ not in OPEN_ENUMS:
            return [member.value for member in kind]
    return None
