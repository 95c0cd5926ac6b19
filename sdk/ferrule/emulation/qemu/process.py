# SPDX-License-Identifier: Apache-2.0
"""The qemu-system-arm process: its arguments, its sockets, its end."""

from __future__ import annotations

import shlex
import socket
import subprocess
import tempfile
import weakref
from pathlib import Path
from typing import IO

from ferrule.boards import Board
from ferrule.emulation.crash import EngineError

KILL_TIMEOUT_S = 10


def _end(process: subprocess.Popen[bytes], stderr: IO[bytes], sockets: list[socket.socket]) -> None:
    """Kill the process, reap it and close what led to it."""
    process.kill()
    try:
        process.wait(KILL_TIMEOUT_S)
    finally:
        for each in sockets:
            each.close()
        stderr.close()


class QemuProcess:
    """A running QEMU. It is killed by `stop`, when nobody refers to it, and when Python exits."""

    def __init__(self, program: str, board: Board, elf: Path, uarts: list[str]) -> None:
        machine = board.qemu
        if machine is None:
            raise EngineError(f"board {board.name} has no QEMU machine", hint="run it with --engine unicorn")
        for name in uarts:
            if name not in machine.serial:
                raise EngineError(f"board.toml of {board.name} doesn't say which -serial option {name} is")
        pairs = {name: socket.socketpair() for name in ("monitor", *uarts)}
        ours = [pair[0] for pair in pairs.values()]
        self.argv = [program, "-machine", machine.name, "-nodefaults", "-no-user-config", "-display", "none"]
        self.argv += ["-icount", "shift=0", "-kernel", str(elf)]
        for name, (_ours, theirs) in pairs.items():
            self.argv += ["-chardev", f"socket,id={name},fd={theirs.fileno()}"]
        self.argv += ["-mon", "chardev=monitor,mode=control"]
        names = {machine.serial[name]: name for name in uarts}
        for index in range(max(names, default=-1) + 1):
            self.argv += ["-serial", f"chardev:{names[index]}" if index in names else "null"]
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                pass_fds=[theirs.fileno() for _ours, theirs in pairs.values()],
                start_new_session=True,
            )
        except OSError as error:
            for each in ours:
                each.close()
            self._stderr.close()
            raise EngineError(f"can't start {program}: {error.strerror}") from error
        finally:
            for _ours, theirs in pairs.values():
                theirs.close()
        self._finalizer = weakref.finalize(self, _end, self._process, self._stderr, ours)
        self.monitor = ours[0]
        self.uarts = dict(zip(uarts, ours[1:], strict=True))

    @property
    def alive(self) -> bool:
        """Whether it has not been stopped."""
        return self._finalizer.alive

    def died(self) -> EngineError:
        """Return the error for a process that ended on its own: its arguments, exit code and last words."""
        try:
            code: int | None = self._process.wait(1)
        except subprocess.TimeoutExpired:
            code = None
        self._stderr.seek(0)
        last = self._stderr.read().decode(errors="replace").splitlines()[-20:]
        how = "closed its connection" if code is None else f"ended with {code}"
        return EngineError("\n".join([f"QEMU {how}: {shlex.join(self.argv)}", *last]))

    def stop(self) -> None:
        """Kill and reap it; a second call does nothing."""
        self._finalizer()
