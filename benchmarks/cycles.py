# SPDX-License-Identifier: Apache-2.0
"""Estimated cycles of an inference: a static model over the exact count of each instruction, from a plugin of QEMU.

No wait states, no caches. Cortex-M4: a load takes 1 cycle (low) or 2 unless a load precedes it (high), LDM and STM one
for each register and one more (high), a taken branch 1 (low) or 2 (high) more. Cortex-M55: a scalar instruction takes 1
cycle, a vector instruction 2; in the low estimate, one that follows a vector instruction of the other kind (load or
store, arithmetic) takes 1, and the instructions of low-overhead loops take none. docs/timing.md lists the low estimate
beside published cycles of Cortex-M55.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path

import ferrule
from ferrule.boards import Board
from ferrule.firmware import Image, read_image

QEMU = "qemu-system-arm"
LONGEST_S = 600.0
"""Limit of a program, in seconds."""


class Kind(Enum):
    """What the models tell apart."""

    OTHER = auto()
    LOAD = auto()
    LOADS = auto()
    STORES = auto()
    DIVISION = auto()
    LOOP = auto()
    VECTOR_MEMORY = auto()
    VECTOR_ARITHMETIC = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The instructions of an inference, and the low and the high estimate of its cycles."""

    instructions: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """An instruction with its counts."""

    address: int
    code: bytes
    executed: int
    jumps: int


def estimate(firmware: ferrule.Firmware) -> Estimate:
    """Run the firmware in QEMU and return the estimate of its last inference; only for Cortex-M4 and Cortex-M55."""
    begin = firmware.image.address_of(f"ferrule_{firmware.artifact.symbol}_run")
    executed = _executed(firmware.image, begin, lambda: firmware.run(engine="qemu"))
    return _estimated(firmware.board.cpu.type, executed)


def estimate_function(board: Board, elf: Path, function: str) -> Estimate:
    """Run a program in QEMU until it exits by semihosting, and return the estimate of the last call of a function."""
    image = read_image(elf)
    executed = _executed(image, image.address_of(function), lambda: _run_to_exit(board, elf))
    return _estimated(board.cpu.type, executed)


def _run_to_exit(board: Board, elf: Path) -> None:
    """Run a program in QEMU, which ends with the program's status."""
    assert board.qemu is not None, f"QEMU has no machine for {board.name}"
    arguments = [QEMU, "-M", board.qemu.name, "-display", "none", "-semihosting", "-kernel", str(elf)]
    subprocess.run(arguments, check=True, timeout=LONGEST_S, stdin=subprocess.DEVNULL)


def _estimated(cpu: str, executed: Sequence[Executed]) -> Estimate:
    cost = {"cortex-m4": _m4, "cortex-m4f": _m4, "cortex-m55": _m55}[cpu]
    low = high = 0
    before: Executed | None = None
    for each in executed:
        follows = before is not None and before.address + len(before.code) == each.address
        earlier = kind_of(before.code)[0] if follows and before is not None else Kind.OTHER
        least, most, jump_least, jump_most = cost(each.code, earlier)
        low += least * each.executed + jump_least * each.jumps
        high += most * each.executed + jump_most * each.jumps
        before = each
    return Estimate(instructions=sum(each.executed for each in executed), low=low, high=high)


Cost = Callable[[bytes, Kind], tuple[int, int, int, int]]
"""From an instruction and the kind of the preceding one: cycles, and more for a jump, each low and high."""


def _m4(code: bytes, earlier: Kind) -> tuple[int, int, int, int]:
    kind, registers = kind_of(code)
    match kind:
        case Kind.LOAD:
            return 1, 1 if earlier is Kind.LOAD else 2, 1, 2
        case Kind.LOADS | Kind.STORES:
            return registers, registers + 1, 1, 2
        case Kind.DIVISION:
            return 2, 12, 1, 2
        case _:
            return 1, 1, 1, 2


