# SPDX-License-Identifier: Apache-2.0
"""The qemu-system-arm process: arguments and sockets."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from ferrule.boards import Board
from ferrule.child_process import ProcessClock
from ferrule.emulation.crash import EngineError
from ferrule.emulation.qemu.memory import SERVER
from ferrule.emulation.supervised import Supervised
from ferrule.interface import option

MONITOR = "monitor"


def _arguments(program: str, board: Board, elf: Path, files: Mapping[str, int], gdb: int | None) -> list[str]:
    """Return QEMU's command line; `files` maps monitor, server for gdb and each UART to its socket's descriptor."""
    machine = board.qemu
    if machine is None:
        raise EngineError(f"board {board.name} has no QEMU machine", hint=f"run it with {option('engine', 'unicorn')}")
    argv = [program, "-machine", machine.name, "-nodefaults", "-no-user-config", "-display", "none"]
    argv += ["-icount", "shift=0", "-kernel", str(elf)]
    if gdb is not None:
        argv += ["-gdb", f"tcp:127.0.0.1:{gdb}", "-S"]
    for name, descriptor in files.items():
        argv += ["-chardev", f"socket,id={name},fd={descriptor}"]
    argv += ["-mon", f"chardev={MONITOR},mode=control"]
    indices = {}
    for name in files:
        if name in machine.serial:
            indices[machine.serial[name]] = name
        elif name not in {MONITOR, SERVER}:
            raise EngineError(f"board.toml of {board.name} does not assign a -serial option to {name}")
    for index in range(max(indices, default=-1) + 1):
        argv += ["-serial", f"chardev:{indices[index]}" if index in indices else "null"]
    return argv


class QemuProcess(Supervised):
    """A running QEMU."""

    def __init__(self, program: str, board: Board, elf: Path, uarts: Sequence[str], gdb: int | None = None) -> None:
        pairs = {name: socket.socketpair() for name in (MONITOR, SERVER, *uarts)}
        ours = [pair[0] for pair in pairs.values()]
        try:
            files = {name: theirs.fileno() for name, (_ours, theirs) in pairs.items()}
            argv = _arguments(program, board, elf, files, gdb)
            super().__init__("QEMU", argv, sockets=ours, pass_fds=list(files.values()))
        except BaseException:
            for each in ours:
                each.close()
            raise
        finally:
            for _ours, theirs in pairs.values():  # QEMU has inherited them; its end shows only if no other copy is open
                theirs.close()
        self.clock = ProcessClock(self.pid)
        """The time that passes for QEMU."""
        self.monitor, self.server, *links = ours
        self.uarts = dict(zip(uarts, links, strict=True))
