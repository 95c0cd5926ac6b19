# SPDX-License-Identifier: Apache-2.0
"""The qemu-system-arm process: arguments, sockets and termination."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from ferrule.boards import Board
from ferrule.emulation.crash import EngineError
from ferrule.emulation.last_words import last_words
from ferrule.emulation.process_clock import ProcessClock
from ferrule.emulation.qemu import supervisor
from ferrule.interface import option

END_TIMEOUT_S = 10
MONITOR = "monitor"


def _end(process: subprocess.Popen[bytes], stderr: IO[bytes], sockets: Sequence[socket.socket]) -> None:
    """Make the supervisor kill QEMU, reap it and close its sockets."""
    try:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        for each in sockets:
            each.close()
        stderr.close()


def _arguments(program: str, board: Board, elf: Path, files: Mapping[str, int], gdb: int | None) -> list[str]:
    """Return QEMU's command line; `files` maps the monitor and each UART to its socket's file descriptor."""
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
        elif name != MONITOR:
            raise EngineError(f"board.toml of {board.name} does not assign a -serial option to {name}")
    for index in range(max(indices, default=-1) + 1):
        argv += ["-serial", f"chardev:{indices[index]}" if index in indices else "null"]
    return argv


class QemuProcess:
    """A running QEMU, killed by `stop`, when the object is collected, and when Python ends for any reason."""

    def __init__(self, program: str, board: Board, elf: Path, uarts: Sequence[str], gdb: int | None = None) -> None:
        pairs = {name: socket.socketpair() for name in (MONITOR, *uarts)}
        ours = [pair[0] for pair in pairs.values()]
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            files = {name: theirs.fileno() for name, (_ours, theirs) in pairs.items()}
            self.argv = _arguments(program, board, elf, files, gdb)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, *self.argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                pass_fds=list(files.values()),
                start_new_session=True,
            )
        except BaseException:
            for each in ours:
                each.close()
            stderr.close()
            raise
        finally:
            for _ours, theirs in pairs.values():
                theirs.close()
        self._stderr = stderr
        self._finalizer = weakref.finalize(self, _end, self._process, stderr, ours)
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        self.clock = ProcessClock(int(said) if said else None)
        """The time that passes for QEMU."""
        self.monitor = ours[0]
        self.uarts = dict(zip(uarts, ours[1:], strict=True))

    def died(self) -> EngineError:
        """Return the error for a process that ended unexpectedly: its arguments, exit code and last output."""
        if not self._finalizer.alive:
            return EngineError("the session is over")
        return last_words(self._process, self._stderr, self.argv, name="QEMU", running="closed its connection")

    def stop(self) -> None:
        """Kill and reap the process; a second call does nothing."""
        self._finalizer()
