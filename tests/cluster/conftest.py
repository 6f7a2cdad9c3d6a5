"""The platform as ``make up`` brings it up, on the lab's real cluster, once for all these tests."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types import Completion

from deploy import session
from deploy.engine import Engine
from deploy.local import PLATFORM
from deploy.paths import REPOSITORY, Paths
from lab import cluster as lab
from lab.paths import LabPaths

NAMESPACE, TEAM_NAMESPACE = "llm-platform", "team-demo"


def make_up() -> subprocess.Popen[bytes]:
    """Start what ``make up`` runs, its lines going where the test run's go."""
    return subprocess.Popen([sys.executable, "-m", "deploy", "up"], cwd=REPOSITORY)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all below it at once, as a power cut would."""
    for pid in [process.pid, *_below(process.pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _below(pid: int) -> list[int]:
    done = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, check=False
    )
    direct = [int(word) for word in done.stdout.split()]
    return direct + [deeper for child in direct for deeper in _below(child)]


@pytest.fixture(scope="session")
def lines_shown(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Lets what a step prints through: bringing a platform up takes minutes."""
    return request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled


@dataclass(frozen=True)
class Running:
    """The platform under test."""

    engine: Engine
    address: str
    admin_key: str
    team_key: str
    clients: dict[str, openai.OpenAI] = field(default_factory=dict)

    def client(self, key: str | None = None) -> openai.OpenAI:
        key = key or self.team_key
        if key not in self.clients:
            self.clients[key] = openai.OpenAI(
                base_url=f"{self.address}/v1", api_key=key, timeout=120, max_retries=0
            )
        return self.clients[key]

    def long_stream(self, tokens: int) -> openai.Stream[Completion]:
        """Open a stream that has exactly so many tokens: the engine may not end it earlier."""
        return self.client().completions.create(
            model="gemma",
            prompt="One, two, three, four, five,",
            max_tokens=tokens,
            temperature=0,
            stream=True,
            extra_body={"ignore_eos": True},
        )

    def kubectl(self, *arguments: str) -> str:
        done = subprocess.run(
            ["kubectl", *arguments],
            env=dict(self.engine.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def objects(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        arguments = ["get", kind, "--namespace", namespace, "--output", "json"]
        if selector:
            arguments += ["--selector", selector]
        return json.loads(self.kubectl(*arguments))["items"]

    def secret_values(self, namespace: str) -> set[str]:
        return {
            base64.b64decode(value).decode(errors="replace")
            for secret in self.objects("secrets", namespace)
            for value in secret.get("data", {}).values()
        }

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive", "--color=never"],
            cwd=REPOSITORY,
            env=dict(self.engine.environ),
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="session")
def machine_before() -> dict[str, set[str]]:
    """What the machine had before the first platform, or nothing when one was up already."""
    return {} if LabPaths.of_this_user().state.exists() else machine()


@pytest.fixture(scope="session")
def running(
    lines_shown: Callable[[], Any], machine_before: dict[str, set[str]]
) -> Iterator[Running]:
    """Bring the platform up; take down again what wasn't up before."""
    with lines_shown():
        print(flush=True)
        assert make_up().wait() == 0
    paths = Paths.of_user()
    engine = session.open_engine(paths, print)
    outputs = engine.outputs(PLATFORM)
    running = Running(
        engine, outputs["gateway_address"], outputs["admin_key"], outputs["team_demo_gateway_key"]
    )
    yield running
    for client in running.clients.values():
        client.close()
    if machine_before and LabPaths.of_this_user().state.exists():
        with lines_shown():
            lab.down(print)


def machine() -> dict[str, set[str]]:
    """What a lab might leave on a machine: interfaces, routes, mounts, rules, processes."""

    def lines(*command: str) -> set[str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return {line.strip() for line in done.stdout.splitlines() if line.strip()}

    return {
        "interfaces": {line.split()[1] for line in lines("ip", "-o", "link")},
        "routes": lines("ip", "route"),
        "namespaces": lines("ip", "netns"),
        "mounts": {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()},
        "rules": {line for line in lines("iptables-save") if line.startswith(("-A", "-N"))},
        "forwarding": {Path("/proc/sys/net/ipv4/ip_forward").read_text().strip()},
        "run": {str(path) for path in Path("/run").iterdir()},
        "processes": {
            line
            for line in lines("ps", "-eo", "args")
            if "llm-platform" in line and "pytest" not in line and "ps -eo" not in line
        },
    }
