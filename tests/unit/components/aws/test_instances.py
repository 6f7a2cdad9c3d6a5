"""The table of instance types: what lookups say, and that its rows are plausible."""

import itertools

import pytest

from components.domain.accelerators import Accelerator
from components.domain.aws_instances import (
    INSTANCES,
    default_instance,
    instance,
    instances_with,
)


def test_a_type_is_found_by_its_name() -> None:
    found = instance("g6e.12xlarge")
    assert (found.accelerator, found.gpus, found.vcpus) == (Accelerator.L40S, 4, 48)
    assert found.gpu_memory_mib == 4 * 45_776
    assert found.usd_per_hour == pytest.approx(10.49264)


def test_a_type_that_nobody_knows_is_refused_with_those_that_were_meant() -> None:
    with pytest.raises(ValueError, match=r"'g6e\.12xlrage'.*g6e\.12xlarge"):
        instance("g6e.12xlrage")
    with pytest.raises(ValueError, match="isn't an instance type"):
        instance("")


@pytest.mark.parametrize("accelerator", Accelerator)
def test_every_accelerator_has_a_default_and_its_memory(accelerator: Accelerator) -> None:
    assert default_instance(accelerator).accelerator is accelerator
    assert (accelerator.memory_mib > 0) is accelerator.is_gpu


def test_types_are_offered_the_cheapest_first() -> None:
    offered = instances_with(Accelerator.L40S, gpus=2)
    assert [it.type for it in offered] == ["g6e.12xlarge", "g6e.24xlarge", "g6e.48xlarge"]
    assert [it.type for it in instances_with(Accelerator.H200)] == ["p5en.48xlarge", "p5e.48xlarge"]
    assert instances_with(Accelerator.L4, gpus=16) == ()


@pytest.mark.parametrize("name", INSTANCES)
def test_a_row_is_plausible(name: str) -> None:
    it = INSTANCES[name]
    assert it.type == name
    assert (it.gpus > 0) is it.accelerator.is_gpu
    assert (it.nvme_gb > 0) is it.accelerator.is_gpu
    assert it.memory_gib >= 2 * it.vcpus
    assert it.usd_per_hour is None or 0 < it.usd_per_hour < 200
    assert it.quota_family == {"g": "G and VT", "p": "P"}.get(name[0], "Standard")
    assert it.ami_type == (
        "AL2023_x86_64_NVIDIA" if it.accelerator.is_gpu else "AL2023_x86_64_STANDARD"
    )


def test_a_larger_size_never_has_less_and_never_costs_less_for_as_many_gpus() -> None:
    for family in {it.family for it in INSTANCES.values()}:
        sizes = sorted(
            (it for it in INSTANCES.values() if it.family == family),
            key=lambda it: (it.gpus, it.vcpus),
        )
        for smaller, larger in itertools.pairwise(sizes):
            if smaller.gpus != larger.gpus:
                continue
            assert smaller.memory_gib <= larger.memory_gib, larger.type
            if smaller.usd_per_hour and larger.usd_per_hour:
                assert smaller.usd_per_hour < larger.usd_per_hour, larger.type
