# SPDX-License-Identifier: Apache-2.0
"""The real Renode on this machine, if RENODE points to one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def renode_program() -> Path | None:
    """Return the Renode program that the variable RENODE names; None if there is none."""
    found = shutil.which(os.environ.get("RENODE", ""))
    return Path(found).resolve() if found else None


def renode_root() -> Path | None:
    """Return the folder that contains Renode's `platforms`: the program's own folder or one above it."""
    program = renode_program()
    folders = program.parents if program else ()
    return next((folder for folder in folders if (folder / "platforms" / "cpus").is_dir()), None)
