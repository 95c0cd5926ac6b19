# SPDX-License-Identifier: Apache-2.0
"""Runs a target of the Makefile and fails if it runs fewer tests or takes more processor time than budgets.toml allows.

Processor time, user and system, of all processes that the target waits for depends less on the machine's load than
minutes do.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import tomllib
from pathlib import Path

BUDGETS = Path(__file__).with_name("budgets.toml")


def main(target: str) -> int:
    """Return the exit status: that of make, or 1 if it succeeded beyond its budget."""
    budget = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))[target]
    started_s = time.monotonic()
    options = [f"PYTEST_OPTIONS=--at-least {budget['tests']}"] if "tests" in budget else []
    status = subprocess.run(["make", target, *options], check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    minutes = (used.ru_utime + used.ru_stime) / 60
    sys.stderr.write(
        f"make {target}: {minutes:.1f} minutes of processor time, of at most {budget['minutes']}, "
        f"within {(time.monotonic() - started_s) / 60:.1f} minutes\n"
    )
    return status or int(minutes > budget["minutes"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
