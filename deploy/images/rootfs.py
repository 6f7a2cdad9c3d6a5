"""Debian root file systems, made by mmdebstrap from the machine's own package sources."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from lab.commands import tail

from ..errors import DeployError
from .layers import EPOCH

SUITE = "bookworm"
USER_ID = 65532
"""The user that every container of ours runs as."""

# As root, mounts are made in a namespace that ends with the process: a killed run leaves none of
# the machine's own /proc, /sys and /dev in a folder that somebody then deletes.
_OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private") if os.geteuid() == 0 else ()

STEP = "making a root file system"

# Package sources and lists stay out: the file system is never changed again, and the addresses of
# the machine that made it are nobody's business. Log and cache files differ from run to run.
_CUSTOMIZE = (
    f'echo "platform:x:{USER_ID}:{USER_ID}::/tmp:/usr/sbin/nologin" >> "$1/etc/passwd"',
    f'echo "platform:x:{USER_ID}:" >> "$1/etc/group"',
    'rm -rf "$1"/etc/apt/sources.list* "$1"/var/lib/apt/lists/* "$1"/var/cache/* "$1"/var/log/*',
    'cd "$1"/usr/share && rm -rf doc man info locale lintian',
    'rm -f "$1"/etc/hostname "$1"/etc/resolv.conf',
    'find "$1"/usr -name __pycache__ -prune -exec rm -rf {} +',
)


def write_rootfs(target: BinaryIO, packages: Sequence[str], scratch: Path, log: Path) -> None:
    """Write a root file system with ``packages`` as a tar.

    Args:
        target: Gets the tar.
        packages: Debian packages, beside the essential ones.
        scratch: A folder that may be deleted at any time that this doesn't run.
        log: Gets what mmdebstrap prints.

    Raises:
        DeployError: mmdebstrap isn't there, or failed; the message names its log.
    """
    if shutil.which("mmdebstrap") is None:
        raise DeployError(STEP, "mmdebstrap isn't on PATH; on Debian: apt-get install mmdebstrap")
    command = [
        *_OWN_MOUNTS,
        "mmdebstrap",
        "--variant=minbase",
        f"--include={','.join(packages)}",
        "--skip=output/dev",
        "--dpkgopt=force-unsafe-io",  # a half-made file system is thrown away, not mended
        *(f"--customize-hook={hook}" for hook in _CUSTOMIZE),
        SUITE,
        "-",
        *_own_sources(),
    ]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=errors,
            env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), "TMPDIR": str(scratch)},
            check=False,
        )
    if done.returncode != 0:
        raise DeployError(STEP, tail(log.read_text(errors="replace")), log)


def _own_sources() -> list[str]:
    """The package sources of this machine when it runs the same Debian, else mmdebstrap's own."""
    release = Path("/etc/os-release")
    if not release.exists() or f"VERSION_CODENAME={SUITE}" not in release.read_text():
        return []
    candidates = [
        Path("/etc/apt/sources.list"),
        *sorted(Path("/etc/apt/sources.list.d").glob("*.list")),
        *sorted(Path("/etc/apt/sources.list.d").glob("*.sources")),
    ]
    return [str(path) for path in candidates if path.is_file() and path.stat().st_size > 0]
