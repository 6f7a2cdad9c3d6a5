import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from service_harness import (
    KubeApi,
    Model,
    Postgres,
    RedisServer,
    Service,
    running,
    served,
    serving,
)
from service_platform import KEYS, Platform, forwarder_of, gateway_of


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    # Not below pytest's own folder, which only root may enter.
    with (
        tempfile.TemporaryDirectory(prefix="llm-platform-pg-") as folder,
        running(Postgres(Path(folder))) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(RedisServer(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres: Postgres) -> str:
    """A database with all tables, to copy."""
    import subprocess
    import sys

    from service_harness import ROOT

    name = postgres.new_database()
    subprocess.run(
        [sys.executable, "-m", "services.gateway", "migrate"],
        check=True,
        cwd=ROOT,
        env={"LLM_PLATFORM_DATABASE_URL": f"{postgres.url}/{name}"},
        capture_output=True,
    )
    return name


@pytest.fixture
def database(postgres: Postgres, migrated: str) -> str:
    return postgres.copy_of(migrated)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def kube(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KubeApi]:
    async with serving(KubeApi(tmp_path_factory.mktemp("kube"))) as api:
        yield api


@pytest_asyncio.fixture(loop_scope="session")
async def model() -> AsyncIterator[Model]:
    async with serving(Model()) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def other() -> AsyncIterator[Model]:
    """A second model."""
    async with serving(Model()) as server:
        yield server


@pytest.fixture(scope="session")
def keys_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name, key in KEYS.items():
        (folder / name).write_text(key)
    return folder


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def shared(
    postgres: Postgres,
    redis_server: RedisServer,
    migrated: str,
    kube: KubeApi,
    keys_dir: Path,
) -> AsyncIterator[Platform]:
    """One gateway for all tests; each test adds endpoints of its own to it."""
    database = postgres.copy_of(migrated)
    gateway = gateway_of(postgres, database, redis_server, kube, keys_dir)
    await gateway.start()
    await gateway.ready()
    whole = Platform(gateway, postgres, redis_server, database, kube, keys_dir)
    yield whole
    await gateway.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def platform(shared: Platform, model: Model) -> AsyncIterator[Platform]:
    """The gateway with a new endpoint (``platform.endpoint``) whose one worker runs ``model``."""
    shared.model = model
    shared.endpoint = f"m{uuid.uuid4().hex[:8]}"
    shared.forwarder = await shared.new_forwarder(model)
    await shared.add(shared.endpoint, {shared.forwarder.port: True})
    yield shared
    await shared.clean()


@pytest_asyncio.fixture(loop_scope="session")
async def forwarder(model: Model) -> AsyncIterator[Service]:
    service = forwarder_of(model)
    await service.start()
    yield await service.ready()
    await service.stop()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def quick_shared(
    postgres: Postgres,
    redis_server: RedisServer,
    migrated: str,
    keys_dir: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Platform]:
    """One gateway whose waits are short, so that tests of them are.

    Its cluster is its own: tests count what the other gateway asks of theirs.
    """
    database = postgres.copy_of(migrated)
    settings = {
        "RETRY_SECONDS": "0.3",
        "ACTIVATION_EXPIRY_SECONDS": "3",
        "ACTIVATION_RENEW_SECONDS": "0.5",
    }
    async with serving(KubeApi(tmp_path_factory.mktemp("quick-kube"))) as kube:
        gateway = gateway_of(postgres, database, redis_server, kube, keys_dir, **settings)
        async with served(gateway):
            await gateway.start()
            await gateway.ready()
            yield Platform(gateway, postgres, redis_server, database, kube, keys_dir)


@pytest_asyncio.fixture(loop_scope="session")
async def quick(quick_shared: Platform, model: Model) -> AsyncIterator[Platform]:
    """That gateway with the name of a new endpoint, which the test declares itself."""
    quick_shared.model = model
    quick_shared.endpoint = f"q{uuid.uuid4().hex[:8]}"
    yield quick_shared
    await quick_shared.clean()
