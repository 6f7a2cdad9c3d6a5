"""The table of metrics says what the services answer, and its page shows the table."""

import re
import runpy
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from service_harness import (
    ROOT,
    KubeApi,
    Postgres,
    RedisServer,
    Service,
    metric,
    registration_map,
    served,
    serving,
    until,
)
from service_platform import Platform

from components.domain.metric_table import EXPORTED, exported_by
from components.domain.metrics import CACHER_READY_WORKERS

pytestmark = pytest.mark.asyncio(loop_scope="session")

TYPE = re.compile(r"^# TYPE (llm_platform_\w+) (\w+)$", re.MULTILINE)
SAMPLE = re.compile(r"^(llm_platform_\w+)(?:\{(.*)\})? \S+$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')


async def page_of(service: Service) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{service.url}/metrics") as answer,
    ):
        return await answer.text()


def kinds_in(page: str) -> dict[str, str]:
    """Return the kind of every metric of ours; the times of their creation say nothing."""
    return {name: kind for name, kind in TYPE.findall(page) if not name.endswith("_created")}


def labels_in(page: str, kinds: dict[str, str]) -> dict[str, set[str]]:
    """Return the labels of every metric that has a sample."""
    found: dict[str, set[str]] = {}
    for name, text in SAMPLE.findall(page):
        whole = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
        if whole in kinds:
            found[whole] = set(LABEL.findall(text)) - {"le"}
    return found


def check(page: str, exporter: str) -> set[str]:
    """Compare a page with the table, and return the metrics that had samples."""
    table = exported_by(exporter)
    kinds = kinds_in(page)
    assert kinds == {name: entry.kind.value for name, entry in table.items()}
    labels = labels_in(page, kinds)
    for name, found in labels.items():
        assert found == set(table[name].labels), name
    return set(labels)


async def test_the_gateway_answers_its_part_of_the_table(platform: Platform) -> None:
    assert (await platform.post()).status == 200
    seen = check(await page_of(platform.gateway), "gateway")
    assert {"llm_platform_gateway_in_flight", "llm_platform_gateway_waiting"} <= seen
    assert "llm_platform_gateway_requests_total" in seen


async def test_the_forwarder_answers_its_part_of_the_table(platform: Platform) -> None:
    assert (await platform.post()).status == 200
    seen = check(await page_of(platform.forwarder), "forwarder")
    assert {"llm_platform_forwarder_in_flight", "llm_platform_forwarder_limit"} <= seen


async def test_the_cacher_answers_its_part_of_the_table(
    postgres: Postgres, redis_server: RedisServer, migrated: str, tmp_path: Path
) -> None:
    kube = KubeApi(tmp_path)
    labels = {"llm-platform/team": "red"}
    kube.put("namespaces", {"metadata": {"name": "team-red", "labels": labels}})
    kube.put("configmaps", registration_map("measured", "team-red"))
    settings = {
        "DATABASE_URL": f"{postgres.url}/{postgres.copy_of(migrated)}",
        "REDIS_URL": redis_server.url,
        "KUBECONFIG": str(kube.kubeconfig),
        "RESYNC_SECONDS": "1",
    }
    cacher = Service("services.cacher", settings)
    async with serving(kube), served(cacher):
        await cacher.start()
        await cacher.ready()

        async def known() -> bool:
            return f'{CACHER_READY_WORKERS}{{endpoint="measured"' in await page_of(cacher)

        await until(known)
        seen = check(await page_of(cacher), "cacher")
        assert await metric(cacher.url, CACHER_READY_WORKERS, namespace="team-red") == 0
    assert {CACHER_READY_WORKERS, "llm_platform_cacher_endpoints"} <= seen


def measures_of(exporter: str, registry: CollectorRegistry) -> None:
    from services.cacher.measures import Measures as OfCacher
    from services.core.server import Lifecycle
    from services.forwarder.measures import Measures as OfForwarder
    from services.gateway.measures import Measures as OfGateway

    makers: dict[str, Any] = {
        "gateway": lambda: OfGateway(registry, Lifecycle()),
        "forwarder": lambda: OfForwarder(registry, "any", 4),
        "cacher": lambda: OfCacher(registry),
    }
    makers[exporter]()


@pytest.mark.parametrize("exporter", ["gateway", "forwarder", "cacher"])
async def test_series_that_have_no_sample_yet_have_the_labels_of_the_table(exporter: str) -> None:
    registry = CollectorRegistry()
    measures_of(exporter, registry)
    table = exported_by(exporter)
    for collector, names in registry._collector_to_names.items():
        assert isinstance(collector, MetricWrapperBase)
        (name,) = [name for name in names if name in table]
        assert set(collector._labelnames) == set(table[name].labels), name


async def test_every_metric_has_one_line_in_the_table() -> None:
    names = [entry.name for entry in EXPORTED]
    assert len(names) == len(set(names))
    assert {entry.exporter for entry in EXPORTED} == {"gateway", "forwarder", "cacher"}


async def test_the_page_shows_the_table() -> None:
    tables = runpy.run_path(str(ROOT / "docs" / "metrics_table.py"))
    page = (ROOT / "docs" / "metrics.md").read_text()
    assert tables["merged"](page) == page, "run: python docs/metrics_table.py"
