# SPDX-License-Identifier: Apache-2.0
"""Child processes: the environment of those that import modules of tests, and what they print."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def environment(*folders: Path | str, **variables: str) -> dict[str, str]:
    """Return this process's environment with variables, where Python searches the folders before its PYTHONPATH.

    The own PYTHONPATH stays behind them: it may be the place of Ferrule, where that is not installed.
    """
    own = os.environ.get("PYTHONPATH")
    paths = [str(folder) for folder in folders] + ([own] if own else [])
    return {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(paths)}


def ran(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program, which reads `stdin`, and keep what it prints, as text.

    Raises:
        CalledProcessError: with `check`, its exit status is not 0.
        TimeoutExpired: it has not ended after `timeout` seconds, and was killed.
    """
    return subprocess.run(
        argv, cwd=cwd, env=env, input=stdin, timeout=timeout, check=check, capture_output=True, text=True
    )
