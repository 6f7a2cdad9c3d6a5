"""Every object as the cluster gets it, in files that a review can read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import ModelEndpoint
from tests import aws_stacks, samples
from tests.harness import Built, Recorded, build

CASES: dict[str, Callable[[], Built]] = {
    "endpoint-llama-cpp": lambda: build(lambda: ModelEndpoint("gemma", samples.llama_endpoint())),
    "endpoint-runnable-image-gpu": lambda: build(
        lambda: ModelEndpoint("summarizer", samples.gpu_endpoint())
    ),
    "endpoint-scaled": lambda: build(lambda: ModelEndpoint("gemma", samples.scaled_endpoint())),
    "endpoint-cold": lambda: build(lambda: ModelEndpoint("gemma", samples.cold_endpoint())),
    "endpoint-async": lambda: build(lambda: ModelEndpoint("summarizer", samples.async_endpoint())),
    "endpoint-vllm": lambda: build(lambda: ModelEndpoint("llama", samples.vllm_endpoint())),
    "gateway": lambda: build(lambda: samples.COMPONENTS["Gateway"]("gateway")),
    "cacher": lambda: build(lambda: samples.COMPONENTS["Cacher"]("cacher")),
    "team": lambda: build(lambda: samples.COMPONENTS["Team"]("demo")),
    "foundation-local": samples.published_foundation,
}


def without_secrets(resource: Recorded) -> dict[str, Any]:
    """Return a manifest in which secret text, random or not, is left out."""
    shown: dict[str, Any] = dict(resource.inputs)
    for field in ("data", "stringData"):
        if resource.kind == "Secret" and field in shown:
            shown[field] = dict.fromkeys(shown[field], "[secret]")
    return shown


def rendered(built: Built) -> str:
    objects = sorted(
        (it for it in built.resources if it.type.startswith("kubernetes:")),
        key=lambda it: (it.kind, it.name),
    )
    shown = [without_secrets(it) for it in objects]
    for manifest in shown:
        template = manifest.get("spec", {}).get("template", {}).get("metadata", {})
        if "llm-platform/config-hash" in template.get("annotations", {}):
            template["annotations"]["llm-platform/config-hash"] = "[hash]"
    return yaml.safe_dump_all(shown, sort_keys=True, width=100)


@pytest.mark.parametrize("case", CASES)
def test_the_manifests_are_the_reviewed_ones(case: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{case}.yaml", rendered(CASES[case]()))


STACKS: dict[str, Callable[[], Built]] = {
    "foundation-local": samples.published_foundation,
    "platform-local": samples.usual_platform,
    **{
        f"{layer}-{name}": lambda name=name, part=part: getattr(aws_stacks.environment(name), part)
        for name in aws_stacks.ENVIRONMENTS
        for layer, part in {"foundation": "below", "platform": "above"}.items()
    },
}


@pytest.mark.parametrize("stack", STACKS)
def test_no_resource_changed_its_address(stack: str, golden: Callable[[str, str], None]) -> None:
    """A resource whose address changes is made anew: give it an alias, then update this list."""
    addresses = sorted(it.urn.split("::", 2)[2] for it in STACKS[stack]().resources)
    golden(f"addresses-{stack}.txt", "\n".join(addresses) + "\n")


def test_every_golden_file_belongs_to_a_test() -> None:
    names = {f"{case}.yaml" for case in CASES} | {f"addresses-{stack}.txt" for stack in STACKS}
    rendered = Path(__file__).parent / "rendered"
    assert {path.name for path in rendered.iterdir() if path.is_file()} == names
