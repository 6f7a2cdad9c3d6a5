"""What every command needs: the tool chain on PATH, the backend, its passphrase.

The state of the lab's stacks lies in the lab's own folder: it comes and goes with the cluster that
it describes, so it can never tell of things that went with an earlier one.
"""

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from lab import cluster as lab
from lab import toolchain
from lab.commands import write
from lab.paths import LabPaths
from lab.progress import Report

from .backend import FileBackend
from .cluster import named_fingerprint
from .engine import Engine
from .paths import REPOSITORY, Paths

_PULUMI_TOOLS = ("pulumi", "provider-kubernetes")


def environment(paths: Paths) -> dict[str, str]:
    """The environment in which ``pulumi`` and ``kubectl`` work with this machine's stacks.

    What the user has set already wins: a backend of theirs and its secrets stay theirs.
    """
    own = _tools()
    if os.environ.get("CONTEXT") and os.environ.get("KUBECONFIG"):
        own["KUBECONFIG"] = os.environ["KUBECONFIG"]
    if "PULUMI_BACKEND_URL" not in os.environ:
        own["PULUMI_BACKEND_URL"] = FileBackend(backend(paths)).address
    if not {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"} & set(os.environ):
        own["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(paths.passphrase)
    return own


def cloud_environment() -> dict[str, str]:
    """The environment in which ``pulumi`` works with stacks in a cloud.

    It says nothing of the lab: where their state is, and what encrypts it, is the user's to say.
    """
    own = _tools()
    own.pop("KUBECONFIG", None)
    return own


def open_engine(paths: Paths, report: Report) -> Engine:
    """Make the CLI ready: the tool chain, the backend's folder, the passphrase; then log in."""
    toolchain.ensure(_PULUMI_TOOLS, report)
    paths.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    backend(paths).mkdir(parents=True, exist_ok=True, mode=0o700)
    if not paths.passphrase.exists():
        write(paths.passphrase, secrets.token_urlsafe(32), 0o600)
    return _engine({**os.environ, **environment(paths)}, paths, report)


def open_cloud_engine(environ: Mapping[str, str], paths: Paths, report: Report) -> Engine:
    """Make the CLI ready for stacks in a cloud; where their state is must have been said.

    An official Pulumi fetches its providers itself; with one of our making comes the Kubernetes
    provider, and clouds' own must be there.

    Args:
        environ: What the user said.
        paths: Where logs and backups go.
        report: Takes a line of progress.
    """
    official = shutil.which("pulumi-language-python") is not None
    toolchain.ensure(("pulumi",) if official else _PULUMI_TOOLS, report)
    paths.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    return _engine({**environ, **cloud_environment()}, paths, report)


def _engine(environ: dict[str, str], paths: Paths, report: Report) -> Engine:
    # Programs that Make or a virtual environment started us with must not leak into the CLI's own.
    environ.pop("VIRTUAL_ENV", None)
    used = FileBackend.at(environ.get("PULUMI_BACKEND_URL", ""))
    for torn in used.mend() if used else ():
        report(f"removed {torn.name}, left half-written by an engine that was killed")
    return Engine(environ, paths.logs, paths.state / "backups", report)


def _tools() -> dict[str, str]:
    """What programs find the tool chain by."""
    tools = lab.exports()
    path = os.pathsep.join([str(REPOSITORY / ".venv/bin"), tools.pop("PATH", os.environ["PATH"])])
    return {**tools, "PATH": path}


def backend(paths: Paths) -> Path:
    """The folder of the file backend that belongs to the chosen cluster, and to no other."""
    if os.environ.get("CONTEXT"):
        return paths.pulumi / named_fingerprint(os.environ)
    return LabPaths.of_this_user().state / "pulumi"
