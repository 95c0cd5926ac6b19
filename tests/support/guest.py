# SPDX-License-Identifier: Apache-2.0
"""Small firmwares: programs of tests/emulation/firmware with the project's own start-up, and QEMU in virtual time."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from needs import require_program

from ferrule import resources
from ferrule.architectures import CORTEX_M
from ferrule.boards import Board
from ferrule.emulation import Machine, Session
from ferrule.link import Channel

FOLDER = Path(__file__).resolve().parent.parent / "emulation" / "firmware"
STARTUP = CORTEX_M.startup.source_paths
STARTUP_INCLUDES = (CORTEX_M.startup.folder, *CORTEX_M.startup.include_paths)
PROGRAM = "qemu-system-arm"


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
        *(f"-I{each}" for each in (root / "include", *STARTUP_INCLUDES, FOLDER)),
        f"-DUART_BASE={board.link_uart.address:#x}u",
        f"-DCODE_BASE={code:#x}u",
        f"-Wl,--defsym=CODE={code:#x},--defsym=RAM={board.memory(board.placement.data).address:#x}",
        *("-T", str(FOLDER / "link.ld"), "-o", str(elf), str(folder / f"{program}.c")),
        *map(str, STARTUP),
        str(root / "src_c" / "runtime" / "counter.c"),
    ]
    subprocess.run(argv, check=True, timeout=120)
    return Machine(board=board, elf=elf)


def receive(channel: Channel, count: int, piece: int = 65536) -> bytes:
    """Receive `count` bytes, or fewer if no more arrive."""
    data = b""
    while len(data) < count and (chunk := channel.read(min(piece, count - len(data)), 10)):
        data += chunk
    return data


def trace(session: Session) -> list[str]:
    """Run to the end of a firmware's trace, a full stop, and return its lines."""
    text = b""
    while not text.endswith(b"."):
        chunk = session.channel().read(65536, 30)
        assert chunk, f"{session.crash_report('no end')}\n{text.decode()}"
        text += chunk
    return text.decode().splitlines()


@contextmanager
def in_virtual_time(machine: str, elf: Path, *, shift: int) -> Iterator[IO[bytes]]:
    """Run a firmware under QEMU, and give what it writes to its first UART.

    Time passes with its instructions, 2^shift ns each, and in its sleep jumps to the next timer. The engine's passes as
    the host's while the firmware sleeps, so that a host that is late lets two timers end together.
    """
    qemu = require_program(PROGRAM, "apt-get install qemu-system-arm")
    argv = [
        *(qemu, "-machine", machine, "-nodefaults", "-display", "none", "-monitor", "none", "-serial", "stdio"),
        *("-icount", f"shift={shift},align=off,sleep=off", "-kernel", str(elf)),
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            yield process.stdout
        finally:
            process.kill()
