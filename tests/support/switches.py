# SPDX-License-Identifier: Apache-2.0
"""Context switches, as programs tell them that trace their kernel's: by the slot of time, and who runs from then on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferrule.emulation import Machine, engine

INVERSION = [
    "0 low",  # wakes, takes the lock
    "1 high",  # preempts it, and waits for the lock
    "1 low",  # has high's priority now: middle, which wakes in 2, does not run
    "3 high",  # has the lock when low gives it back; waits for the semaphore
    "3 middle",  # before low, which has its own priority again
    "4 high",  # preempts middle where that gives the semaphore; sleeps
    "4 middle",  # sleeps
    "4 low",
]
"""How a round of ten slots begins: a priority is inherited, and given back."""


def expected(start: Sequence[str], turns: Sequence[str], *, rounds: int) -> list[str]:
    """Return the trace of a start, of rounds that end with `turns`, and of the first's waking at last."""
    first, *_ = start[-2].split()[1:]
    shown = [line.split() for line in (*INVERSION, *turns)]
    told = [f"{10 * number + int(slot)} {name}" for number in range(1, rounds + 1) for slot, name in shown]
    return [*start, *told, f"{10 * (rounds + 1)} {first}", "failures 0"]


def run(name: str, machine: Machine, channel: str) -> list[str]:
    """Run a program in an emulator, and return its trace and how many of its calls failed."""
    text = ""
    with engine(name).start(machine) as session:
        source = session.channel(channel)
        while re.search(r"^failures \d+\r?\n", text, re.MULTILINE) is None:
            received = source.read(4096, 60)
            assert received, f"the trace ends with {text[-200:]!r}"
            text += received.decode()
    return [line for line in text.splitlines() if not line.startswith("***")]  # Zephyr's banner
