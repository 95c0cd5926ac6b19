# SPDX-License-Identifier: Apache-2.0
"""The firmware's end of the link, compiled for the host, and a channel to it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ferrule import resources
from ferrule._typing import override
from ferrule.link import Channel

FOLDER = Path(__file__).parents[1] / "link"
SOURCES = (
    "link/crc32.c",
    "link/frame.c",
    "link/link.c",
    "link/run.c",
    "runtime/counter.c",
    "runtime/stack.c",
    "drivers/uart_cmsdk.c",
)
FLAGS = (
    *("-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"),
    *('-DFERRULE_PORT_H="host_port.h"', '-DFERRULE_CORE_HEADER="host_core.h"', f"-I{FOLDER}"),
)

ARRAY_SIZES = {"HOST_OPERATORS": 600, "HOST_WIRE_BYTES": 65536}


def compile_host_firmware(compiler: Sequence[str], output: Path, *flags: str) -> None:
    root = resources.root()
    sources = [root / "src_c" / name for name in SOURCES]
    argv = [*compiler, *FLAGS, f"-I{root / 'include'}", *flags, "-o", output, FOLDER / "host_firmware.c", *sources]
    subprocess.run([str(each) for each in argv], check=True, timeout=120)


class HostFirmware:
    """The compiled firmware; it has a single state, which `reset` restarts."""

    def __init__(self, path: Path) -> None:
        from cffi import FFI

        self.path = path
        text = (FOLDER / "host_firmware.h").read_text()
        for name, value in ARRAY_SIZES.items():
            text = text.replace(f"[{name}]", f"[{value}]")
        self.ffi = FFI()
        self.ffi.cdef("\n".join(line for line in text.splitlines() if not line.startswith("#")))
        self.library: Any = self.ffi.dlopen(str(path))
        self.state = self.library.host

    def reset(self, *, dwt_step: int = 3, systick_step: int = 0) -> None:
        self.library.host_reset(dwt_step, systick_step)

    def exchange(self, data: bytes) -> bytes:
        """Pass `data` to the firmware, and return the bytes it sends."""
        self.library.host_receive(self.ffi.from_buffer(data), len(data))
        answer = bytes(self.ffi.buffer(self.state.tx, self.state.tx_end))
        self.state.tx_end = 0
        return answer


class HostChannel(Channel):
    """A channel to the firmware; `to_firmware` and `to_host` may alter the bytes on their way."""

    def __init__(self, firmware: HostFirmware) -> None:
        self.to_firmware: Callable[[bytes], bytes] = bytes
        self.to_host: Callable[[bytes], bytes] = bytes
        self.closed = False
        self._firmware = firmware
        self._waiting = b""

    @override
    def write(self, data: bytes) -> None:
        self._waiting += self.to_host(self._firmware.exchange(self.to_firmware(data)))

    @override
    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        assert timeout_s >= 0
        data, self._waiting = self._waiting[:max_bytes], self._waiting[max_bytes:]
        return data

    @override
    def close(self) -> None:
        self.closed = True
