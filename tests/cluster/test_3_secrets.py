"""No secret stands in clear anywhere but in a Secret."""

import base64

import pytest

from deploy.local import FOUNDATION, PLATFORM

from .conftest import NAMESPACE, TEAM_NAMESPACE, Running

SHORTEST = 12
"""Shorter values of Secrets are names and ports, which stand elsewhere too."""


def every_secret(running: Running) -> set[str]:
    """Keys and passwords that stand in Secrets, without the hosts and names beside them."""
    namespaces = ("llm-platform-data", NAMESPACE, TEAM_NAMESPACE)
    values = set().union(*(running.secret_values(namespace) for namespace in namespaces))
    public = {"llm-platform-data", "us-east-1", "platform"}
    return {
        value
        for value in values
        if len(value) >= SHORTEST
        and value not in public
        and not value.startswith(("http://", "-----BEGIN CERTIFICATE"))
        and " " not in value
    }


@pytest.mark.parametrize("stack", [FOUNDATION, PLATFORM])
def test_the_exported_state_has_no_secret_in_clear(running: Running, stack: str) -> None:
    exported = running.pulumi("stack", "export", "--stack", stack)
    assert exported.returncode == 0, exported.stderr
    secrets = every_secret(running)
    assert running.admin_key in secrets
    assert running.team_key in secrets
    for secret in secrets:
        assert secret not in exported.stdout
        assert base64.b64encode(secret.encode()).decode() not in exported.stdout


def test_no_other_object_and_no_log_holds_a_secret(running: Running) -> None:
    secrets = every_secret(running)
    for namespace in ("llm-platform-data", NAMESPACE, TEAM_NAMESPACE):
        kinds = "configmaps,pods,deployments,statefulsets,services,jobs"
        shown = running.kubectl("get", kinds, "--namespace", namespace, "--output", "yaml")
        for pod in running.objects("pods", namespace):
            shown += running.kubectl(
                *("logs", pod["metadata"]["name"], "--namespace", namespace),
                "--all-containers",
            )
        leaked = [secret[:6] for secret in secrets if secret in shown]
        assert leaked == []
