"""Asking AWS, and saying what it means when it doesn't answer."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own, of which all its network errors are
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

from .report import Row, cant_tell, would_fail

Check = Callable[[], Iterable[Row]]

# A preflight is watched by a person: rather no answer soon than one after minutes.
_PATIENCE = Config(
    connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3}
)

NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
"""What botocore raises when it has nothing to sign a request with."""

_DENIED = {
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "UnauthorizedOperation",
    "UnauthorizedException",
}
_BAD_CREDENTIALS = {
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "OptInRequired",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_TOO_OFTEN = {
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "RequestLimitExceeded",
}
_ACTION = re.compile(r"perform:? ([a-z0-9-]+:[A-Za-z]+)")
_WORDS = 200
# Where the name of a service in a policy isn't the one of its client.
_PREFIXES = {"service-quotas": "servicequotas"}


class Aws:
    """The clients of one region, made when they are first asked for, and closed on leaving it.

    Args:
        region: Where.
        session: Whose credentials; the environment's own when left out.
    """

    def __init__(self, region: str, session: boto3.Session | None = None) -> None:
        self.region = region
        self._session = session
        self._clients: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.close()

    def client(self, service: str) -> Any:
        """Return the client of a service.

        Raises:
            ProfileNotFound: ``AWS_PROFILE`` names a profile that isn't there.
        """
        if service not in self._clients:
            session = self._session or boto3.Session()
            self._clients[service] = session.client(
                service, region_name=self.region, config=_PATIENCE
            )
        return self._clients[service]

    def service_of(self, operation: str) -> str:
        """Return the service that an operation belongs to, among those that were asked."""
        for service, client in self._clients.items():
            if operation in client.meta.service_model.operation_names:
                return service
        return "aws"

    def pages(self, service: str, operation: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
        """Yield all pages of an answer."""
        yield from self.client(service).get_paginator(operation).paginate(**arguments)


def rows_of(aws: Aws, check: str, ask: Check) -> list[Row]:
    """Return what a check finds, and the row that says why it can't find more.

    Args:
        aws: Who is asked.
        check: What is looked at.
        ask: The check.
    """
    found: list[Row] = []
    try:
        found.extend(ask())
    except (ClientError, BotoCoreError) as error:
        found.append(explain(aws, check, error))
    return found


def code_of(error: ClientError) -> str:
    """Return the code of an error that AWS answered."""
    return str(error.response.get("Error", {}).get("Code", ""))


def explain(aws: Aws, check: str, error: Exception) -> Row:
    """Return the row that says what an error means and what to do about it."""
    if isinstance(error, NO_CREDENTIALS):
        return would_fail(check, f"there are no credentials: {error}", LOG_IN)
    if isinstance(error, ConnectionError):
        return cant_tell(
            check,
            f"AWS can't be reached: {error}",
            "see that this machine reaches AWS in that region (network, proxy, the region's name)",
        )
    if isinstance(error, ClientError):
        return _answered(aws, check, error)
    return cant_tell(check, str(error), "run it again; when it stays, tell the authors")


LOG_IN = "log in (`aws sso login`, or set AWS_PROFILE), then `aws sts get-caller-identity`"
"""What to do without credentials."""


def _answered(aws: Aws, check: str, error: ClientError) -> Row:
    code = code_of(error)
    if code in _DENIED:
        action = missing_permission(aws, error)
        return cant_tell(
            check,
            f"the permission {action} is missing",
            f"let these credentials do {action}, or look it up as somebody who may",
        )
    if code in _BAD_CREDENTIALS:
        return would_fail(
            check,
            f"AWS refuses the credentials ({code})",
            f"{LOG_IN}; or the region isn't enabled in this account",
        )
    if code in _TOO_OFTEN:
        return cant_tell(check, f"AWS is asked too often ({code})", "run it again in a minute")
    words = str(error.response.get("Error", {}).get("Message", ""))[:_WORDS]
    found = f"{error.operation_name} answered {code}: {words}"
    return cant_tell(check, found, "see what it says, and run it again")


def missing_permission(aws: Aws, error: ClientError) -> str:
    """Return the IAM action that was refused: as AWS names it, or else as the call is called."""
    named = _ACTION.search(error.response.get("Error", {}).get("Message", ""))
    if named:
        return named[1]
    service = aws.service_of(error.operation_name)
    return f"{_PREFIXES.get(service, service)}:{error.operation_name}"
