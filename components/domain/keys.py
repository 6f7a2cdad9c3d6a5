"""Names in Redis: written once here, so that what writes a key and what may read it agree."""

TASK_QUEUE = "tasks"
"""The queue of an asynchronous endpoint's tasks, under the endpoint's prefix."""

DEAD_QUEUE = "dead"
"""The list of tasks that were delivered too often, under the same prefix."""

ACTIVATION_PREFIX = "llm-platform:activation:"
"""What the activation list of every endpoint begins with."""

TASKS_PREFIX = "llm-platform:tasks:"
"""What everything of every endpoint's tasks begins with."""

SCALER_USER = "scaler"
"""The Redis user of the autoscaler, who may ask for the lengths of activation lists only."""


def activation_key(namespace: str, endpoint: str) -> str:
    """Return the list that isn't empty while an endpoint is wanted."""
    return f"{ACTIVATION_PREFIX}{namespace}:{endpoint}"


def team_prefix(team: str) -> str:
    """Return what everything of a team's tasks begins with: all that the team may touch."""
    return f"{TASKS_PREFIX}{team}:"


def task_prefix(team: str, endpoint: str) -> str:
    """Return what everything of one endpoint's tasks begins with."""
    return f"{team_prefix(team)}{endpoint}:"


def team_user(team: str) -> str:
    """Return the Redis user of a team's workers."""
    return f"team-{team}"


SCALER_RIGHTS = (
    f"~{ACTIVATION_PREFIX}* resetchannels "
    "-@all +eval +type +llen +ping +hello +select +client|setname"
)
"""What KEDA may do: it asks for a list's length with a script, which may do no more than its user.

Every command here is one that older servers know too: one that they don't would keep them down.
"""
