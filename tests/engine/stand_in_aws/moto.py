"""The cloud behind the stand-in: boto3's models, and boto3's calls to a moto server."""

import os
import re
from functools import cache
from typing import Any

ACCOUNT = "123456789012"
MISSING = re.compile(
    r"NotFound|NoSuch|NonExistent|DoesNotExist|ResourceNotFound|^404$|UnknownResource"
)


class CloudError(Exception):
    """What the service answered, or would answer."""

    def __init__(self, code: str, message: str, operation: str = "") -> None:
        said = f"operation error {operation}: {code}: {message}" if operation else message
        super().__init__(said)
        self.code = code

    @property
    def missing(self) -> bool:
        """Whether it says that the thing isn't there."""
        return bool(MISSING.search(self.code))


@cache
def _session() -> Any:
    import botocore.session

    return botocore.session.get_session()


@cache
def _service(name: str) -> Any:
    return _session().get_service_model(name)


@cache
def _client(service: str, region: str, endpoint: str) -> Any:
    from botocore.config import Config

    return _session().create_client(
        service,
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id="stand-in",
        aws_secret_access_key="stand-in",
        config=Config(
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
            proxies={},
            read_timeout=300,  # moto reads its lists of instances and policies at the first call
        ),
    )


class Cloud:
    """One region of the account."""

    def __init__(self, region: str, endpoint: str = "") -> None:
        self.region = region
        self.account = ACCOUNT
        self._endpoint = endpoint or os.environ.get("STAND_IN_AWS_ENDPOINT", "")

    def input(self, service: str, operation: str) -> Any:
        """Return the model of a call's parameters."""
        return _service(service).operation_model(operation).input_shape

    def client(self, service: str) -> Any:
        """Return boto3's client for the moto server."""
        if not self._endpoint:
            raise CloudError("NoEndpoint", "STAND_IN_AWS_ENDPOINT names no moto server")
        return _client(service, self.region, self._endpoint)

    def call(self, service: str, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """Make a call, and return what moto answered."""
        from botocore import exceptions, parsers, xform_name

        try:
            return getattr(self.client(service), xform_name(operation))(**params)
        except exceptions.ClientError as error:
            said = error.response["Error"]
            code, message = str(said.get("Code", "")), str(said.get("Message", ""))
            raise CloudError(code, message, operation) from error
        except exceptions.ParamValidationError as error:
            raise CloudError("ParamValidation", str(error), operation) from error
        except (parsers.ResponseParserError, exceptions.BotoCoreError) as error:
            raise CloudError("StandIn", f"moto failed: {error}", operation) from error

    def find(self, service: str, operation: str, path: str, **params: Any) -> Any:
        """Make a call and return a part of its answer, or None when the thing isn't there."""
        import jmespath

        try:
            return jmespath.search(path, self.call(service, operation, params))
        except CloudError as error:
            if error.missing:
                return None
            raise
