# SPDX-License-Identifier: Apache-2.0
"""The environment of child processes that import modules of tests."""

from __future__ import annotations

import os
from pathlib import Path


def environment(*folders: Path | str, **variables: str) -> dict[str, str]:
    """Return this process's environment with variables, where Python searches the folders before its PYTHONPATH.

    The own PYTHONPATH stays behind them: it may be the place of Ferrule, where that is not installed.
    """
    own = os.environ.get("PYTHONPATH")
    paths = [str(folder) for folder in folders] + ([own] if own else [])
    return {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(paths)}
