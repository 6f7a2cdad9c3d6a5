import json
import uuid
from typing import Any

import pytest
from service_harness import Postgres, RedisServer, registration_map, until
from test_cacher import World, a_world, one_world, world

__all__ = ["one_world", "world"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


def deployment(name: str, replicas: int | None, **labels: str) -> dict[str, Any]:
    spec = {} if replicas is None else {"replicas": replicas}
    found = {"llm-platform/endpoint": name} | labels
    return {
        "metadata": {"namespace": "team-red", "name": name, "labels": found},
        "spec": spec,
    }


def replicas(world: World, name: str) -> int | None:
    return world.kube.objects["deployments"]["team-red", name]["spec"].get("replicas")


async def settled(world: World) -> None:
    """Wait until what was declared so far has been compared."""
    marker = f"m{uuid.uuid4().hex[:8]}"
    world.kube.put("configmaps", registration_map(marker, "team-red"))
    await until(lambda: marker in world.endpoints())


@pytest.mark.parametrize("autoscaled", [True, False])
async def test_an_endpoint_that_is_meant_to_have_workers_is_woken(
    world: World, autoscaled: bool
) -> None:
    declared = registration_map(
        "a", "team-red", autoscaled=autoscaled, min_workers=2, max_workers=4
    )
    world.kube.put("configmaps", declared)
    world.kube.put("deployments", deployment("a", 0))
    await until(lambda: replicas(world, "a") == 2)
    world.kube.delete("deployments", "team-red", "a")


@pytest.mark.parametrize(
    ("fields", "item"),
    [
        ({"autoscaled": True, "min_workers": 0}, deployment("b", 0)),
        ({"autoscaled": True, "min_workers": 3, "max_workers": 4}, deployment("b", 1)),
        ({"autoscaled": True, "min_workers": 3, "max_workers": 4}, deployment("b", None)),
        ({"autoscaled": True, "min_workers": 1}, deployment("other", 0)),
    ],
)
async def test_others_are_left_as_they_are(
    world: World, fields: dict[str, Any], item: dict[str, Any]
) -> None:
    world.kube.scales.clear()
    world.kube.put("deployments", item)
    world.kube.put("configmaps", registration_map("b", "team-red", **fields))
    await settled(world)
    assert world.kube.scales == []
    world.kube.delete("deployments", "team-red", item["metadata"]["name"])


async def test_a_workload_of_the_same_name_without_the_label_is_nobodys(world: World) -> None:
    world.kube.scales.clear()
    item = deployment("c", 0)
    item["metadata"]["labels"]["llm-platform/endpoint"] = "something-else"
    world.kube.put("deployments", item)
    fields = {"autoscaled": True, "min_workers": 1}
    world.kube.put("configmaps", registration_map("c", "team-red", **fields))
    await settled(world)
    assert world.kube.scales == []
    world.kube.delete("deployments", "team-red", "c")


async def test_who_scaled_it_meanwhile_wins(
    postgres: Postgres, redis_server: RedisServer, migrated: str, tmp_path: Any
) -> None:
    async with a_world(postgres, redis_server, migrated, tmp_path, "600") as alone:
        alone.kube.put("deployments", deployment("a", 0))
        await settled(alone)
        # The watch hasn't said so yet: the cacher works with what it saw last.
        item = alone.kube.objects["deployments"]["team-red", "a"]
        item["spec"]["replicas"] = 5
        item["metadata"]["resourceVersion"] = "later"
        fields = {"autoscaled": True, "min_workers": 1, "max_workers": 9}
        alone.kube.put("configmaps", registration_map("a", "team-red", **fields))
        await until(lambda: alone.kube.scales)
        assert replicas(alone, "a") == 5


async def test_going_from_zero_to_one_wakes_without_polling(world: World) -> None:
    item = registration_map("d", "team-red", autoscaled=True, min_workers=0)
    world.kube.put("configmaps", item)
    world.kube.put("deployments", deployment("d", 0))
    await settled(world)
    assert replicas(world, "d") == 0
    document = json.loads(item["data"]["registration.json"]) | {"min_workers": 1}
    world.kube.put("configmaps", {**item, "data": {"registration.json": json.dumps(document)}})
    await until(lambda: replicas(world, "d") == 1)
    world.kube.delete("deployments", "team-red", "d")


async def test_what_keda_scales_is_left_to_it_until_its_object_is_gone(world: World) -> None:
    world.kube.scales.clear()
    world.kube.scaled_objects.add(("team-red", "k"))
    world.kube.put("deployments", deployment("k", 0))
    world.kube.put("configmaps", registration_map("k", "team-red", min_workers=1))
    await settled(world)
    assert world.kube.scales == []
    world.kube.scaled_objects.clear()
    await until(lambda: replicas(world, "k") == 1)
    world.kube.delete("deployments", "team-red", "k")
