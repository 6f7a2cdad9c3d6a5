"""What things are called in AWS, and what their services take as a name."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.aws_outputs import RANDOM
from tests.engine.stand_in_aws.kinds import KINDS
from tests.harness import Recorded

ALSO_NAMES = {
    "aws:ecr/repositoryCreationTemplate:RepositoryCreationTemplate": "prefix",
    "aws:route53/record:Record": "name",
}
"""What else there can be only one of, though it isn't the thing's own name."""


@dataclass(frozen=True)
class Name:
    """The name of one resource."""

    kind: str
    text: str
    ours: bool
    """Whether we give it; otherwise Pulumi makes it and adds random digits."""
    problem: str
    """Why its service wouldn't take it; empty if it does."""


def names(resources: Iterable[Recorded]) -> Iterator[Name]:
    """Yield what each resource of AWS is called that has a name."""
    for resource in resources:
        if not resource.is_aws:
            continue
        named = KINDS[resource.type].named
        if resource.type in ALSO_NAMES:
            text = resource.inputs[ALSO_NAMES[resource.type]]
            yield Name(resource.type, text, ours=True, problem="")
        if named is None:
            continue
        given = resource.inputs.get(named.property)
        made = f"{named.prefix}{resource.name}-{RANDOM}"
        text = given or (made.lower() if named.lower else made)
        problem = _problem(text, named.limit, named.pattern)
        yield Name(resource.type, text, ours=given is not None, problem=problem)


def _problem(text: str, limit: int, pattern: str) -> str:
    if len(text) > limit:
        return f"{text} has {len(text)} characters; at most {limit} fit"
    return "" if re.fullmatch(pattern or ".*", text) else f"{text} isn't like {pattern}"
