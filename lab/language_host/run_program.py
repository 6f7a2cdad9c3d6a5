"""Runs one Pulumi program: `run_program.py SETTINGS-AS-JSON PROGRAM ARGS…`."""

import asyncio
import json
import logging
import runpy
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pulumi
import pulumi.runtime

SHOWN_ERROR_EXIT_CODE = 32


def main() -> int:
    """Run the program inside a stack; return the exit code that the language host knows."""
    settings, program = json.loads(sys.argv[1]), Path(sys.argv[2])
    pulumi.runtime.set_all_config(
        pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env()
    )
    pulumi.runtime.configure(pulumi.runtime.Settings(**settings))
    sys.argv = [str(program), *sys.argv[3:]]
    # A failed program leaves futures behind that nobody looks at; that is no news.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(max_workers=4 * max(1, settings["parallel"]))
    loop.set_default_executor(executor)
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: _run(program)))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return SHOWN_ERROR_EXIT_CODE
    except KeyboardInterrupt:
        return 130
    except Exception:  # whatever the program does wrong is shown to who wrote it
        pulumi.log.error(f"The program failed:\n{_trace_from(program)}")
        return SHOWN_ERROR_EXIT_CODE
    finally:
        executor.shutdown(wait=True)
        loop.close()
    return 0


def _run(program: Path) -> None:
    runpy.run_path(str(program), run_name="__main__")


def _trace_from(program: Path) -> str:
    """Format the current error from the program's first line on, without our own frames."""
    kind, error, trace = sys.exc_info()
    root = program if program.is_dir() else program.parent
    while trace and not trace.tb_frame.f_code.co_filename.startswith(str(root)):
        trace = trace.tb_next
    if trace is None:
        return traceback.format_exc()
    return "".join(traceback.format_exception(kind, error, trace))


if __name__ == "__main__":
    sys.exit(main())
