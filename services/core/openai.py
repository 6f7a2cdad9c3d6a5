"""OpenAI's wire form of errors, the same from every layer."""

import json

RETRY_AFTER_SECONDS = 1


def error_body(
    status: int, message: str, *, code: str | None = None, param: str | None = None
) -> bytes:
    """Return the JSON document that OpenAI's clients read an error from."""
    error = {"message": message, "type": error_type(status), "param": param, "code": code}
    return json.dumps({"error": error}).encode()


def error_type(status: int) -> str:
    """Return OpenAI's name for this class of errors."""
    names = {
        401: "authentication_error",
        403: "permission_error",
        429: "rate_limit_error",
        503: "service_unavailable_error",
        504: "timeout_error",
    }
    return names.get(status, "invalid_request_error" if status < 500 else "server_error")


def error_event(body: bytes) -> bytes:
    """Return ``body`` as a server-sent event, for an error after the answer has begun."""
    return b"data: " + body + b"\n\n"
