"""What the tests of the preflight share: a plan, and an AWS that answers what it is told to."""

from typing import Any

import boto3
from botocore.stub import Stubber

from deploy.preflight.aws import Aws
from deploy.preflight.plan import PreflightPlan, WantedNodes

REGION = "us-east-1"
ACCOUNT = "123456789012"


def nodes(**changes: Any) -> WantedNodes:
    whole = {
        "name": "l40s",
        "instance_types": ("g6e.4xlarge",),
        "zones": ("us-east-1a", "us-east-1b"),
        "least": 1,
        "most": 4,
    }
    return WantedNodes(**{**whole, **changes})


def plan(**changes: Any) -> PreflightPlan:
    whole = {
        "environment": "dev-aws",
        "region": REGION,
        "zones": ("us-east-1a", "us-east-1b"),
        "kubernetes_version": "1.35",
        "cluster": "dev-aws",
    }
    return PreflightPlan(**{**whole, **changes})


# One for all tests: it keeps the models of the services, which take long to read.
SESSION = boto3.Session(aws_access_key_id="testing", aws_secret_access_key="testing")


class StubbedAws(Aws):
    """An AWS whose answers are written down before; each is checked against botocore's models."""

    def __init__(self) -> None:
        super().__init__(REGION, SESSION)
        self._stubs: dict[str, Stubber] = {}

    def stub(self, service: str) -> Stubber:
        if service not in self._stubs:
            self._stubs[service] = Stubber(self.client(service))
            self._stubs[service].activate()
        return self._stubs[service]

    def answer(
        self,
        service: str,
        operation: str,
        answer: dict[str, Any],
        asked: dict[str, Any] | None = None,
    ) -> None:
        self.stub(service).add_response(operation, answer, asked)

    def refuse(self, service: str, operation: str, code: str, message: str = "") -> None:
        self.stub(service).add_client_error(operation, code, message)

    def limit(self, service: str, code: str, value: float) -> None:
        """Answer the next question for a limit."""
        self.answer(
            "service-quotas",
            "get_service_quota",
            {"Quota": {"Value": value}},
            {"ServiceCode": service, "QuotaCode": code},
        )

    def all_was_asked(self) -> None:
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()
