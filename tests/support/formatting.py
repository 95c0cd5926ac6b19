# SPDX-License-Identifier: Apache-2.0
"""Generated C as clang-format has it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from children import ran
from needs import lacking

from ferrule.resources import root


def check_formatted(files: Iterable[Path]) -> None:
    """Check that clang-format would change nothing."""
    program = shutil.which("clang-format", path=str(Path(sys.executable).parent))  # others format otherwise
    if program is None:
        lacking("clang-format", "pip install -e '.[dev]'")
    argv = [str(program), f"--style=file:{root() / '.clang-format'}", "--dry-run", "-Werror", *map(str, files)]
    done = ran(argv)
    assert done.returncode == 0, done.stderr
