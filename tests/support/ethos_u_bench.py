# SPDX-License-Identifier: Apache-2.0
"""The drivers of Ethos-U, compiled for the host, on its device model, with injectable faults.

Arm's driver has its registers as a volatile struct, for which nothing on the host can answer. A stand-in plays its part
here, between Ferrule's shims and the model; the real one runs on emulated boards.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from device_calls import DeviceCalls
from ethos_u_streams import U55, copy, maximum, payload, stop

from ferrule._frozen import frozen
from ferrule.backends import ethos_u
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.model import EthosUModel
from ferrule.backends.ethos_u.registers import TABLE
from ferrule.devices import Fault, FaultInjector
from ferrule.testing import Adapter, CData

FOLDER = Path(ethos_u.__file__).parent
STAND_IN = Path(__file__).parent / "ethosu_stand_in"
DRIVER: Mapping[str, Any] = {
    "sources": [FOLDER / "src" / "ethos_u.c", FOLDER / "src" / "ethos_u_call.c"],
    "headers": ["ethos_u/ethos_u.h", "ethos_u/own.h"],
    "include_dirs": [FOLDER / "include"],
}
"""The arguments for `build_adapter`, for Ferrule's own driver."""
ARM_DRIVER: Mapping[str, Any] = {
    "sources": [
        *(FOLDER / "src_arm" / name for name in ("arm.c", "system.c")),
        FOLDER / "src" / "ethos_u_call.c",
        STAND_IN / "ethosu_stand_in.c",
    ],
    "headers": ["ethos_u/ethos_u.h", "ethosu_driver.h", "ethos_u/arm.h"],
    "include_dirs": [FOLDER / "include", FOLDER / "src_arm" / "include", STAND_IN],
    "defines": {"ETHOS_U_ARM_DEVICES": "1000u"},  # a bench that a test abandons keeps its semaphore
}
"""The arguments for `build_adapter`, for the shims around Arm's driver."""
BASE = 0x4010_0000
TIMEOUT_US = 4000
ALIGNMENT = 16
OK, ARGUMENT, UNSUPPORTED, UNAVAILABLE, STATE = 0, -1, -2, -5, -7  # ferrule/status.h
BUSY, TIMEOUT, DEVICE = -8, -9, -12
COUNT = 24
"""Bytes of each tensor of the job."""
FIRST, SECOND, OUTPUT, SCRATCH_BYTES = 0, 32, 128, 160
"""Places of the job's tensors in the scratch."""


@frozen
class Job:
    """The larger of each pair of two inputs, which the stream first copies to another place of the scratch."""

    first: bytes
    second: bytes

    @property
    def commands(self) -> list[int]:
        """The stream."""
        return [*copy(FIRST, 64, COUNT), *copy(SECOND, 96, COUNT), *maximum(64, 96, OUTPUT, COUNT), *stop(0x0101)]

    @property
    def expected(self) -> bytes:
        """The output."""
        return np.maximum(np.frombuffer(self.first, np.int8), np.frombuffer(self.second, np.int8)).tobytes()


def job(seed: int = 0) -> Job:
    """Return a job with random inputs."""
    random = np.random.default_rng(seed)
    return Job(first=random.bytes(COUNT), second=random.bytes(COUNT))


JOB = job()
GOOD = payload(JOB.commands)
OFFSET = {register.name: register.offset for register in TABLE}


def changed(index: int, *given: int) -> bytes:
    """Return the payload of JOB with some words replaced."""
    words = np.frombuffer(GOOD, "<u4").copy()
    words[index : index + len(given)] = given
    return words.tobytes()