def _m55(code: bytes, earlier: Kind) -> tuple[int, int, int, int]:
    kind, registers = kind_of(code)
    match kind:
        case Kind.LOOP:
            return 0, 1, 0, 0
        case Kind.VECTOR_MEMORY:
            return 1 if earlier is Kind.VECTOR_ARITHMETIC else 2, 2, 0, 0
        case Kind.VECTOR_ARITHMETIC:
            return 1 if earlier is Kind.VECTOR_MEMORY else 2, 2, 0, 0
        case Kind.LOADS | Kind.STORES:
            return max(registers // 2, 1), registers, 1, 2
        case Kind.DIVISION:
            return 2, 12, 1, 2
        case _:
            return 1, 1, 1, 2


def kind_of(code: bytes) -> tuple[Kind, int]:
    """Return the kind of an instruction and the number of registers that it loads or stores (1 if it does not)."""
    first = int.from_bytes(code[:2], "little")
    return _short(first) if len(code) == 2 else _long(first, int.from_bytes(code[2:], "little"))


def _short(word: int) -> tuple[Kind, int]:
    top = word >> 12
    if word >> 11 == 0b01001 or (top == 5 and (word >> 9) & 7 >= 3):
        return Kind.LOAD, 1
    if top in {6, 7, 8, 9}:
        return (Kind.LOAD if word & 0x800 else Kind.OTHER), 1
    if top == 0xC:
        return (Kind.LOADS if word & 0x800 else Kind.STORES), (word & 0xFF).bit_count()
    if word & 0xFE00 == 0xB400:
        return Kind.STORES, (word & 0x1FF).bit_count()
    if word & 0xFE00 == 0xBC00:
        return Kind.LOADS, (word & 0x1FF).bit_count()
    return Kind.OTHER, 1


def _long(first: int, second: int) -> tuple[Kind, int]:
    if first & 0xFF80 == 0xF000 and second & 0xD001 == 0xC001:
        return Kind.LOOP, 1
    if first & 0xFE40 == 0xE800:
        return (Kind.LOADS if first & 0x10 else Kind.STORES), second.bit_count()
    if first & 0xFE40 == 0xE840:
        if first & 0x0120 == 0:  # exclusive accesses and table branches
            return (Kind.LOAD if first & 0x10 and first & 0xFFF0 != 0xE8D0 else Kind.OTHER), 1
        return (Kind.LOADS if first & 0x10 else Kind.STORES), 2
    if first & 0xFE00 == 0xF800:
        return (Kind.LOAD if first & 0x10 else Kind.OTHER), 1
    if first & 0xEE00 == 0xEC00:
        if second & 0x0E00 == 0x0E00:
            return Kind.VECTOR_MEMORY, 1
        return (Kind.LOAD if first & 0x10 else Kind.OTHER), 1
    if first & 0xEE00 == 0xEE00 and (first & 0xFF00 in {0xEF00, 0xFF00} or second & 0x0E00 != 0x0A00):
        return Kind.VECTOR_ARITHMETIC, 1
    if first & 0xFF80 == 0xFB80 and first & 0x50 == 0x10:
        return Kind.DIVISION, 1
    return Kind.OTHER, 1


def _executed(image: Image, begin: int, run: Callable[[], object]) -> Sequence[Executed]:
    """Return the instructions of the last call of a function that a run makes, by address."""
    with tempfile.TemporaryDirectory(prefix="ferrule-cycles-") as folder:
        counts = Path(folder) / "counts"
        with _with_plugin(Path(folder), f"{_plugin()},begin={begin & ~1:#x},out={counts}"):
            run()
        last = counts.read_text(encoding="ascii").split("run ")[-1].splitlines()[1:]
    rows = sorted(tuple(map(int, line.split())) for line in last)
    return [
        Executed(address=address, code=image.read(address, size), executed=executed, jumps=jumps)
        for address, size, executed, jumps in rows
    ]


@contextmanager
def _with_plugin(folder: Path, plugin: str) -> Iterator[None]:
    """Put a program in front of QEMU that adds the plugin to its arguments."""
    real = shutil.which(QEMU)
    if real is None:
        raise SystemExit(f"{QEMU} is missing: apt-get install qemu-system-arm")
    shim = folder / QEMU
    shim.write_text(f'#!/bin/sh\nexec "{real}" -plugin "{plugin}" "$@"\n', encoding="ascii")
    shim.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}{os.pathsep}{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path


@cache
def _plugin() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ferrule-plugin-"))
    library = folder / "pc_counts.so"
    source = Path(__file__).parent / "pc_counts.c"
    subprocess.run(["cc", "-std=c11", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library
