"""One question to the platform, through its gateway, as any client would ask it."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from lab.progress import Heartbeat, Report

from .errors import DeployError

QUESTION = "What is the capital of France?"
_READY_LIMIT_SECONDS = 180
_ANSWER_LIMIT_SECONDS = 300
# Asked again: the endpoint is being found, or all its workers are busy with somebody else.
_NOT_YET = {HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


@dataclass(frozen=True)
class Gateway:
    """Where to ask, and with which key."""

    address: str
    key: str

    def ask(self, model: str, question: str, report: Report) -> str:
        """Ask once, waiting for an endpoint that isn't known or ready yet, and return the answer.

        Raises:
            DeployError: there is no answer; the message has the gateway's own words.
        """
        step, body = f"asking {model}", _body(model, question)
        reply = self._patiently(step, lambda: self._call("/v1/chat/completions", body), report)
        return str(reply["choices"][0]["message"]["content"]).strip()

    def models(self, report: Report) -> list[str]:
        """Return the names of the endpoints that there are, waiting for the gateway.

        Raises:
            DeployError: there is no answer; the message has the gateway's own words.
        """
        reply = self._patiently("asking for models", lambda: self._call("/v1/models"), report)
        return [str(model["id"]) for model in reply["data"]]

    def _patiently(
        self, step: str, call: Callable[[], dict[str, Any]], report: Report
    ) -> dict[str, Any]:
        """Call until there is an answer, or one that won't change by waiting."""
        heartbeat = Heartbeat(report, step)
        deadline = time.monotonic() + _READY_LIMIT_SECONDS
        while True:
            try:
                return call()
            except urllib.error.HTTPError as error:
                said = error.read().decode(errors="replace")
                if error.code not in _NOT_YET or time.monotonic() > deadline:
                    raise DeployError(
                        step, f"{self.address} answered {error.code}: {said}"
                    ) from None
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise DeployError(step, f"{self.address} can't be reached: {error}") from None
            heartbeat.beat("waiting for it to be ready")
            time.sleep(0.5)

    def curl(self, model: str, question: str) -> str:
        """Return the command that asks the same."""
        body = json.dumps(_body(model, question))
        return (
            f"curl {self.address}/v1/chat/completions -H 'Authorization: Bearer '$LLM_PLATFORM_KEY "
            f"-H 'Content-Type: application/json' -d '{body}'"
        )

    def curl_models(self) -> str:
        """Return the command that asks which models there are."""
        return f"curl {self.address}/v1/models -H 'Authorization: Bearer '$LLM_PLATFORM_KEY"

    def _call(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the address is the stack's own output
            self.address + path,
            data=json.dumps(body).encode() if body else None,
            headers={
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=_ANSWER_LIMIT_SECONDS) as reply:  # noqa: S310
            return json.load(reply)


def _body(model: str, question: str) -> dict[str, Any]:
    # Bounded and without chance: a small model may ramble on, and each time otherwise.
    return {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 60,
        "temperature": 0,
    }
