"""vLLM as a runtime: what it is started with, by its version."""

from typing import Any

import pulumi
import pytest
from pydantic import ValidationError

from components import Accelerator, ModelEndpoint, Vllm
from tests import samples
from tests.harness import Built, build


def vllm(**changes: Any) -> Vllm:
    fields: dict[str, Any] = {
        "model": "llama-3.1-8b",
        "image": samples.image("vllm"),
        "version": "0.19.0",
    }
    return Vllm(**{**fields, **changes})


def endpoint(runtime: Vllm, **changes: Any) -> Built:
    args = samples.vllm_endpoint(runtime=runtime, **changes)
    return build(lambda: ModelEndpoint("summarizer", args))


def model(built: Built) -> dict[str, Any]:
    return built.one("Deployment").inputs["spec"]["template"]["spec"]["containers"][0]


def options(runtime: Vllm, **changes: Any) -> dict[str, str]:
    """Return each option with its value; nothing for a switch."""
    command: list[str] = model(endpoint(runtime, **changes))["command"]
    found: dict[str, str] = {}
    for word, following in zip(command, [*command[1:], "--"], strict=True):
        if word.startswith("--"):
            found[word] = "" if following.startswith("--") else following
    return found


def test_it_serves_the_worker_s_weights_to_the_forwarder_only() -> None:
    command = model(endpoint(vllm()))["command"]
    assert command[:3] == ["vllm", "serve", "/weights"]
    found = options(vllm())
    assert (found["--host"], found["--port"]) == ("127.0.0.1", "5005")
    assert found["--served-model-name"] == "summarizer"
    assert found["--tensor-parallel-size"] == "4"
    assert found["--max-num-seqs"] == "8"
    assert "--trust-remote-code" not in found


def test_every_choice_reaches_the_command() -> None:
    found = options(
        vllm(
            max_model_len=4096,
            dtype="bfloat16",
            quantization="fp8",
            gpu_memory_utilization=0.95,
            tensor_parallel_size=2,
            max_num_seqs=64,
            enable_prefix_caching=False,
            tool_call_parser="hermes",
            trust_remote_code=True,
            extra_args=("--enforce-eager",),
        )
    )
    assert found["--max-model-len"] == "4096"
    assert found["--dtype"] == "bfloat16"
    assert found["--quantization"] == "fp8"
    assert found["--gpu-memory-utilization"] == "0.95"
    assert found["--tensor-parallel-size"] == "2"
    assert found["--max-num-seqs"] == "64"
    assert "--no-enable-prefix-caching" in found
    assert found["--tool-call-parser"] == "hermes"
    assert "--enable-auto-tool-choice" in found
    assert "--trust-remote-code" in found
    assert list(found)[-1] == "--enforce-eager"


def test_it_asks_nothing_of_the_internet_and_writes_where_it_may() -> None:
    entries = model(endpoint(vllm()))["env"]
    variables = {entry["name"]: entry["value"] for entry in entries}
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"):
        assert variables[name] == "1"
    for name in ("HF_HOME", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        assert variables[name].startswith("/tmp/")


@pytest.mark.parametrize(
    ("version", "waits"), [("0.17.1", False), ("0.18.0", True), ("0.19.0.post1", True)]
)
def test_it_is_told_to_finish_what_is_open_where_it_knows_how(version: str, waits: bool) -> None:
    built = endpoint(vllm(version=version))
    command = model(built)["command"]
    assert ("--shutdown-timeout" in command) is waits
    # Whatever it knows, its requests are done before it is told to stop.
    assert model(built)["lifecycle"]["preStop"]["httpGet"]["path"] == "/drain"
    pod = built.one("Deployment").inputs["spec"]["template"]["spec"]
    forwarder = {entry["name"]: entry.get("value") for entry in pod["containers"][1]["env"]}
    stop = int(command[command.index("--shutdown-timeout") + 1]) if waits else 0
    drain = int(forwarder["LLM_PLATFORM_DRAIN_SECONDS"])
    assert pod["terminationGracePeriodSeconds"] >= drain + stop + 5


@pytest.mark.parametrize(
    ("version", "option"),
    [("0.10.0", "--disable-log-requests"), ("0.10.1", "--no-enable-log-requests")],
)
def test_prompts_never_reach_a_log(version: str, option: str) -> None:
    assert option in options(vllm(version=version))


@pytest.mark.parametrize(
    ("version", "known"),
    [("0.10.2", True), ("0.11.0", True), ("0.33.1", True), ("0.9.2", False), ("0.34.0", False)],
)
def test_a_version_that_is_not_known_is_warned_of(
    version: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, **_: warnings.append(text))
    endpoint(vllm(version=version))
    assert bool(warnings) is not known
    assert all(f"version='{version}'" in text for text in warnings)


@pytest.mark.parametrize(
    ("runtime", "changes", "words"),
    [
        ({}, {"accelerator": Accelerator.CPU, "gpus": 0}, "vLLM needs GPUs"),
        ({"tensor_parallel_size": 8}, {}, "tensor_parallel_size=8 is above gpus=4"),
        ({}, {"resources": {"shared_memory": "64Mi"}}, "resources.shared_memory='64Mi'.*4Gi"),
        ({}, {"weights": None}, "weights are missing"),
    ],
)
def test_what_cannot_run_is_refused_by_name(
    runtime: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        samples.vllm_endpoint(runtime=vllm(**runtime), **changes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": "latest"},
        {"dtype": "int3"},
        {"gpu_memory_utilization": 1.5},
        {"quantization": "fp8; rm"},
        {"tool_call_parser": "--x"},
        {"max_model_len": 0},
    ],
)
def test_what_it_does_not_know_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        vllm(**wrong)