class EthosUBench(DeviceCalls):
    """A device behind the device API of the bare-metal adapter, bound but not active."""

    def __init__(  # `arm`: the adapter was built from ARM_DRIVER
        self,
        adapter: Adapter[Any],
        *,
        interrupt: bool = False,
        model: EthosUModel | None = None,
        expects: Configuration = U55,
        arm: bool = False,
        **members: bool,
    ) -> None:
        self.adapter = adapter
        self.lib = adapter.lib
        self.model = model or EthosUModel(U55)
        self.injector = FaultInjector(self.model)
        self.masked = False
        self.notifies = True
        """Whether the interrupt handler notifies the device API."""
        self._arm = arm
        values = {"base": BASE, "use_interrupt": interrupt, **members}
        if not arm:
            values["config"] = expects.register
        self.context: CData = adapter.new(f"struct ethos_u{'_arm' if arm else ''} *", values)
        adapter.keep(self.context)
        self.window = adapter.attach(
            BASE, self.injector, names=self.model.table, interrupt=self._interrupt if interrupt else None
        )
        self.handle: CData = adapter.new("struct ferrule_device *")
        adapter.keep(self.handle)
        null = adapter.ffi.NULL
        assert int(self.lib.ferrule_device_init(self.handle)) == OK
        driver = adapter.address("ethos_u_driver")
        base = adapter.ffi.cast("void *", BASE)
        assert int(self.lib.ferrule_device_bind(self.handle, base, null, driver, self.context)) == OK

    def handle_interrupt(self) -> bool:
        """Call the driver's handler."""
        handler = self.lib.ethos_u_arm_interrupt if self._arm else self.lib.ethos_u_interrupt
        return bool(handler(self.context))

    def _interrupt(self) -> bool:
        self.masked = not self.handle_interrupt()
        if self.notifies:
            self.lib.ferrule_device_notify(self.handle)
        return not self.masked

    def inject(self, fault: Fault | None) -> None:
        """Replace the injected fault, and restart the count of accesses from 0."""
        self.injector.inject(fault)

    def aligned(self, data: bytes) -> CData:
        """Return a pointer to shared memory with these bytes, at a multiple of ALIGNMENT."""
        ffi = self.adapter.ffi
        value = self.adapter.new("uint8_t[]", len(data) + ALIGNMENT)
        shift = -int(ffi.cast("uintptr_t", value)) % ALIGNMENT
        ffi.buffer(value)[shift : shift + len(data)] = data
        self.adapter.share(value)
        return value + shift

    def prepare(self, task: Job, *, stream: bytes | None = None, timeout_us: int = TIMEOUT_US) -> Prepared:
        """Place a job's data in shared memory for repeated runs."""
        adapter = self.adapter
        data = payload(task.commands) if stream is None else stream
        members = {
            "payload": self.aligned(data),
            "payload_bytes": len(data),
            "scratch_bytes": SCRATCH_BYTES,
            "timeout_us": timeout_us,
        }
        constant = adapter.new("struct ethos_u_stream *", members)
        adapter.keep(constant)
        scratch = self.aligned(bytes(SCRATCH_BYTES))
        memory = adapter.ffi.buffer(scratch, SCRATCH_BYTES)
        memory[FIRST : FIRST + COUNT], memory[SECOND : SECOND + COUNT] = task.first, task.second
        return Prepared(bench=self, stream=constant, scratch=scratch, job=task)


@frozen(eq=False)
class Prepared:
    """A job with its data in shared memory."""

    bench: EthosUBench
    stream: CData
    scratch: CData
    job: Job

    @property
    def arguments(self) -> tuple[CData, ...]:
        """The arguments of the operators."""
        null = self.bench.adapter.ffi.NULL
        return (self.bench.handle, self.stream, self.scratch, null)

    def execute(self) -> int:
        """Run the job on the open device."""
        return int(self.bench.lib.ethos_u_execute(*self.arguments))

    def run(self) -> int:
        """Open the device, run the job and close the device."""
        return self.bench.run_open(self.execute)

    @property
    def _output(self) -> Any:  # noqa: ANN401 a buffer of cffi
        return self.bench.adapter.ffi.buffer(self.scratch + OUTPUT, COUNT)

    def forget(self) -> None:
        """Overwrite the output with a constant byte."""
        self._output[:] = b"\x63" * COUNT

    @property
    def is_right(self) -> bool:
        """Whether the output equals the job's expected output."""
        return bytes(self._output) == self.job.expected
