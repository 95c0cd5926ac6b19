# SPDX-License-Identifier: Apache-2.0
"""The part of QEMU's machine protocol (QMP) that crash reports and accesses to memory need."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from typing import Any

from ferrule.architectures.architecture import Qemu
from ferrule.emulation.crash import EngineError

TIMEOUT_S = 10.0
LOOK_S = 0.5
"""Time between two looks at the clock."""


class Monitor:
    """A QMP client of an architecture's QEMU on a connected socket; `clock` has the seconds that pass for QEMU."""

    def __init__(self, connection: socket.socket, qemu: Qemu, clock: Callable[[], float] = time.monotonic) -> None:
        connection.settimeout(LOOK_S)
        self._connection = connection
        self._qemu = qemu
        self._clock = clock
        self._received = b""
        self._greeted = False

    def command(self, name: str, **arguments: str) -> object:
        """Execute a command and return its result.

        Raises:
            EngineError: the command failed, or QEMU did not answer within 10 s of its own time.
        """
        if not self._greeted:
            self._receive()
            self._greeted = True
            self.command("qmp_capabilities")
        request = {"execute": name, "arguments": arguments}
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise EngineError(f"QEMU's monitor has closed the connection: {error}") from error
        while True:
            answer = self._receive()
            if "error" in answer:
                raise EngineError(f"QEMU refuses {name}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]

    def _receive(self) -> dict[str, Any]:
        ends = self._clock() + TIMEOUT_S
        while b"\n" not in self._received:
            try:
                chunk = self._connection.recv(65536)
            except TimeoutError as error:
                if self._clock() < ends:
                    continue
                raise EngineError(f"QEMU's monitor has not answered within {TIMEOUT_S:g} s of its own time") from error
            except OSError as error:
                raise EngineError(f"QEMU's monitor does not answer: {error}") from error
            if not chunk:
                raise EngineError("QEMU's monitor has closed the connection")
            self._received += chunk
        line, self._received = self._received.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _human(self, line: str) -> str:
        return str(self.command("human-monitor-command", **{"command-line": line}))

    def start_server(self, device: str) -> None:
        """Start the server for gdb at a character device, with the guest stopped and then running again.

        Raises:
            EngineError: QEMU refuses.
        """
        said = self._human(f"gdbserver chardev:{device}")
        if not said.startswith("Waiting for gdb connection"):
            raise EngineError(f"QEMU cannot start its server for gdb: {said.strip()}")
        self.command("cont")

    def registers(self) -> dict[str, int]:
        """Return the core registers by name."""
        text = self._human("info registers")
        found = re.findall(self._qemu.registers, text, re.IGNORECASE)
        return {self._qemu.renamed.get(name.upper(), name.lower()): int(value, 16) for name, value in found}

    def words(self, address: int, count: int) -> list[int]:
        """Return 32-bit words of the guest's memory."""
        text = self._human(f"xp /{count}xw {address:#x}")
        return [int(word, 16) for line in text.splitlines() for word in line.partition(":")[2].split()]
