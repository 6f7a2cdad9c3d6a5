"""vLLM as a runtime: the engine's options as typed arguments, by what each version knows."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ..contracts import In
from ..domain.quantities import parse_quantity
from .runtimes import PORT, Engine, Needs, Worker

OLDEST, NEWEST = (0, 10, 0), (0, 33, 0)
"""The versions whose options are known here."""

_OPT_IN_LOGS = (0, 10, 1)
"""From here on request logs are off unless asked for, and the option to switch them off goes."""
_WAITS_AT_STOP = (0, 18, 0)
"""From here on it can be told to finish what is open when it is told to stop."""

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[.-]?(?:post|rc|dev)\d+)?(?:\+[a-z0-9.]+)?")
_SHARED_MEMORY_PER_GPU = 1024**3
_TMP = "/tmp"  # noqa: S108 - the container's own, in a volume of its own


def _parsed(version: str) -> tuple[int, int, int]:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} isn't a version of vLLM: write it as in 0.19.0")
    return int(match[1]), int(match[2]), int(match[3] or 0)


def _version(value: str) -> str:
    _parsed(value)
    return value


class Vllm(Engine):
    """vLLM with its OpenAI-compatible server: large models on GPUs.

    It gets all the GPUs of its worker, reads weights from the worker's disk only and asks nothing
    of the internet. Raise ``resources`` with it: ``shared_memory`` to 1Gi or more per GPU where
    there are several, ``scratch`` for what it compiles.
    """

    version: Annotated[str, AfterValidator(_version)]
    """The image's version of vLLM, such as ``0.19.0``: it decides which options there are."""
    max_model_len: int | None = Field(default=None, ge=1)
    """Tokens of prompt and answer together; the model's own when left out."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """What it computes in; ``auto`` as the weights are."""
    quantization: str | None = Field(default=None, pattern=r"^[a-z0-9_-]+$")
    """Such as ``awq`` or ``fp8``; as the weights say when left out."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """How much of each GPU's memory it takes."""
    tensor_parallel_size: int | None = Field(default=None, ge=1)
    """Over how many GPUs each layer is spread; all of the worker's when left out."""
    max_num_seqs: int | None = Field(default=None, ge=1)
    """Sequences that it computes at once; as many as the worker takes when left out."""
    enable_prefix_caching: bool = True
    """Whether prompts that begin alike are computed once."""
    tool_call_parser: str | None = Field(default=None, pattern=r"^[a-z0-9_]+$")
    """How the model writes calls of tools, such as ``llama3_json``; switches them on."""
    trust_remote_code: bool = False
    """Whether Python that came with the weights is run; only for weights that you have read."""
    extra_args: tuple[str, ...] = ()
    """Options for what isn't here, such as ``("--enforce-eager",)``; they come last and win."""

    @property
    def kind(self) -> str:
        """Its name in the registration."""
        return "vllm"

    def problem(self, needs: Needs) -> str:
        """Say what keeps it from running so, and what to do; empty when nothing does."""
        if needs.gpus < 1:
            return "accelerator='cpu': vLLM needs GPUs, such as accelerator=Accelerator.L40S"
        spread = self.tensor_parallel_size or needs.gpus
        if spread > needs.gpus:
            return (
                f"tensor_parallel_size={spread} is above gpus={needs.gpus}: lower it, or give the "
                "worker more GPUs"
            )
        least = needs.gpus * _SHARED_MEMORY_PER_GPU
        if needs.gpus > 1 and parse_quantity(needs.shared_memory) < least:
            return (
                f"resources.shared_memory={needs.shared_memory!r} is too little for gpus="
                f"{needs.gpus}, whose processes talk through it: make it {needs.gpus}Gi or more, "
                "and resources.memory as much larger"
            )
        return ""

    def warning(self) -> str:
        """Say that a version isn't known, whose options and metrics may have other names."""
        if OLDEST[:2] <= self._release[:2] <= NEWEST[:2]:
            return ""
        known = f"{_text(OLDEST)} to {_text(NEWEST)}"
        return (
            f"version={self.version!r} of vLLM isn't one of those known here ({known}): options or "
            "metrics may have other names there; try it before you rely on it"
        )

    def start_command(self, worker: Worker) -> tuple[str, ...]:
        """Start the server on the loopback address, where only the forwarder reaches it."""
        return (
            *("vllm", "serve", worker.weights_path),
            *("--served-model-name", worker.endpoint),
            *("--host", "127.0.0.1", "--port", str(PORT)),
            *("--tensor-parallel-size", str(self.tensor_parallel_size or worker.gpus)),
            *("--max-num-seqs", str(self.max_num_seqs or worker.max_concurrency)),
            *("--gpu-memory-utilization", str(self.gpu_memory_utilization)),
            *("--dtype", self.dtype),
            *self._choices(),
            *self._by_version(worker),
            *self.extra_args,
        )

    def environment(self, worker: Worker) -> Mapping[str, In[str]]:
        """Nothing is fetched or told; every cache is where it may write."""
        del worker
        return {
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "HF_HOME": f"{_TMP}/huggingface",
            "VLLM_CACHE_ROOT": f"{_TMP}/vllm",
            "VLLM_CONFIG_ROOT": f"{_TMP}/vllm-config",
            "TORCHINDUCTOR_CACHE_DIR": f"{_TMP}/inductor",
            "TRITON_CACHE_DIR": f"{_TMP}/triton",
            "NUMBA_CACHE_DIR": f"{_TMP}/numba",
        }

    def _choices(self) -> Iterator[str]:
        if self.max_model_len is not None:
            yield from ("--max-model-len", str(self.max_model_len))
        if self.quantization:
            yield from ("--quantization", self.quantization)
        yield (
            "--enable-prefix-caching"
            if self.enable_prefix_caching
            else ("--no-enable-prefix-caching")
        )
        if self.tool_call_parser:
            yield from ("--enable-auto-tool-choice", "--tool-call-parser", self.tool_call_parser)
        if self.trust_remote_code:
            yield "--trust-remote-code"

    def _by_version(self, worker: Worker) -> Iterator[str]:
        """Yield what only some versions know; prompts never reach a log in any of them."""
        old = self._release < _OPT_IN_LOGS
        yield "--disable-log-requests" if old else "--no-enable-log-requests"
        yield from ("--uvicorn-log-level", "warning")
        # Without it the signal to stop ends what is open. The forwarder has let it all finish by
        # then, but for what an engine does after a forwarder that was killed.
        if self._release >= _WAITS_AT_STOP:
            yield from ("--shutdown-timeout", str(worker.stop_seconds))

    @property
    def _release(self) -> tuple[int, int, int]:
        return _parsed(self.version)


def _text(release: tuple[int, int, int]) -> str:
    return ".".join(map(str, release[:2]))
