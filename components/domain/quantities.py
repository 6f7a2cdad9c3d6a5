"""Kubernetes quantities: the strings that say how much memory, processor or disk."""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator

_QUANTITY = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<suffix>[A-Za-z]*)")
_FACTORS = {
    "": Decimal(1),
    "m": Decimal(1) / 1000,
    "k": Decimal(1000),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("MGTPE", start=2)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


def parse_quantity(value: str) -> Decimal:
    """Return the number that a quantity stands for: ``"1Gi"`` is 1073741824, ``"500m"`` is 0.5.

    Raises:
        ValueError: naming the value and the spelling that was probably meant.
    """
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise ValueError(
            f"{value!r} isn't a Kubernetes quantity: write a number and a unit, such as 500m or 4Gi"
        )
    number, suffix = match["number"], match["suffix"]
    if suffix not in _FACTORS:
        raise ValueError(f"{value!r} isn't a Kubernetes quantity: {_suggestion(number, suffix)}")
    return Decimal(number) * _FACTORS[suffix]


def _suggestion(number: str, suffix: str) -> str:
    letter = suffix[:1].upper()
    if letter in "KMGTPE" and suffix[1:].lower() in {"", "b", "ib", "i"}:
        decimal = "k" if letter == "K" else letter
        return f"did you mean {number}{letter}i / {number}{decimal}?"
    return f"unknown unit {suffix!r}; known: {', '.join(unit for unit in _FACTORS if unit)}"


def _quantity(value: str) -> str:
    if parse_quantity(value) <= 0:
        raise ValueError(f"{value!r} must be more than zero")
    return value


Quantity = Annotated[str, AfterValidator(_quantity)]
"""An amount above zero as Kubernetes writes it: ``500m`` processors, ``4Gi`` of memory."""
