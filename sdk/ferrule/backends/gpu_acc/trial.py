# SPDX-License-Identifier: Apache-2.0
"""Trials of OpenCL platforms in child processes, since a driver may kill the process that first runs a kernel."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import msgspec

from ferrule._frozen import frozen
from ferrule.cache import cache_subfolder
from ferrule.child_process import CommandError, ending, run

TIMEOUT_S = 120
"""Time limit for one platform, which includes loading its compiler and the first compilation."""
_CHILD = Path(__file__).with_name("trial_child.py")
_LAST_WORDS = 3


@frozen
class Trial:
    """The result of running a kernel on a platform in a child process."""

    obstacles: tuple[str, ...] = ()
    """For each device of the platform, the reason why it cannot run kernels; "" if it can."""
    death: str = ""
    """How the platform ended the process, with the last lines of its output; "" if it did not."""


@cache
def try_platform(index: int, work_group: int) -> Trial:
    """Build and run a kernel on each device of a platform in a child process; the result is cached in this process.

    Args:
        index: index of the platform, in the order of pyopencl.
        work_group: number of work items that a work-group must support.
    """
    argv = [sys.executable, "-P", "-W", "ignore", str(_CHILD), str(index), str(work_group)]
    environment = {**os.environ, "POCL_CACHE_DIR": str(_kernels())}
    try:
        done = run(argv, TIMEOUT_S, check=False, environment=environment)
    except CommandError as error:
        return Trial(death=f"could not be tried: {error}")
    if done.returncode == 0:
        return Trial(obstacles=msgspec.json.decode(done.stdout.splitlines()[-1], type=tuple[str, ...]))
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    words = "; ".join(lines[-_LAST_WORDS:]) or "it says nothing"
    return Trial(death=f"ended a trial process with {ending(done.returncode)}: {words}")


def _kernels() -> Path:
    """Return the folder in which PoCL caches the trial's kernel; each linker on the PATH has a separate folder.

    With a common folder, a trial without a linker would run a kernel that was linked earlier with one.
    """
    linker = hashlib.sha256(f"{shutil.which('ld')}\0{os.environ.get('PATH')}".encode()).hexdigest()[:16]
    return cache_subfolder("opencl") / linker
