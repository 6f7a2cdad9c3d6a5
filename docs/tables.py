"""Writes the tables in docs/components/: ``python docs/tables.py`` (``--check`` only compares).

Each page is written by hand but for what stands between its two markers, which comes from the
component itself: what it is and creates, its arguments, the values that only a cloud has among
them, its outputs.
"""

import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import pulumi
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "components"
CLOUDS = "components.aws."
"""The rooms of the clouds; values of others are told of on the pages by hand."""
EVERYWHERE = {"AwsAccount"}
"""Values of so many components that they stand in the examples alone."""
BEGIN, END = "<!-- generated: python docs/tables.py -->", "<!-- /generated -->"


def pages() -> dict[str, str]:
    """Return the generated part of each component's page, by the component's name."""
    sys.path.insert(0, str(ROOT))
    import components  # noqa: PLC0415 - found once the root is on the path

    kinds = {name: getattr(components, name) for name in components.__all__}
    return {
        name: generated(kind, kinds.get(f"{name}Args"))
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, pulumi.ComponentResource)
    }


def generated(kind: type, args: type | None) -> str:
    """Return what a component says of itself, as Markdown."""
    parts = [inspect.getdoc(kind) or "", ""]
    if args is not None:
        parts += ["### Arguments", "", *table(args)]
        for value in dict.fromkeys(values(args)):
            parts += [f"### `{value.__name__}`", "", inspect.getdoc(value) or "", "", *table(value)]
    outputs = [
        f"| `{name}` | `{type_name(hint)}` |"
        for name, hint in inspect.get_annotations(kind).items()
        if not name.startswith("_")
    ]
    if outputs:
        parts += ["### Outputs", "", "| name | type |", "|---|---|", *outputs, ""]
    return "\n".join(parts).replace("``", "`")


def table(args: type) -> list[str]:
    """Return the table of what a value consists of."""
    fields: dict[str, FieldInfo] = args.model_fields  # pyright: ignore[reportAttributeAccessIssue]
    rows = [argument(name, field) for name, field in fields.items()]
    return ["| name | type | default | meaning |", "|---|---|---|---|", *rows, ""]


def values(args: type) -> Iterator[type]:
    """Yield the values among a component's arguments that have no page of their own."""
    fields: dict[str, FieldInfo] = args.model_fields  # pyright: ignore[reportAttributeAccessIssue]
    for field in fields.values():
        for kind in inside(field.annotation):
            own_page = kind.__name__.endswith("Args") or kind.__name__ in EVERYWHERE
            if kind.__module__.startswith(CLOUDS) and not own_page:
                yield kind


def inside(hint: object) -> Iterator[type[BaseModel]]:
    """Yield the models that a type is made of."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
    for part in typing.get_args(hint):
        yield from inside(part)


def argument(name: str, field: FieldInfo) -> str:
    """Return one row of the table of arguments."""
    meaning = " ".join((field.description or "").split()).replace("|", "\\|")
    return f"| `{name}` | `{type_name(field.annotation)}` | {default(field)} | {meaning} |"


def default(field: FieldInfo) -> str:
    """Return the default as people would write it."""
    if field.default_factory is not None:
        made = field.default_factory()  # pyright: ignore[reportCallIssue]
        return f"`{type(made).__name__}()`" if made else "none"
    if field.default is PydanticUndefined:
        return "required"
    if field.default is None:
        return "none"
    return f"`{shown(field.default)}`"


def shown(value: object) -> str:
    """Return a value as people would write it: what it leaves out is left out."""
    if isinstance(value, BaseModel):
        said = (name for name in type(value).model_fields if name in value.model_fields_set)
        fields = ", ".join(f"{name}={shown(getattr(value, name))}" for name in said)
        return f"{type(value).__name__}({fields})"
    if isinstance(value, tuple) and value:
        inner = ", ".join(map(shown, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


def type_name(hint: object) -> str:
    """Return a type as people would read it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return type_name(arguments[0])
    if origin in {typing.Union, types.UnionType}:
        plain = [kind for kind in arguments if typing.get_origin(kind) is not pulumi.Output]
        if set(plain) == {types.NoneType}:
            plain = list(arguments)
        names = " or ".join(type_name(kind) for kind in plain)
        return f"In[{names}]" if len(plain) < len(arguments) else names
    if hint is types.NoneType:
        return "None"
    if origin is not None:
        inner = ", ".join("..." if kind is ... else type_name(kind) for kind in arguments)
        return f"{getattr(origin, '__name__', origin)}[{inner}]"
    return getattr(hint, "__name__", str(hint))


def merged(page: str, text: str) -> str:
    """Return a page with its generated part replaced."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{text}{END}", page)


def main() -> int:
    """Write the pages, or say which aren't current."""
    stale: list[str] = []
    for name, text in pages().items():
        path = PAGES / f"{name}.md"
        page = path.read_text()
        if merged(page, text) != page:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(merged(page, text))
    if stale:
        sys.stdout.write("\n".join(stale) + "\n")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
