# SPDX-License-Identifier: Apache-2.0
"""The error for an emulator whose process has ended, or does not answer."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from typing import IO

from ferrule.emulation.crash import EngineError

LAST_LINES = 20


def last_words(
    process: subprocess.Popen[bytes], output: IO[bytes], argv: Sequence[str], *, name: str, running: str
) -> EngineError:
    """Return the error: how the process ended, its arguments and the last lines of its output.

    `running` describes a process that has not ended a second later, such as "does not answer".
    """
    try:
        how = f"ended with {process.wait(1)}"
    except subprocess.TimeoutExpired:
        how = running
    output.seek(0)
    lines = output.read().decode(errors="replace").splitlines()[-LAST_LINES:]
    return EngineError("\n".join([f"{name} {how}: {shlex.join(argv)}", *lines]))
