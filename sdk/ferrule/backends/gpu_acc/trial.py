# SPDX-License-Identifier: Apache-2.0
"""OpenCL platforms tried in child processes, since a driver may end the process that first runs a kernel."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from ferrule.nativelib import cache_folder

TIMEOUT_S = 120
"""How long a platform may take: its compiler loads and compiles for the first time."""
_CHILD = Path(__file__).with_name("trial_child.py")
_LAST_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What became of a platform's kernel in a child process."""

    obstacles: tuple[str, ...] = ()
    """Why a device cannot run kernels, "" if it can, for each device of the platform."""
    death: str = ""
    """How the platform ended the process, with its last words; "" if it did not."""


@cache
def try_platform(index: int, work_group: int) -> Trial:
    """Build and run a kernel on each device of a platform, in a child process; once per process.

    Args:
        index: of the platform, in the order of pyopencl.
        work_group: work items that a group must take.
    """
    argv = [sys.executable, "-P", "-W", "ignore", str(_CHILD), str(index), str(work_group)]
    environment = {**os.environ, "POCL_CACHE_DIR": str(_kernels())}
    try:
        done = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Trial(death=f"could not be tried: {error}")
    if done.returncode == 0:
        return Trial(obstacles=msgspec.json.decode(done.stdout.splitlines()[-1], type=tuple[str, ...]))
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    words = "; ".join(lines[-_LAST_WORDS:]) or "it says nothing"
    return Trial(death=f"ended a trial process with {_end(done.returncode)}: {words}")


def _kernels() -> Path:
    """Return the folder where PoCL keeps the trial's kernel, of its own for each linker on the PATH.

    From a common one PoCL would run, without a linker, what it linked while there was one.
    """
    linker = hashlib.sha256(f"{shutil.which('ld')}\0{os.environ.get('PATH')}".encode()).hexdigest()[:16]
    return cache_folder() / f"opencl_trial_{linker}"


def _end(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"
