# SPDX-License-Identifier: Apache-2.0
"""The driver of UartWoofles, compiled for the host, on a serial line to its model, with injectable faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from device_calls import DeviceCalls
from woofles_bench import OK, TIMEOUT, Job

from ferrule._typing import override
from ferrule.backends import uart_woofles, woofles
from ferrule.backends.uart_woofles import UartWooflesModel
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import Command
from ferrule.devices import SerialModel
from ferrule.graph import Array
from ferrule.resources import root
from ferrule.testing import Adapter, CData

FOLDER = Path(uart_woofles.__file__).parent
DRIVER: Mapping[str, Any] = {
    "sources": [
        *(FOLDER / "src" / name for name in ("uart_woofles.c", "request.c")),
        *(root() / "src_c/link" / name for name in ("frame.c", "crc32.c")),
    ],
    "headers": ["woofles/command.h", "ferrule/transport.h", "ferrule/frame.h", "uart_woofles/uart_woofles.h"],
    "include_dirs": [FOLDER / "include", Path(woofles.__file__).parent / "include"],
}
"""The arguments for `build_adapter`."""
MEMORY_BYTES, STORE_BYTES = 4096, 2048
INPUT, SECOND, OUTPUT = 0, 1024, 2048
MEMORY_ERROR = -3


class Silence(SerialModel):
    """A model that never answers."""

    @override
    def receive(self, data: bytes) -> bytes:
        return b""


class Babble(SerialModel):
    """A model that always sends the same text."""

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self._text = text

    @override
    def receive(self, data: bytes) -> bytes:
        return self._text


class HostLine:
    """The line behind the driver's transport: it carries bytes to the model, and returns its answers."""

    def __init__(self, model: SerialModel) -> None:
        self.model = model
        self.sent = 0
        """Number of bytes sent to the model."""
        self.waited_ms = 0
        """Sum of the time-outs of all reads that timed out, in milliseconds."""
        self.reads = 0
        self.write_status = self.read_status = OK
        self._arrived = b""

    def write(self, data: bytes) -> int:
        if self.write_status != OK:
            return self.write_status
        self.sent += len(data)
        self._arrived += self.model.receive(data)
        return OK

    def read(self, wanted: int, timeout_ms: int) -> tuple[int, bytes]:
        self.reads += 1
        if self.read_status != OK:
            return self.read_status, b""
        if len(self._arrived) < wanted:
            self._arrived += self.model.receive(b"")
        data, self._arrived = self._arrived[:wanted], self._arrived[wanted:]
        if len(data) == wanted:
            return OK, data
        self.waited_ms += timeout_ms
        return TIMEOUT, data


class UartBench(DeviceCalls):
    """A device behind the device API of the bare-metal adapter, bound but not active."""

    def __init__(self, adapter: Adapter[Any], *, model: SerialModel | None = None, **context: int) -> None:
        self.adapter, self.lib, self.ffi = adapter, adapter.lib, adapter.ffi
        self.model = UartWooflesModel(memory_bytes=1 << 16, seed=1)
        self.line = HostLine(model or self.model)
        self._write = adapter.callback("int32_t (void *, const uint8_t *, size_t, uint32_t)", self._on_write)
        self._read = adapter.callback("int32_t (void *, uint8_t *, size_t, uint32_t, size_t *)", self._on_read)
        self._transport = adapter.new("struct ferrule_transport *", {"write": self._write, "read": self._read})
        members = {"memory_bytes": MEMORY_BYTES, "store_bytes": STORE_BYTES, "timeout_ms": 50, "attempts": 3}
        self.context: CData = adapter.new("struct uart_woofles *", {"transport": self._transport, **members, **context})
        self.handle: CData = adapter.new("struct ferrule_device *")
        adapter.keep(self._transport, self.context, self.handle)
        assert self.lib.ferrule_device_init(self.handle) == OK
        driver = adapter.address("uart_woofles_driver")
        base = self.ffi.cast("void *", 1)
        assert self.lib.ferrule_device_bind(self.handle, base, self.ffi.NULL, driver, self.context) == OK

    def _on_write(self, _context: CData, data: CData, size: int, _timeout_ms: int) -> int:
        return self.line.write(bytes(self.ffi.buffer(data, size)))

    def _on_read(self, _context: CData, data: CData, size: int, timeout_ms: int, received: CData) -> int:
        status, came = self.line.read(size, timeout_ms)
        self.ffi.memmove(data, came, len(came))
        received[0] = len(came)
        return status

    def copy_to(self, offset: int, data: bytes) -> int:
        """Copy data into the accelerator's memory."""
        return int(self.lib.ferrule_device_copy_to(self.handle, offset, data, len(data)))

    def copy_from(self, offset: int, size: int) -> tuple[int, bytes]:
        """Copy data out of the accelerator's memory; return the status and the bytes."""
        back = self.ffi.new("uint8_t[]", size)
        return int(self.lib.ferrule_device_copy_from(self.handle, back, offset, size)), bytes(self.ffi.buffer(back))

    def layer(self, job: Job) -> CData:
        """Return the job as a struct uart_woofles_layer."""
        members: dict[str, Any] = {"command": {each.name: getattr(job.command, each.name) for each in fields(Command)}}
        for name in ("weights", "bias", "multipliers", "shifts"):
            if name in job.arrays:
                members[name] = self._constant(job.arrays[name])
        if "weights" in job.arrays:
            members["weights_bytes"] = job.arrays["weights"].size
        layer = self.adapter.new("struct uart_woofles_layer *", members)
        self.adapter.keep(layer)
        return layer

    def _constant(self, array: Array) -> CData:
        value = self.adapter.new("int8_t[]" if array.dtype == np.int8 else "int32_t[]", array.tolist())
        self.adapter.keep(value)
        return value

    def execute(self, layer: CData) -> int:
        """Run a layer on the open device."""
        return int(self.lib.uart_woofles_execute(self.handle, layer, INPUT, SECOND, OUTPUT))

    def run(self, job: Job, layer: CData | None = None) -> tuple[int, bool]:
        """Run as an executor does, from activate to deactivate; return the status, and whether the output is right."""
        status = self.activate()
        if status != OK:
            return status, False
        status = self.open()
        result = b""
        if status == OK:
            status, result = self._opened(job, layer or self.layer(job))
            status = status or self.close() if status == OK else (self.close(), status)[1]
        self.deactivate()
        return status, result == job.expected.tobytes()

    def _opened(self, job: Job, layer: CData) -> tuple[int, bytes]:
        for name, offset in (("input", INPUT), ("second", SECOND)):
            if name in job.arrays:
                status = self.copy_to(offset, job.arrays[name].tobytes())
                if status != OK:
                    return status, b""
        status = self.execute(layer)
        return (status, b"") if status != OK else self.copy_from(OUTPUT, arithmetic.sizes_bytes(job.command)[2])
