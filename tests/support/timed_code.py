# SPDX-License-Identifier: Apache-2.0
"""Pieces of assembly code, run on a bare core of the unicorn engine whose time is counted in cycles."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ferrule.boards import Board, load_board
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.layout import Stop
from ferrule.emulation.unicorn.processor import Processor
from ferrule.emulation.unicorn.timing import Timing
from ferrule.firmware import Image, read_image
from ferrule.timing import BoardTiming, CoreTiming, core_timing

CODE, DATA, STACK = 0x0000_0000, 0x2000_0000, 0x2000_4000
FLOATING = {"cortex-m4": "fpv4-sp-d16", "cortex-m33": "fpv5-sp-d16", "cortex-m7": "fpv5-d16"}
BUDGET = 1_000_000
START = {"r1": DATA, "r2": DATA + 64, "r3": 3, "r5": DATA + 128, "r7": 0xFFFF_FFFF, "r12": 1, "sp": STACK}
"""What registers hold when a piece begins; the others hold 0."""


@dataclass(frozen=True)
class Ran:
    """What a piece took."""

    cycles: int
    instructions: int
    r0: int


def board_of(core: str, timing: BoardTiming | None = None) -> Board:
    """Return a board with a core; its flash is the memory `ssram1`, its RAM `ssram23`."""
    board = load_board("mps2-an386")
    return replace(board, cpu=replace(board.cpu, type=core), timing=timing)


def assemble(compiler: str, core: str, pieces: Mapping[str, str], folder: Path) -> Image:
    """Assemble pieces, each at a multiple of 32; piece `x` begins at symbol `x` and ends at `x_end`.

    Each exception has the same handler, which only returns.
    """
    source, elf = folder / f"{core}.S", folder / f"{core}.elf"
    text = "".join(
        f"\n.balign 32\n{name}:\n{code}\n{name}_end:\nb {name}_end\n.ltorg\n" for name, code in pieces.items()
    )
    vectors = "\n".join(f".word {value}" for value in (STACK, *["handler"] * 15))
    start = f".syntax unified\n.thumb\n.text\n.global _start\n_start:\n{vectors}\n.thumb_func\nhandler: bx lr\n"
    source.write_text(start + text)
    floats = [f"-mfpu={FLOATING[core]}", "-mfloat-abi=softfp"] if core in FLOATING else []
    argv = [compiler, f"-mcpu={core}", "-mthumb", *floats, "-nostdlib", f"-Wl,-Ttext={CODE}"]
    subprocess.run([*argv, "-o", str(elf), str(source)], check=True, timeout=120)
    return read_image(elf)


def run(
    image: Image,
    core: str,
    piece: str,
    *,
    timing: CoreTiming | None = None,
    board: BoardTiming | None = None,
    slice_: int = BUDGET,
    step: bool = False,
    attach: Callable[[Processor], object] = id,
) -> Ran:
    """Run a piece in slices of so many instructions, or instruction by instruction.

    `attach` gives the processor what the piece needs, such as a device.
    """
    found = board_of(core, board)
    guest = Guest(found)
    processor = Processor(guest, found, CODE)
    numbers = timing or core_timing(core)
    assert numbers is not None
    kept = Timing(guest, found, numbers)
    attached = attach(processor)
    guest.load(image)
    for name, value in START.items():
        guest.set_register(name, value)
    guest.set_register("pc", image.address_of(piece))
    end = image.address_of(f"{piece}_end")
    if step:
        while guest.register("pc") != end:
            processor.step()
    else:
        processor.set_breakpoints([end])
        while processor.run(slice_) is Stop.BUDGET:
            pass
    assert guest.register("pc") == end, hex(guest.register("pc"))
    ran = Ran(cycles=processor.time, instructions=guest.executed(), r0=guest.register("r0"))
    del kept, attached
    return ran
