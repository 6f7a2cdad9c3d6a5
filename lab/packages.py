"""Programs that come from the system's packages."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from .commands import run_logged
from .containerd import PLUGIN_FOLDERS
from .errors import StepError
from .paths import cache_dir
from .progress import Report

# By Debian package, a program that shows that it is installed.
PROGRAMS = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "ethtool": "ethtool",
    "socat": "socat",
    "mmdebstrap": "mmdebstrap",
    "skopeo": "skopeo",
    "iproute2": "ip",
    "openssl": "openssl",
}
_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


def missing(has: Callable[[str], bool], plugin_folders: tuple[Path, ...]) -> list[str]:
    """List the Debian packages that are not there.

    Args:
        has: Whether a program is on PATH.
        plugin_folders: Where network plugins could be.
    """
    absent = [package for package, program in PROGRAMS.items() if not has(program)]
    if not any((folder / "bridge").exists() for folder in plugin_folders):
        absent.append("containernetworking-plugins")
    return absent


def _has(program: str) -> bool:
    return bool(shutil.which(program) or shutil.which(program, path=_SYSTEM_FOLDERS))


def ensure(report: Report) -> None:
    """Install what is missing, as root on a Debian-like system; else say what to install.

    Args:
        report: Takes lines of progress.

    Raises:
        StepError: Something is missing and can't be installed from here.
    """
    packages = missing(_has, PLUGIN_FOLDERS)
    if not packages:
        return
    step, names = "installing system packages", " ".join(packages)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise StepError(step, f"missing here, please install: {names} (Debian's names)")
    report(f"{step}: {names}")
    log = cache_dir() / "logs" / "packages.log"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run_logged(f"{step}: list", ["apt-get", "update", "-q"], log, report, env=environment)
    run_logged(
        step,
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages],
        log,
        report,
        env=environment,
    )
    if left := missing(_has, PLUGIN_FOLDERS):
        raise StepError(step, f"still missing afterwards: {' '.join(left)}", log)
