# SPDX-License-Identifier: Apache-2.0
"""The program of a `KeptProcess`; it imports nothing from Ferrule, and neither does the script that it runs.

The argument is the script, which has a function `answer` of a list of texts. Each line of standard input is a JSON
list: the name of the file that gets all that is printed, and the arguments of `answer`. Its result, a text, is the
answer: one line of JSON. A request that kills the process leaves its answer unwritten. The process ends with its input,
or after IDLE_S seconds without a request.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import sys
from pathlib import Path

IDLE_S = 60


def main() -> None:
    """Answer until the input ends."""
    forbid_core_dumps()
    answer = runpy.run_path(sys.argv[1])["answer"]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # what a script prints must not get between the answers
    while line := next_line():
        log, *arguments = json.loads(line)
        with Path(log).open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        try:
            said = answer(arguments)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        answers.write(json.dumps(said) + "\n")
        answers.flush()


def next_line() -> str:
    """Return the next line of the input; "" at its end, or if none comes for too long."""
    if sys.platform != "win32" and not select.select([sys.stdin], [], [], IDLE_S)[0]:
        return ""
    return sys.stdin.readline()


def forbid_core_dumps() -> None:
    """Prevent core dumps, since a crash of this process only concerns one request."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
