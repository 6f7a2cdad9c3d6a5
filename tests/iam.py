"""What IAM would say to a request, as far as our policies go.

An explicit denial counts most, then an allowance, and what isn't allowed is denied. A condition on
a key that the request doesn't have isn't met. Operators that we don't use are an error here.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Policy = Mapping[str, Any]


def _matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    parts = [{"*": ".*", "?": "."}.get(part) or re.escape(part) for part in pattern]
    flags = re.IGNORECASE if ignore_case else 0
    return re.fullmatch("".join(parts), text, flags) is not None


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _condition(operator: str, wanted: Any, given: str | None) -> bool:
    if given is None:
        return False
    values = [str(it) for it in _listed(wanted)]
    match operator:
        case "StringEquals" | "Bool":
            return given in values
        case "StringLike" | "ArnLike" | "ArnEquals":
            return any(_matches(value, given) for value in values)
        case _:
            raise AssertionError(f"unknown operator {operator}")


def _applies(
    statement: Mapping[str, Any], action: str, resource: str, context: Mapping[str, str]
) -> bool:
    return (
        any(_matches(it, action, ignore_case=True) for it in _listed(statement["Action"]))
        and any(_matches(it, resource) for it in _listed(statement["Resource"]))
        and all(
            _condition(operator, wanted, context.get(key))
            for operator, keys in statement.get("Condition", {}).items()
            for key, wanted in keys.items()
        )
    )


def allowed(
    policy: Policy, action: str, resource: str, context: Mapping[str, str] | None = None
) -> bool:
    """Say whether a policy allows an action on a resource."""
    effects = {
        statement["Effect"]
        for statement in policy["Statement"]
        if _applies(statement, action, resource, context or {})
    }
    return "Allow" in effects and "Deny" not in effects


def granted(policy: Policy) -> set[tuple[str, str]]:
    """Return every action that a policy allows, with the pattern of what it may be done to."""
    return {
        (action, resource)
        for statement in policy["Statement"]
        if statement["Effect"] == "Allow"
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }
