# SPDX-License-Identifier: Apache-2.0
"""A script that runs Vela for one model after the other in a process of its own; it imports nothing from Ferrule.

Each line of standard input is a JSON list: the name of the file that gets all that Vela prints, and the arguments of
Vela. The answer to each is one line with a JSON text: "" if Vela succeeded, otherwise the error. A model that kills the
process leaves its answer unwritten. The process ends with its input, or after IDLE_S seconds without a model.
"""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path

IDLE_S = 60


def main() -> None:
    """Answer until the input ends."""
    forbid_core_dumps()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # what Vela prints must not get between the answers
    while line := next_line():
        log, *arguments = json.loads(line)
        with Path(log).open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        answers.write(json.dumps(compiled(arguments)) + "\n")
        answers.flush()


def next_line() -> str:
    """Return the next line of the input; "" at its end, or if none comes for too long."""
    if sys.platform != "win32" and not select.select([sys.stdin], [], [], IDLE_S)[0]:
        return ""
    return sys.stdin.readline()


def compiled(arguments: list[str]) -> str:
    """Run Vela; return "" or the error."""
    from ethosu.vela.vela import main as vela

    try:
        code = vela(arguments)
    except SystemExit as error:
        code = error.code
    except Exception as error:  # noqa: BLE001 it becomes the answer
        return f"{type(error).__name__}: {error}".strip()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return f"Vela ended with exit code {code}" if code else ""


def forbid_core_dumps() -> None:
    """Prevent core dumps, since a crash of this process only concerns one model."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
