"""Pods killed one after the other under load: everything comes back, nothing hangs or is lost."""

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import openai
import pytest

from .conftest import NAMESPACE, TEAM_NAMESPACE, Running

COMES_BACK_LIMIT_SECONDS = 240
REQUEST_LIMIT_SECONDS = 100
CLEAN = {"answered", "429", "502", "503", "broken stream said so", "refused connection"}


class Load:
    """Clients that ask without a pause; each outcome is counted."""

    def __init__(self, running: Running, clients: int = 3) -> None:
        self.outcomes: Counter[str] = Counter()
        self.longest_seconds = 0.0
        self._running = running
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._ask_on) for _ in range(clients)]

    @contextmanager
    def applied(self) -> Iterator["Load"]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            for thread in self._threads:
                thread.join(REQUEST_LIMIT_SECONDS + 20)
                assert not thread.is_alive(), f"a request hangs; so far: {self.outcomes}"

    def _ask_on(self) -> None:
        with httpx.Client(timeout=REQUEST_LIMIT_SECONDS) as client:
            while not self._ending.is_set():
                started = time.monotonic()
                outcome = self._ask(client)
                self.longest_seconds = max(self.longest_seconds, time.monotonic() - started)
                self.outcomes[outcome] += 1
                if outcome != "answered":
                    self._ending.wait(0.2)

    def _ask(self, client: httpx.Client) -> str:
        body = {
            "model": "gemma",
            "prompt": "One, two, three, four, five,",
            "max_tokens": 24,
            "ignore_eos": True,
            "stream": True,
        }
        url = f"{self._running.address}/v1/completions"
        headers = {"Authorization": f"Bearer {self._running.team_key}"}
        text = ""
        try:
            with client.stream("POST", url, json=body, headers=headers) as reply:
                for part in reply.iter_text():
                    text += part
                if reply.status_code != 200:
                    return str(reply.status_code)
        except httpx.ConnectError:
            return "refused connection"
        except httpx.RemoteProtocolError:
            # Only when the gateway itself was killed under the stream can it not say so.
            return "cut off"
        except httpx.ReadError:
            return "cut off"
        if "data: [DONE]" in text:
            return "answered"
        return "broken stream said so" if '"error"' in text else f"incomplete: {text[-80:]!r}"


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + COMES_BACK_LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {COMES_BACK_LIMIT_SECONDS} s"
        time.sleep(0.3)


def answers(running: Running) -> bool:
    try:
        reply = running.client().chat.completions.create(
            model="gemma", messages=[{"role": "user", "content": "Say hi."}], max_tokens=3
        )
    except openai.OpenAIError:
        return False
    return bool(reply.choices)


def ready_pods(running: Running, namespace: str, selector: str) -> set[str]:
    return {
        pod["metadata"]["uid"]
        for pod in running.objects("pods", namespace, selector)
        if "deletionTimestamp" not in pod["metadata"]
        and {"type": "Ready", "status": "True"}.items()
        <= next(
            (c for c in pod["status"].get("conditions", []) if c["type"] == "Ready"), {}
        ).items()
    }


# The database first and the gateway last: what the gateway knows then comes from the database.
VICTIMS = {
    "postgres": ("llm-platform-data", "app.kubernetes.io/name=postgres", {"answered", "429"}),
    "redis": ("llm-platform-data", "app.kubernetes.io/name=redis", {"answered", "429"}),
    "model": (TEAM_NAMESPACE, "llm-platform/endpoint=gemma", CLEAN),
    "gateway": (NAMESPACE, "app.kubernetes.io/name=gateway", CLEAN | {"cut off"}),
}


def in_database(running: Running, program: str) -> str:
    """Run one of Postgres' own programs beside the server and return what it prints."""
    return running.kubectl(
        *("exec", "--namespace", "llm-platform-data", "postgres-0", "--", "/bin/sh", "-c"),
        'PGPASSWORD="$(cat $POSTGRES_PASSWORD_FILE)" PGHOST=127.0.0.1 PGUSER=platform '
        f"PGDATABASE=platform /usr/lib/postgresql/15/bin/{program}",
    )


def rows(running: Running) -> list[str]:
    """Identity and time of birth of every key and endpoint: a table made anew has others."""
    keys = "-c 'select hash, created_at from api_keys'"
    endpoints = "-c 'select name, created_at from endpoints'"
    return sorted(in_database(running, f"psql -At {keys} {endpoints}").splitlines())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_killed_pod_comes_back_and_no_request_hangs(running: Running, victim: str) -> None:
    namespace, selector, allowed = VICTIMS[victim]
    before = ready_pods(running, namespace, selector)
    assert before, f"no ready pod of {victim}"
    models, known = sorted(model.id for model in running.client().models.list()), rows(running)
    with Load(running).applied() as load:
        until(lambda: load.outcomes["answered"] >= 3, "the first answers")
        running.kubectl(
            *("delete", "pods", "--namespace", namespace, "--selector", selector),
            *("--grace-period=0", "--force"),
        )
        until(
            lambda: bool(ready_pods(running, namespace, selector) - before),
            f"{victim} ready again",
        )
        until(lambda: answers(running), "an answer afterwards")
    assert set(load.outcomes) <= allowed, load.outcomes
    assert rows(running) == known
    assert sorted(model.id for model in running.client().models.list()) == models


@pytest.mark.timeout(300)
def test_a_terminated_worker_finishes_its_open_stream(running: Running) -> None:
    stream = running.long_stream(tokens=300)
    chunks = [next(stream)]
    (pod,) = running.objects("pods", TEAM_NAMESPACE, "llm-platform/endpoint=gemma")
    running.kubectl(
        *("delete", "pod", pod["metadata"]["name"], "--namespace", TEAM_NAMESPACE, "--wait=false")
    )
    chunks += list(stream)
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert reasons[-1] == "length", "the stream was cut off"
    until(lambda: answers(running), "an answer by the next worker")


def test_database_keeps_only_hashes_of_keys(running: Running) -> None:
    dump = in_database(running, "pg_dump")
    assert "api_keys" in dump
    for key in (running.admin_key, running.team_key):
        assert key not in dump
        assert hashlib.sha256(key.encode()).hexdigest() in dump


def test_metrics_of_a_worker_are_served(running: Running) -> None:
    pods = running.objects("pods", TEAM_NAMESPACE, "llm-platform/endpoint=gemma")
    address = next(p["status"]["podIP"] for p in pods if "deletionTimestamp" not in p["metadata"])
    metrics = httpx.get(f"http://{address}:5000/metrics", timeout=10).text
    assert "llm_platform" in metrics
    assert json.dumps(running.team_key) not in metrics
