"""The Postgres image's entrypoint, with the Postgres that this machine has."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.paths import REPOSITORY

ENTRYPOINT = REPOSITORY / "deploy/images/rootfs/postgres/usr/local/bin/postgres-entrypoint"
BIN = Path("/usr/lib/postgresql/15/bin")
pytestmark = pytest.mark.skipif(not BIN.is_dir(), reason="needs Debian's postgresql-15")


class Server:
    """A folder with a database and its password, and the server that the entrypoint becomes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        self._owner: dict[str, Any] = {}
        if os.geteuid() == 0:  # Postgres refuses to run as root
            self._owner = {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(folder, "postgres", "postgres")

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    @contextmanager
    def running(self, password: str, stop: int = signal.SIGINT) -> Iterator[None]:
        (self._folder / "password").write_text(password)
        (self._folder / "password").chmod(0o644)
        environment = {
            "PATH": os.environ["PATH"],
            "PGDATA": str(self._folder / "pgdata"),
            "PGPORT": self._port,
            "POSTGRES_PASSWORD_FILE": str(self._folder / "password"),
        }
        here = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                ["/bin/sh", ENTRYPOINT, *here],
                env=environment,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **self._owner,
            )
        try:
            deadline = time.monotonic() + 60
            ready = [BIN / "pg_isready", "-h", "127.0.0.1", "-p", self._port, "-q"]
            while subprocess.run(ready, check=False).returncode != 0:
                assert process.poll() is None, self.log
                assert time.monotonic() < deadline, self.log
                time.sleep(0.1)
            yield
        finally:
            process.send_signal(stop)
            process.wait(60)

    def lets_in(self, password: str) -> bool:
        asked = subprocess.run(
            [
                *("psql", "-h", "127.0.0.1", "-p", self._port, "-U", "platform", "-d", "platform"),
                *("-tAc", "select 1"),
            ],
            env={"PATH": os.environ["PATH"], "PGPASSWORD": password},
            capture_output=True,
            check=False,
            text=True,
        )
        assert asked.returncode == 0 or "authentication failed" in asked.stderr, asked.stderr
        return asked.returncode == 0


@pytest.fixture
def server() -> Iterator[Server]:
    # Another user must come in, which pytest's own folders don't allow.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        Path(folder).chmod(0o755)
        yield Server(Path(folder))


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
def test_the_password_is_the_one_that_the_secret_holds_at_the_start(
    server: Server, stop: int
) -> None:
    with server.running("first", stop):
        assert server.lets_in("first")
    with server.running("it's renewed", stop):
        assert server.lets_in("it's renewed")
        assert not server.lets_in("first")
    assert "renewed" not in server.log
