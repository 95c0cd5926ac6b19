# SPDX-License-Identifier: Apache-2.0
"""The process of an emulator, which a supervisor ends together with this process.

No library starts a process that ends with its parent: Linux's own way, prctl(PR_SET_PDEATHSIG), acts when the thread
that started it ends, and macOS has none.
"""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from ferrule.child_process import end, last_lines
from ferrule.emulation import supervisor
from ferrule.emulation.crash import EngineError

END_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 30.0
_DEATH_S = 1.0
"""How long a process whose connection broke may take to end."""


def _end(process: subprocess.Popen[bytes], sockets: Sequence[socket.socket], output: IO[bytes]) -> None:
    """Make the supervisor kill the emulator, by closing the first of the sockets, and reap it."""
    try:
        for each in sockets:
            each.close()
        end(process, END_TIMEOUT_S)
    finally:
        output.close()


class Supervised:
    """A running emulator, killed by `stop`, when the object is collected, and when Python ends for any reason."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        isolated: bool = False,
        sockets: Sequence[socket.socket] = (),
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start the emulator.

        Args:
            name: its name in messages.
            argv: the program and its arguments.
            cwd: its folder; by default that of this process.
            environment: its variables; by default those of this process.
            isolated: whether it runs in a separate network namespace.
            sockets: this process's ends of its connections, which are closed with it.
            pass_fds: descriptors that it gets.
        """
        self.name = name
        self.argv = tuple(argv)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        where = "isolated" if isolated else "host"
        try:
            self._control.settimeout(REQUEST_TIMEOUT_S)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, str(theirs.fileno()), where, *argv],
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno(), *pass_fds],
                start_new_session=True,
            )
        except BaseException:
            self._control.close()
            self._output.close()
            raise
        finally:
            theirs.close()
        self._finalizer = weakref.finalize(self, _end, self._process, (self._control, *sockets), self._output)
        said = ""
        with suppress(OSError):
            said = self._control.recv(4096).decode()
        word, _, rest = said.partition(" ")
        self.pid = int(rest) if word == "started" else None
        """The emulator's process; None if it has not started."""
        self.refusal = rest if word == "refused" else ""
        """Why there is no network namespace."""

    def died(self) -> EngineError:
        """End the process and return the error for its unexpected end or hang, with its last output."""
        if not self._finalizer.alive:
            return EngineError("the session is over")
        try:
            how = f"ended with {self._process.wait(_DEATH_S)}"
        except subprocess.TimeoutExpired:
            how = "does not answer"
        lines = last_lines(self._written())
        self.stop()
        return EngineError("\n".join([f"{self.name} {how}: {shlex.join(self.argv)}", *lines]))

    def _written(self, start: int = 0) -> str:
        """Return what the process has written, from an offset on."""
        self._output.seek(start)
        return self._output.read().decode(errors="replace")

    def stop(self) -> None:
        """Kill and reap the process; a second call does nothing."""
        self._finalizer()
