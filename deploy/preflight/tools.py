"""The AWS CLI on this machine: kubeconfigs get their tokens from it."""

import re
import shutil
import subprocess
from collections.abc import Iterator

from .report import Row, cant_tell, ok, would_fail

CHECK = "AWS CLI"
# What EKS's user guide asks for (create-cluster, read 2026-11), for each major version.
_OLDEST = {1: (1, 27, 160), 2: (2, 12, 3)}
_VERSION = re.compile(r"aws-cli/(\d+)\.(\d+)\.(\d+)")
_INSTALL = (
    "install it: https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"
)
_WAIT_SECONDS = 30


def check() -> Iterator[Row]:
    """Look for it on PATH, and ask which version it is."""
    program = shutil.which("aws")
    if program is None:
        yield would_fail(CHECK, "`aws` isn't on PATH: kubectl and Pulumi need its tokens", _INSTALL)
        return
    try:
        asked = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_WAIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield would_fail(CHECK, f"{program} can't be run: {error}", _INSTALL)
        return
    # Old ones print it to stderr.
    said = (asked.stdout + asked.stderr).strip()
    version = _VERSION.search(said)
    if version is None:
        yield cant_tell(CHECK, f"{program} --version says {said[:80]!r}", _INSTALL)
        return
    number = tuple(int(part) for part in version.groups())
    oldest = _OLDEST.get(number[0], _OLDEST[2])
    found = f"{program}, version {'.'.join(version.groups())}"
    if number < oldest:
        wanted = ".".join(str(part) for part in oldest)
        yield would_fail(CHECK, f"{found}; EKS wants {wanted} or newer", _INSTALL)
    else:
        yield ok(CHECK, found)
