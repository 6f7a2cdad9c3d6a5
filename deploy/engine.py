"""The Pulumi CLI, run the way this project needs it: settings, updates, locks left by the dead."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lab.commands import run, tail
from lab.progress import Heartbeat, Report

from .backend import FileBackend, is_torn
from .errors import DeployError
from .paths import REPOSITORY

# A count at the end, such as "+ 48 created", or a failure; not the ticks in between.
_NEWS = re.compile(r"^[-+~]{0,2} ?\d+ [a-z ]+$|\*\*.* failed")
# What diagnostics of one resource begin with, such as "  aws:eks:Addon (dev-aws-vpc-cni):".
_RESOURCE = re.compile(r"  \S+ \(.+\):")
_UNREADY_POD = re.compile(r"\[Pod ([a-z0-9.-]+)/([a-z0-9.-]+)\]")
_WAIT_FOR_OWNER_SECONDS = 1800
_SHOWN_LINES = 40


@dataclass(frozen=True)
class Engine:
    """Runs the CLI for the stacks of this repository.

    Args:
        environ: The whole environment of the CLI: PATH with the tool chain, backend, passphrase.
        logs: Gets what updates print.
        backups: Gets copies of state before anything is forced.
        report: Takes a line of progress.
    """

    environ: Mapping[str, str]
    logs: Path
    backups: Path
    report: Report

    def select(self, stack: str, secrets_provider: str = "") -> None:
        """Make the stack unless it is there.

        Args:
            stack: Its name.
            secrets_provider: What encrypts a new one's secrets; the backend's own when left out.
        """
        more = ["--secrets-provider", secrets_provider] if secrets_provider else []
        self._pulumi(f"selecting the stack {stack}", "stack", "select", "--create", stack, *more)

    def configure(self, stack: str, values: Mapping[str, str]) -> None:
        """Write settings of the stack, each at its path, such as ``images.redis``."""
        pairs = [
            part for name, value in values.items() for part in ("--plaintext", f"{name}={value}")
        ]
        if pairs:
            title = f"writing the settings of {stack}"
            self._pulumi(title, "config", "set-all", "--stack", stack, "--path", *pairs)

    def up(self, stack: str, settings: Path | None = None) -> None:
        """Bring the stack up; a lock whose owner is dead is removed first.

        Args:
            stack: Its name.
            settings: The file with its settings; that of the repository when left out.

        Raises:
            DeployError: the update failed, with the engine's own words.
        """
        self.heal(stack)
        where = ["--config-file", str(settings)] if settings else []
        self._update(stack, "up", "--skip-preview", *where)

    def destroy(self, stack: str) -> None:
        """Remove all that the stack made; its history stays in the backend."""
        self.heal(stack)
        self._update(stack, "destroy", "--skip-preview")

    def outputs(self, stack: str) -> dict[str, Any]:
        """The stack's outputs, secret ones in clear; empty for one that was never brought up."""
        title = f"reading the outputs of {stack}"
        shown = self._pulumi(title, "stack", "output", "--stack", stack, "--json", "--show-secrets")
        return json.loads(shown)

    def destroy_known(self, *stacks: str) -> None:
        """Destroy those of these stacks that the backend knows, in this order."""
        known = self.stacks()
        for stack in stacks:
            if stack in known:
                self.destroy(stack)

    def stacks(self) -> list[str]:
        """Names of the stacks that the backend knows."""
        listed = json.loads(self._pulumi("listing stacks", "stack", "ls", "--json"))
        # Pulumi Cloud says whose they are where that isn't the user's own organization.
        return [entry["name"].rpartition("/")[2] for entry in listed]

    def protected(self, stack: str) -> list[str]:
        """URNs of what the stack refuses to delete."""
        title = f"reading the state of {stack}"
        state = json.loads(self._pulumi(title, "stack", "export", "--stack", stack))
        resources = (state.get("deployment") or {}).get("resources") or []
        return [it["urn"] for it in resources if it.get("protect")]

    def backend(self) -> str:
        """Address of where state is kept.

        Raises:
            StepError: nobody said where, or it can't be reached.
        """
        title = "looking for the place of Pulumi's state"
        return str(json.loads(self._pulumi(title, "whoami", "--verbose", "--json"))["url"])

    def has_plugin(self, name: str) -> bool:
        """Tell whether a provider is installed, on PATH or where Pulumi keeps its own."""
        if shutil.which(f"pulumi-resource-{name}", path=self.environ.get("PATH")):
            return True
        listed = json.loads(self._pulumi("listing plugins", "plugin", "ls", "--json") or "[]")
        return any(it["name"] == name and it["kind"] == "resource" for it in listed)

    @property
    def fetches_plugins(self) -> bool:
        """Whether Pulumi downloads the providers that it needs and doesn't find."""
        off = self.environ.get("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "")
        return off.lower() not in {"1", "true"}

    def heal(self, stack: str) -> None:
        """Wait for a living owner of the stack's lock; remove the lock of one proven dead.

        Only locks of a file backend say enough to prove anything; elsewhere the engine refuses by
        itself and says who holds the stack.

        Raises:
            DeployError: the lock was made on another machine, or its owner doesn't end.
        """
        deadline = time.monotonic() + _WAIT_FOR_OWNER_SECONDS
        heartbeat = Heartbeat(self.report, f"waiting for another update of {stack}")
        backend = FileBackend.at(self.environ.get("PULUMI_BACKEND_URL", ""))
        if backend is None:
            return
        for lock in backend.locks(stack):
            while (owner := Owner.read(lock)) is not None and owner.may_live():
                if owner.host != os.uname().nodename or time.monotonic() > deadline:
                    raise DeployError(
                        f"taking the lock of {stack}",
                        f"{owner.user}@{owner.host} holds it (process {owner.pid}); wait for that "
                        f"update, or, when you know it's dead: pulumi cancel --stack {stack}",
                        lock,
                    )
                heartbeat.beat(f"process {owner.pid}")
                time.sleep(0.5)
            if lock.exists():
                self._back_up(backend.state(stack))
                self.report(f"removing the lock of {stack}: the process that held it is dead")
                lock.unlink(missing_ok=True)

    def _back_up(self, source: Path) -> None:
        if source.exists():
            self.backups.mkdir(parents=True, exist_ok=True, mode=0o700)
            stamp = time.strftime("%Y%m%dT%H%M%S")
            shutil.copy2(source, self.backups / f"{source.stem}-{stamp}.json")

    def _update(self, stack: str, verb: str, *flags: str) -> None:
        log = self.logs / f"{verb}-{stack}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = ["pulumi", verb, "--stack", stack, "--yes", *flags, "--non-interactive"]
        process = subprocess.Popen(
            [*command, "--color=never", "--suppress-outputs"],
            cwd=REPOSITORY,
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A terminal's Ctrl-C reaches all of its foreground group; a second signal makes the
            # engine drop what it is at. So it gets a group of its own, and its one signal from us.
            process_group=0,
        )
        following = threading.Thread(target=self._follow, args=(process, stack, log))
        following.start()
        try:
            process.wait()
        except BaseException:
            # The engine finishes what it is at and writes its state down; that is worth the wait.
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        finally:
            following.join()
        if process.returncode != 0:
            raise DeployError(f"pulumi {verb} {stack}", _diagnostics(log.read_text()), log)

    def _follow(self, process: subprocess.Popen[str], stack: str, log: Path) -> None:
        """Copy what the engine prints to its log, and show what changes and what it waits for."""
        assert process.stdout is not None  # noqa: S101 - it was opened as a pipe
        heartbeat = Heartbeat(self.report, stack)
        with log.open("w") as copy, process.stdout as lines:
            for line in lines:
                copy.write(line)
                copy.flush()
                what = line.strip()
                if _NEWS.search(what):
                    self.report(f"{stack}: {what}")
                elif what and not what.startswith("@"):
                    heartbeat.beat(what)

    def _pulumi(self, title: str, *arguments: str) -> str:
        command = ["pulumi", "--cwd", REPOSITORY, "--non-interactive", "--color=never", *arguments]
        return run(title, command, env=self.environ)


@dataclass(frozen=True)
class Owner:
    """Who took a lock, as its file says.

    Args:
        pid: The process.
        user: Who ran it.
        host: The machine it runs on.
        since: When it took the lock, in seconds since 1970.
    """

    pid: int
    user: str
    host: str
    since: float

    @classmethod
    def read(cls, lock: Path) -> "Owner | None":
        """Read a lock's file; nothing when the lock is gone, or was left half-written."""
        while True:
            try:
                facts = json.loads(lock.read_text())
            except FileNotFoundError:
                return None
            except ValueError:
                if is_torn(lock):
                    return None
                time.sleep(0.1)
            else:
                break
        since = datetime.fromisoformat(facts["timestamp"]).timestamp()
        return cls(int(facts["pid"]), facts["username"], facts["hostname"], since)

    def may_live(self) -> bool:
        """Whether nothing proves it dead: on this machine, a process that began before the lock."""
        if self.host != os.uname().nodename:
            return True
        started = _start_of(self.pid)
        return started is not None and started <= self.since + 2


def _start_of(pid: int) -> float | None:
    """When the process began, in seconds since 1970; nothing when there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] == "Z":
        return None
    return time.time() - uptime + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _diagnostics(output: str) -> str:
    """Why the engine failed, in its own words, and where a pod that isn't ready says more."""
    _, found, diagnostics = output.partition("Diagnostics:\n")
    said = diagnostics if found else tail(output, _SHOWN_LINES)
    lines = [line for line in said.splitlines() if line.strip() and "warning: " not in line]
    lines = _errors(lines) or lines
    hints = [
        f"Its log: kubectl logs --namespace {namespace} {pod} --all-containers"
        for namespace, pod in dict.fromkeys(_UNREADY_POD.findall(diagnostics))
    ]
    return "\n".join([*lines[:_SHOWN_LINES], *hints])


def _errors(lines: list[str]) -> list[str]:
    """Leave out what resources said before they failed, such as what everything costs."""
    kept: list[str] = []
    header, failed = "", False
    for line in lines:
        if _RESOURCE.fullmatch(line):
            header, failed = line, False
        elif line.lstrip().startswith("error: ") and not failed:
            kept, failed = [*kept, header, line], True
        elif failed:
            kept.append(line)
    return kept
