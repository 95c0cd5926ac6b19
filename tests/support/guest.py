# SPDX-License-Identifier: Apache-2.0
"""Small firmwares for the engines: a program of tests/emulation/firmware linked with the project's own start-up."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ferrule import resources
from ferrule.boards import Board
from ferrule.emulation import Machine

FOLDER = Path(__file__).resolve().parent.parent / "emulation" / "firmware"
STARTUP = ("vectors.c", "reset.c", "fault.c", "memory.c")


def build_guest(
    compiler: str, program: str, board: Board, elf: Path, folder: Path = FOLDER, flags: Sequence[str] = ()
) -> Machine:
    """Compile a program of a folder for a board with arm-none-eabi-gcc, and return the machine that runs it."""
    root = resources.root()
    code = board.memory(board.placement.code).address
    argv = [
        compiler,
        f"-mcpu={board.cpu.type}",
        *("-mthumb", "-mslow-flash-data", "-O2", "-std=c11", "-ffreestanding", "-nostdlib"),
        *("-Wall", "-Wextra", "-Werror"),
        *flags,
        *(
            f"-I{each}"
            for each in (root / "include", root / "src_c" / "startup", root / "src_c" / "startup" / "include", FOLDER)
        ),
        f"-DUART_BASE={board.link_uart.address:#x}u",
        f"-DCODE_BASE={code:#x}u",
        f"-Wl,--defsym=CODE={code:#x},--defsym=RAM={board.memory(board.placement.data).address:#x}",
        *("-T", str(FOLDER / "link.ld"), "-o", str(elf), str(folder / f"{program}.c")),
        *(str(root / "src_c" / "startup" / name) for name in STARTUP),
        str(root / "src_c" / "runtime" / "counter.c"),
    ]
    subprocess.run(argv, check=True, timeout=120)
    return Machine(board=board, elf=elf)
