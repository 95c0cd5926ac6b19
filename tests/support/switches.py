# SPDX-License-Identifier: Apache-2.0
"""Context switches as traced programs report them: the time slot and the name of the thread that runs from then on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferrule.emulation import Machine, engine

INVERSION = [
    "0 low",  # wakes and takes the lock
    "1 high",  # preempts low, and waits for the lock
    "1 low",  # inherits high's priority: middle, which wakes in slot 2, does not run
    "3 high",  # gets the lock when low releases it; waits for the semaphore
    "3 middle",  # runs before low, which is back at its own priority
    "4 high",  # preempts middle when middle gives the semaphore; sleeps
    "4 middle",  # sleeps
    "4 low",
]
"""The start of each round of ten slots: low inherits high's priority and then loses it."""


def expected(start: Sequence[str], turns: Sequence[str], *, rounds: int) -> list[str]:
    """Return the trace of `start`, of `rounds` rounds that end with `turns`, and of the first thread's last wake-up."""
    first, *_ = start[-2].split()[1:]
    shown = [line.split() for line in (*INVERSION, *turns)]
    told = [f"{10 * number + int(slot)} {name}" for number in range(1, rounds + 1) for slot, name in shown]
    return [*start, *told, f"{10 * (rounds + 1)} {first}", "failures 0"]


def run(name: str, machine: Machine, channel: str) -> list[str]:
    """Run a program in an emulator, and return its trace, which ends with the number of failed calls."""
    text = ""
    with engine(name).start(machine) as session:
        source = session.channel(channel)
        while re.search(r"^failures \d+\r?\n", text, re.MULTILINE) is None:
            received = source.read(4096, 170)
            assert received, f"the trace ends with {text[-200:]!r}"
            text += received.decode()
    return [line for line in text.splitlines() if not line.startswith("***")]  # Zephyr's banner
