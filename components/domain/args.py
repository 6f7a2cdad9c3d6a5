"""The base of every value that people write: frozen, checked, and strict about unknown fields."""

from collections.abc import Collection, Mapping
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationInfo, field_validator
from pydantic_core import core_schema


class Args(BaseModel):
    """A frozen value that refuses unknown fields and says which field is wrong.

    Raises:
        pydantic.ValidationError: naming the field, the value given, and the rule it breaks.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        use_enum_values=False,
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _shape_is_plain(cls, value: object, info: ValidationInfo) -> object:
        """Refuse a value known only after deployment where it would decide what is deployed."""
        name = info.field_name or "this field"
        field = cls.model_fields.get(name)
        if field is not None and not _mentions_output(field.annotation) and _holds_output(value):
            raise ValueError(
                f"{name} decides shape and must be a plain value, not an Output: "
                "write it in the program or read it from the stack's settings"
            )
        return value


class Opaque:
    """A value that args take as it is, without looking inside; for what isn't args itself."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(cls)


def _is_output_type(kind: object) -> bool:
    """Recognise Pulumi's Output by name, so that this room never imports Pulumi."""
    return isinstance(kind, type) and any(
        base.__name__ == "Output" and base.__module__.split(".")[0] == "pulumi"
        for base in kind.__mro__
    )


def _mentions_output(annotation: Any) -> bool:
    origin = getattr(annotation, "__origin__", annotation)
    return _is_output_type(origin) or any(_mentions_output(arg) for arg in get_args(annotation))


def _holds_output(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_output(item) for item in cast("Mapping[object, object]", value).values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds_output(item) for item in cast("Collection[object]", value))
    return _is_output_type(type(value))
