# SPDX-License-Identifier: Apache-2.0
"""The Renode process: folder, network and termination."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ferrule.emulation.crash import EngineError
from ferrule.emulation.last_words import LAST_LINES, last_words
from ferrule.emulation.renode import supervisor

NETWORK_VARIABLE = "FERRULE_RENODE_NETWORK"
"""Environment variable; with the value `host`, Renode runs without a separate network namespace."""
START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 30.0
_POLL_S = 0.02


def _end(process: subprocess.Popen[bytes], control: socket.socket, output: IO[bytes]) -> None:
    """Make the supervisor kill Renode, and reap it."""
    control.close()
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        output.close()


class RenodeProcess:
    """A running Renode, killed by `stop`, when the object is collected, and when Python ends for any reason.

    Its servers listen on all interfaces, but by default of a separate network namespace.
    """

    def __init__(self, program: Path, folder: Path, *more: str) -> None:
        """Start Renode in a folder, which also receives its temporary files and configuration.

        `more` are further command-line options.

        Raises:
            EngineError: Renode cannot be started, or a network namespace is not available.
        """
        self._folder = folder
        self.isolated = os.environ.get(NETWORK_VARIABLE) != "host"
        """Whether Renode runs in a separate network namespace."""
        options = ["--disable-gui", "--plain", "--robot-server-port", "0", "--config", str(folder / "renode.config")]
        self.argv = [str(program), *options, *more]
        output = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            control.settimeout(REQUEST_TIMEOUT_S)
            self._process = self._spawn(theirs, output)
        except BaseException:
            control.close()
            output.close()
            raise
        finally:
            theirs.close()
        self._control = control
        self._output = output
        self._errors_from = 0
        self._finalizer = weakref.finalize(self, _end, self._process, control, output)
        self._check_network()

    def _spawn(self, control: socket.socket, output: IO[bytes]) -> subprocess.Popen[bytes]:
        temporary = self._folder / "tmp"
        temporary.mkdir()
        where = "isolated" if self.isolated else "host"
        return subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, str(control.fileno()), where, *self.argv],
            cwd=self._folder,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[control.fileno()],
            start_new_session=True,
        )

    def _check_network(self) -> None:
        try:
            state = self._control.recv(4096).decode()
        except OSError as error:
            raise self.died() from error
        if state.startswith("refused"):
            self.stop()
            reason = state.partition(" ")[2]
            raise EngineError(
                f"no network namespace is available ({reason}); without one Renode's servers for commands and UARTs "
                "listen on all interfaces of this machine",
                hint=f"set {NETWORK_VARIABLE}=host to allow that",
            )
        if state not in {"isolated", "host"}:
            raise self.died()

    def connect(self, port: int, timeout_s: float = REQUEST_TIMEOUT_S) -> socket.socket:
        """Return a connection to one of Renode's ports; OSError if that fails."""
        _, connected = self._ask(f"connect {port}")
        if connected is None:
            raise OSError(f"no connection to port {port} was passed")
        connected.settimeout(timeout_s)
        return connected

    def listen(self) -> tuple[socket.socket, int]:
        """Return a listening socket that Renode can connect to, and its port on 127.0.0.1."""
        port, listener = self._ask("listen")
        if listener is None:
            raise OSError("no listening socket was passed")
        return listener, port

    def free_port(self) -> int:
        """Return an unused port."""
        return self._ask("free")[0]

    def _ask(self, request: str) -> tuple[int, socket.socket | None]:
        self._control.send(request.encode())
        data, files, _, _ = socket.recv_fds(self._control, 4096, 1)
        state, _, rest = data.decode().partition(" ")
        passed = socket.socket(fileno=files[0]) if files else None
        if state != "ok":
            raise OSError(rest or "Renode ended")
        return int(rest), passed

    def robot_port(self) -> int:
        """Wait until the robot server listens and return its port.

        Raises:
            EngineError: Renode ended, or its server did not start within two minutes.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for file in (self._folder / "tmp").glob("renode-*/robot_port"):
                with contextlib.suppress(ValueError, OSError):
                    return int(file.read_text())
            if self._process.poll() is not None:
                raise self.died()
            time.sleep(_POLL_S)
        raise self.died()

    def died(self) -> EngineError:
        """End the process and return the error for its unexpected end or hang, with its last output."""
        if not self._finalizer.alive:
            return EngineError("the session is over")
        error = last_words(self._process, self._output, self.argv, name="Renode", running="does not answer")
        self.stop()
        return error

    def poll(self) -> int | None:
        """Return the exit code of a process that has ended; None while it runs."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> None:
        """Wait for the process to end, but no longer than `timeout_s`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)

    def last_errors(self) -> Sequence[str]:
        """Return the last lines that Renode logged as errors."""
        if not self._finalizer.alive:
            return ()
        self._output.seek(self._errors_from)
        lines = self._output.read().decode(errors="replace").splitlines()
        return [line.strip() for line in lines if "[ERROR]" in line][-LAST_LINES:]

    def forget_errors(self) -> None:
        """Make `last_errors` begin with what Renode logs from now on."""
        self._errors_from = os.fstat(self._output.fileno()).st_size

    def stop(self) -> None:
        """Kill and reap the process; a second call does nothing."""
        self._finalizer()
