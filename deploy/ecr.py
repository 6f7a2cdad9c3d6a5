"""Logging in to ECR for as long as images are pushed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from lab.commands import write

from .errors import DeployError
from .images import Registry
from .preflight.aws import Aws, explain

STEP = "logging in to ECR"


@contextmanager
def logged_in(prefix: str, aws: Aws, file: Path) -> Iterator[Registry]:
    """Yield a registry that can be pushed to.

    The token is in no argument of a program and in no log: it is in a file that only its owner may
    read, and that goes when this ends. It is valid for 12 hours.

    Args:
        prefix: What the names of images begin with.
        aws: Who is asked for a token.
        file: Where it is kept meanwhile.

    Raises:
        DeployError: there is no token; the message says what to do.
    """
    try:
        answer = aws.client("ecr").get_authorization_token()
    except (BotoCoreError, ClientError) as error:
        row = explain(aws, STEP, error)
        raise DeployError(STEP, f"{row.found}; {row.todo}") from None
    # Already in the form in which such a file has it: base64 of user and password.
    login = {"auth": answer["authorizationData"][0]["authorizationToken"]}
    host = prefix.partition("/")[0]
    try:
        write(file, json.dumps({"auths": {host: login}}), 0o600)
        yield Registry(prefix, login=file)
    finally:
        file.unlink(missing_ok=True)
