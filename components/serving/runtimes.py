"""What runs in a worker's ``model`` container: an engine, or any image that serves HTTP."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from ..contracts import In
from ..domain.args import Args
from ..domain.images import ImageRef
from ..kube import workload

PORT = 5005
"""Where every model container serves."""

ROUTE = r"^/[!-~]*$"
"""A path of a server, as it is sent."""

OPENAI_PATH = "/v1/completions"
"""Where an engine that speaks OpenAI's API takes a task: a prompt in, its continuation out."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """What a runtime may want to know of the worker that it runs in."""

    endpoint: str
    max_concurrency: int
    weights_path: str
    gpus: int
    stop_seconds: int
    """How long it has between the signal to stop and being killed."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a worker is to be given, for a runtime to say whether that can work."""

    gpus: int
    shared_memory: str
    """The size of ``/dev/shm``."""


class Runtime(Args):
    """One way to serve a model; the same questions for each."""

    image: ImageRef
    """The model container's image, by digest."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its name in the registration."""

    @property
    def served_model(self) -> str:
        """The model, for people to read; empty when the image alone says it."""
        return ""

    @property
    def needs_weights(self) -> bool:
        """Whether it can't start without weights."""
        return False

    @property
    @abstractmethod
    def speaks_openai(self) -> bool:
        """Whether it serves OpenAI's API."""

    @property
    @abstractmethod
    def ready_path(self) -> str:
        """Where it answers 200 once the model is loaded."""

    @property
    def task_path(self) -> str:
        """Where the ``args`` of a task are posted to."""
        return OPENAI_PATH

    @property
    def task_stream_path(self) -> str:
        """The same for an answer in pieces; empty when it has none."""
        return OPENAI_PATH

    @abstractmethod
    def start_command(self, worker: Worker) -> tuple[str, ...]:
        """What the container runs; empty for the image's own entrypoint."""

    @abstractmethod
    def environment(self, worker: Worker) -> Mapping[str, In[str]]:
        """Its environment variables; values known only later travel in a Secret."""

    def problem(self, needs: Needs) -> str:
        """Say what keeps it from running so, and what to do; empty when nothing does."""
        del needs
        return ""

    def warning(self) -> str:
        """Say what people should know before it runs; empty when there is nothing."""
        return ""


class Engine(Runtime):
    """A runtime that serves one model's weights by OpenAI's API."""

    model: str = Field(min_length=1)
    """What is served, for people to read, such as ``gemma-3-270m-it``."""

    @property
    def served_model(self) -> str:
        """The model, for people to read."""
        return self.model

    @property
    def needs_weights(self) -> bool:
        """It serves what is on the worker's disk."""
        return True

    @property
    def speaks_openai(self) -> bool:
        """It serves OpenAI's API."""
        return True

    @property
    def ready_path(self) -> str:
        """Where it answers 200 once the model is loaded."""
        return "/health"


class LlamaCpp(Engine):
    """llama.cpp with its OpenAI-compatible server: small models on processors and GPUs.

    Its weights are one ``.gguf`` file.
    """

    context_length: int = Field(default=2048, ge=256)
    """Tokens of prompt and answer together, for each request."""
    threads: int = Field(default=2, ge=1)
    """Threads that compute."""
    chat_template: str = ""
    """The model's own when left out; ``plain`` (questions and answers) for a model that was never
    trained for chats; or a template in Jinja."""

    @property
    def kind(self) -> str:
        """Its name in the registration."""
        return "llama.cpp"

    def start_command(self, worker: Worker) -> tuple[str, ...]:
        """Start the server on the loopback address, where only the forwarder reaches it."""
        del worker
        return tuple(workload.program("services.runtimes.llamacpp"))

    def environment(self, worker: Worker) -> Mapping[str, In[str]]:
        """Its environment variables."""
        template = {"LLM_PLATFORM_CHAT_TEMPLATE": self.chat_template} if self.chat_template else {}
        return {
            **template,
            "LLM_PLATFORM_WEIGHTS_DIR": worker.weights_path,
            "LLM_PLATFORM_MODEL_ALIAS": worker.endpoint,
            "LLM_PLATFORM_CONTEXT_LENGTH": str(self.context_length),
            "LLM_PLATFORM_PARALLEL": str(worker.max_concurrency),
            "LLM_PLATFORM_THREADS": str(self.threads),
        }


class RunnableImage(Runtime):
    """Any image that serves HTTP on port 5005."""

    command: tuple[str, ...] = ()
    """What to run; the image's own entrypoint when left out. It should end at SIGTERM from its
    first moment, best under an init such as ``tini``: else a worker that has to go while it starts
    stays for its whole grace period."""
    health_path: str = Field(default="/healthz", pattern=ROUTE)
    """Where it answers 200 once it can take requests."""
    env: Mapping[str, In[str]] = Field(default_factory=dict)
    """Its environment; outputs (which may be secret) reach it through a Secret."""
    openai: bool = False
    """Whether it serves OpenAI's API, so that it is listed among the models."""
    predict_path: str = Field(default="/predict", pattern=ROUTE)
    """Where it takes a task: the task's ``args`` are posted to it."""
    stream_path: str = Field(default="", pattern=f"{ROUTE}|^$")
    """The same for an answer in pieces, as server-sent events; a STREAMING endpoint needs it,
    unless it speaks OpenAI's API."""

    @property
    def kind(self) -> str:
        """Its name in the registration."""
        return "runnable-image"

    @property
    def speaks_openai(self) -> bool:
        """As it was told."""
        return self.openai

    @property
    def ready_path(self) -> str:
        """As it was told."""
        return self.health_path

    @property
    def task_path(self) -> str:
        """As it was told."""
        return self.predict_path

    @property
    def task_stream_path(self) -> str:
        """As it was told; one that speaks OpenAI's API streams there."""
        return self.stream_path or (OPENAI_PATH if self.openai else "")

    def start_command(self, worker: Worker) -> tuple[str, ...]:
        """As it was told."""
        del worker
        return self.command

    def environment(self, worker: Worker) -> Mapping[str, In[str]]:
        """Its own, and where the weights are."""
        return {"LLM_PLATFORM_WEIGHTS_DIR": worker.weights_path, **self.env}
