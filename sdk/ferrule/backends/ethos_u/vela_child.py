# SPDX-License-Identifier: Apache-2.0
"""A script that runs Vela for several models in a process of its own; it imports nothing from Ferrule.

Argument: a file with one JSON list per line, the arguments of Vela for one model and, as the first element, the name of
the file that gets all that Vela prints. For each model, a line with a JSON text is written to standard output: "" if
Vela succeeded, otherwise the error. A model that kills the process leaves its line unwritten.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Run Vela for each line of the file."""
    forbid_core_dumps()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # what Vela prints must not get between the answers
    from ethosu.vela.vela import main as vela

    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        log, *arguments = json.loads(line)
        with Path(log).open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        reason = ""
        try:
            code = vela(arguments)
            reason = f"Vela ended with exit code {code}" if code else ""
        except SystemExit as error:
            reason = f"Vela ended with exit code {error.code}" if error.code else ""
        except Exception as error:  # noqa: BLE001 it becomes the answer
            reason = f"{type(error).__name__}: {error}".strip()
        sys.stdout.flush()
        sys.stderr.flush()
        answers.write(json.dumps(reason) + "\n")
        answers.flush()


def forbid_core_dumps() -> None:
    """Prevent core dumps, since a crash of this process only concerns one model."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
