# SPDX-License-Identifier: Apache-2.0
"""The Renode process: folder and network."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ferrule.child_process import LAST_LINES
from ferrule.emulation.crash import EngineError
from ferrule.emulation.supervised import REQUEST_TIMEOUT_S, Supervised

NETWORK_VARIABLE = "FERRULE_RENODE_NETWORK"
"""Environment variable; with the value `host`, Renode runs without a separate network namespace."""
START_TIMEOUT_S = 120.0
_POLL_S = 0.02


class RenodeProcess(Supervised):
    """A running Renode. Its servers listen on all interfaces, but by default of a separate network namespace."""

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
        temporary = folder / "tmp"
        temporary.mkdir()
        super().__init__(
            "Renode",
            [str(program), *options, *more],
            cwd=folder,
            environment={**os.environ, "TMPDIR": str(temporary)},
            isolated=self.isolated,
        )
        self._errors_from = 0
        if self.refusal:
            self.stop()
            raise EngineError(
                f"no network namespace is available ({self.refusal}); without one Renode's servers for commands and "
                "UARTs listen on all interfaces of this machine",
                hint=f"set {NETWORK_VARIABLE}=host to allow that",
            )
        if self.pid is None:
            raise self.died()

    def connect(self, port: int, timeout_s: float = REQUEST_TIMEOUT_S) -> socket.socket:
        """Return a connection to one of Renode's ports; OSError if that fails."""
        _, connected = self._ask(f"connect {port}")
        if connected is None:
            raise OSError(f"no connection to port {port} was passed")
        connected.settimeout(timeout_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
        while time.monotonic() < deadline and self.poll() is None:
            for file in (self._folder / "tmp").glob("renode-*/robot_port"):
                with contextlib.suppress(ValueError, OSError):  # it may not be written completely yet
                    return int(file.read_text())
            time.sleep(_POLL_S)
        raise self.died()

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
        lines = self._written(self._errors_from).splitlines()
        return [line.strip() for line in lines if "[ERROR]" in line][-LAST_LINES:]

    def forget_errors(self) -> None:
        """Make `last_errors` begin with what Renode logs from now on."""
        self._errors_from = os.fstat(self._output.fileno()).st_size
