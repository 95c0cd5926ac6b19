# SPDX-License-Identifier: Apache-2.0
"""The real Renode of this machine, if RENODE points to one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def renode_program() -> Path | None:
    """Return Renode's program by the variable RENODE."""
    found = shutil.which(os.environ.get("RENODE", ""))
    return Path(found).resolve() if found else None


def renode_root() -> Path | None:
    """Return the folder with Renode's `platforms`, which is that of the program or one above it."""
    program = renode_program()
    folders = program.parents if program else ()
    return next((folder for folder in folders if (folder / "platforms" / "cpus").is_dir()), None)
