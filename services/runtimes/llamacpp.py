"""``python -m services.runtimes.llamacpp``: llama.cpp with its own OpenAI-compatible server."""

import importlib
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import structlog
from pydantic import Field

from services.core.logs import configure_logs
from services.core.settings import ServiceSettings, from_environment

from .errors import EngineFailed, NoModel

_CHILD = "--engine"

_PLAIN_TEMPLATE = """\
{%- for message in messages -%}
{%- if message['role'] == 'user' -%}Question: {{ message['content'] }}
{% elif message['role'] == 'assistant' -%}Answer: {{ message['content'] }}

{% else -%}{{ message['content'] }}

{% endif -%}
{%- endfor -%}
Answer:"""
_PLAIN_STOP = "\nQuestion:"


class LlamaCppSettings(ServiceSettings):
    """What the engine is started with."""

    weights_dir: Path = Path("/weights")
    """The directory with the one ``.gguf`` file."""
    model_alias: str
    """The name that clients call the model by."""
    context_length: int = Field(default=4096, ge=128)
    """Tokens of one request, prompt and answer together."""
    chat_template: str = ""
    """Empty for the model's own; ``plain`` (questions and answers) for a model that has none since
    it was never trained for chats; or a template in Jinja."""
    parallel: int = Field(default=4, ge=1)
    """Requests that are worked on at once."""
    threads: int = Field(default=2, ge=1)
    """CPU threads that compute."""
    prompt_cache_mib: int = Field(default=256, ge=0)
    """Memory for prompts that may come again, such as a chat that goes on."""
    host: str = "127.0.0.1"
    """The forwarder is beside us; nobody else needs to reach the engine."""
    port: int = 5005
    """The port that the forwarder expects."""


def find_model(directory: Path) -> Path:
    """Return the one model in a directory.

    Raises:
        NoModel: there is none, or more than one to choose from.
    """
    found = sorted(directory.rglob("*.gguf"))
    if not found:
        raise NoModel(f"{directory} holds no .gguf file: are the weights loaded?")
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise NoModel(f"{directory} holds more than one .gguf file, which one is meant? {names}")
    return found[0]


def start(settings: LlamaCppSettings, model: Path) -> object:
    """Start the engine's server in this process; it serves as long as the result lives.

    Raises:
        EngineFailed: it could not load the model or listen.
    """
    # Only the engine's image has the module, so it is looked up when it is needed.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {settings.model_alias}
    parameters.n_ctx = settings.context_length * settings.parallel
    parameters.n_parallel = settings.parallel
    parameters.cpuparams.n_threads = settings.threads
    parameters.cpuparams_batch.n_threads = settings.threads
    # One thread carries one open request; health must answer when every slot is busy.
    parameters.n_threads_http = 2 * settings.parallel + 4
    parameters.hostnames = [settings.host]
    parameters.port = settings.port
    parameters.ui = False
    parameters.offline = True
    # The default of 8 GiB for kept prompts is more than a worker has.
    parameters.cache_ram_mib = settings.prompt_cache_mib
    parameters.verbosity = 1  # higher levels write prompts
    if settings.chat_template == "plain":
        parameters.chat_template = _PLAIN_TEMPLATE
        parameters.antiprompt = [_PLAIN_STOP]
    elif settings.chat_template:
        parameters.chat_template = settings.chat_template
    try:
        return xllamacpp.Server(parameters)
    except (RuntimeError, ValueError) as error:
        raise EngineFailed(f"{model.name} can't be served: {error}") from error


def serve(settings: LlamaCppSettings, log: structlog.typing.FilteringBoundLogger) -> int:
    """Load and serve in this process, until it is killed; return only when that fails."""
    try:
        model = find_model(settings.weights_dir)
        log.info("loading", model=model.name, alias=settings.model_alias)
        server = start(settings, model)
    except (NoModel, EngineFailed) as error:
        log.error("the engine can't start", error=str(error))
        return 1
    log.info("serving", port=settings.port, engine=type(server).__name__)
    while True:
        signal.pause()


def supervise(log: structlog.typing.FilteringBoundLogger) -> int:
    """Run the engine as a child, and end it at once at SIGTERM.

    The engine loads in one call that takes seconds to minutes and hears no signal meanwhile. It has
    nothing to save: by the time of SIGTERM the forwarder has seen the last request out.
    """
    stopping = threading.Event()
    child = subprocess.Popen([sys.executable, "-m", __spec__.name, _CHILD])

    def stop(*_: object) -> None:
        stopping.set()
        child.kill()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    code = child.wait()
    if stopping.is_set():
        log.info("stopped")
        return 0
    log.error("the engine ended", code=code)
    return code if code > 0 else 1


def main() -> int:
    """Serve until SIGTERM."""
    settings = from_environment(LlamaCppSettings)
    log: structlog.typing.FilteringBoundLogger = configure_logs("llamacpp", settings.log_level)
    return serve(settings, log) if _CHILD in sys.argv else supervise(log)


if __name__ == "__main__":
    sys.exit(main())
