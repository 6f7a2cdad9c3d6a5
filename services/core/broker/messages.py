"""The text of a task's message, as Celery writes it."""

import base64
import json
from typing import Any


def task_id_of(message: dict[str, Any]) -> str:
    """Return the id of a message's task, or nothing when it is no task's."""
    headers = message.get("headers")
    return str(headers.get("id", "")) if isinstance(headers, dict) else ""


def with_expiry(message: dict[str, Any], expires_at: float) -> dict[str, Any]:
    """Return a message whose task may run until ``expires_at``."""
    arguments, kwargs, embedded = json.loads(base64.b64decode(message["body"]))
    kwargs["expires_at"] = expires_at
    body = json.dumps([arguments, kwargs, embedded]).encode()
    return {**message, "body": base64.b64encode(body).decode()}
