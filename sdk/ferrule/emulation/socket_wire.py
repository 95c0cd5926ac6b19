# SPDX-License-Identifier: Apache-2.0
"""Devices behind the UARTs of a board in an emulator's process; a thread per device carries the bytes."""

from __future__ import annotations

import contextlib
import socket
import threading

from ferrule.devices import DeviceFaultError, SerialModel
from ferrule.devices.hosting import HostedSerialModel
from ferrule.emulation.crash import EngineError
from ferrule.link.channel import arrives

QUIET_S = 0.02
"""Longest wait for a byte before the model is polled for bytes to send."""
CHUNK_BYTES = 65536
END_TIMEOUT_S = 10


class SocketWire:
    """A serial line between a model and the socket that an emulator connects to a UART."""

    def __init__(
        self, name: str, connection: socket.socket, model: SerialModel, *, limit_s: float | None = None
    ) -> None:
        self._connection = connection
        self._model = HostedSerialModel(model, name=name, limit_s=limit_s)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"wire {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the session has closed the socket
            while not self._ending.is_set():
                readable = arrives(self._connection, QUIET_S)
                data = self._connection.recv(CHUNK_BYTES) if readable else b""
                if readable and not data:
                    return
                answer = self._answer(data)
                if answer:
                    self._connection.sendall(answer)

    def _answer(self, data: bytes) -> bytes:
        try:
            return self._model.receive(data)
        except DeviceFaultError:  # raised by the session in its own thread
            self._ending.set()
            return b""

    def check(self) -> None:
        """Raise EngineError if the model has broken its contract, which ends the line."""
        fault = self._model.fault
        if fault is not None:
            raise EngineError(str(fault), hint=fault.hint) from fault

    def stop(self) -> None:
        """End the thread; to be called before the socket is closed."""
        self._ending.set()
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(0 if self._model.stuck else END_TIMEOUT_S)
