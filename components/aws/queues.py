"""How queues are called: ``<prefix>_<team>_<endpoint>_tasks`` and ``…_dead``.

Names of environments, teams and endpoints hold no ``_``, so that no two of them ever make the same
name, and a pattern that ends in ``_*`` covers one team and never another whose name begins alike.
The two endings let a policy tell the queue of tasks from that of dead letters.
"""

from typing import NamedTuple

import pulumi
from pydantic import TypeAdapter

from ..contracts import In
from ..domain.keys import DEAD_QUEUE, TASK_QUEUE
from ..domain.names import K8sName, safe_name
from ..foundation import SqsQueues
from .account import AwsAccount
from .limits import SQS_NAME

_TASKS, _DEAD = f"_{TASK_QUEUE}", f"_{DEAD_QUEUE}"
_SHORTEST_ENDPOINT = 12
"""Room for an endpoint's name that had to be cut: its hash, and some of the name."""
_NAME: TypeAdapter[str] = TypeAdapter(K8sName)


def check_names(prefix: str, team: str = "t") -> None:
    """Refuse names that leave no room for those of endpoints.

    Raises:
        ValueError: naming what is too long or isn't a name.
    """
    _NAME.validate_python(prefix)
    _NAME.validate_python(team)
    if _room(prefix, team) < _SHORTEST_ENDPOINT:
        longest = SQS_NAME - _SHORTEST_ENDPOINT - len("__") - len(_TASKS)
        raise ValueError(
            f"prefix={prefix!r} and team={team!r} have {len(prefix) + len(team)} characters "
            f"together; at most {longest} leave room for an endpoint in the name of a queue"
        )


class Names(NamedTuple):
    """What an endpoint's queues are called."""

    tasks: str
    dead: str


def names(prefix: str, team: str, endpoint: str) -> Names:
    """Return the names of an endpoint's queue and of the queue of its dead letters.

    Raises:
        ValueError: as ``check_names`` does.
    """
    check_names(prefix, team)
    stem = f"{prefix}_{team}_{safe_name(endpoint, limit=_room(prefix, team))}"
    return Names(stem + _TASKS, stem + _DEAD)


def of_team(
    account: AwsAccount, prefix: str, team: str, key_arn: pulumi.Output[str] | None = None
) -> SqsQueues:
    """Return every queue of a team."""
    check_names(prefix, team)
    return SqsQueues(arn=account.arn("sqs", f"{prefix}_{team}_*"), key_arn=key_arn)


def of_all(
    account: AwsAccount, prefix: str, key_arn: pulumi.Output[str] | None = None
) -> SqsQueues:
    """Return every queue of an environment."""
    check_names(prefix)
    return SqsQueues(arn=account.arn("sqs", f"{prefix}_*"), key_arn=key_arn)


def url_prefix(account: AwsAccount, prefix: str) -> str:
    """Return what the URLs of an environment's queues begin with, before a team's name.

    The cacher refuses a registration whose queue begins otherwise.
    """
    return f"https://{account.service('sqs')}/{account.id}/{prefix}_"


def tasks_arn(arn: In[str]) -> pulumi.Output[str]:
    """Return the ARN, or the pattern, of queues of tasks alone."""
    return pulumi.Output.from_input(arn).apply(lambda it: it + _TASKS if it.endswith("*") else it)


def dead_arn(arn: In[str]) -> pulumi.Output[str]:
    """Return the same of the queues of their dead letters."""
    return pulumi.Output.from_input(arn).apply(lambda it: it.removesuffix(_TASKS) + _DEAD)


def _room(prefix: str, team: str) -> int:
    return SQS_NAME - len(f"{prefix}_{team}_") - len(_TASKS)
