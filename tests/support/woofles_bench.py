# SPDX-License-Identifier: Apache-2.0
"""The driver of Woofles, compiled for the host, on its device model, with injectable faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from device_calls import DeviceCalls

from ferrule._frozen import frozen
from ferrule.backends import woofles
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import Command, Operation
from ferrule.backends.woofles.model import DEFAULT_TIMING, Timing, WooflesModel
from ferrule.devices import Fault, FaultInjector
from ferrule.graph import Array
from ferrule.testing import Adapter, CData

FOLDER = Path(woofles.__file__).parent
DRIVER: Mapping[str, Any] = {
    "sources": [FOLDER / "src" / "woofles.c"],
    "headers": ["woofles/command.h", "woofles/woofles.h"],
    "include_dirs": [FOLDER / "include"],
}
"""The arguments for `build_adapter`."""
BASE = 0x4010_0000
TIMEOUT_US = 4000
OK, ARGUMENT, UNAVAILABLE, STATE, BUSY, TIMEOUT, DEVICE = 0, -1, -5, -7, -8, -9, -12  # ferrule/status.h


@frozen(eq=False)
class Job:
    """One operation with its data."""

    command: Command
    arrays: dict[str, Array] = field(repr=False)
    """Arrays by name: input, and either second, or weights, multipliers, shifts and optionally bias."""

    @property
    def expected(self) -> Array:
        """The expected output."""
        command, arrays = self.command, self.arrays
        if not arithmetic.is_weighted(command):
            compute = arithmetic.add if command.operation == Operation.ADD else arithmetic.multiply
            return compute(command, arrays["input"], arrays["second"])
        parameters = (arrays["multipliers"], arrays["shifts"])
        return arithmetic.weighted(command, arrays["input"], arrays["weights"], arrays.get("bias"), *parameters)


_SCALING = {
    "left_shift": 20,
    "input_multiplier": 1 << 30,
    "second_multiplier": 1500000000,
    "second_shift": -1,
    "output_multiplier": 1300000000,
    "output_shift": -18,
}


def jobs(seed: int = 0) -> dict[str, Job]:
    """Return one small job per operation, by name."""
    random = np.random.default_rng(seed)

    def int8(size: int) -> Array:
        return random.integers(-128, 128, size, np.int8)

    def weighted(command: Command, *, bias: bool) -> Job:
        channels = command.output_channels
        arrays = {
            "input": int8(arithmetic.sizes_bytes(command)[0]),
            "weights": int8(arithmetic.sizes_bytes(command)[1]),
            "multipliers": random.integers(1 << 30, (1 << 31) - 1, channels, np.int32),
            "shifts": random.integers(-9, -6, channels, np.int32),
        }
        if bias:
            arrays["bias"] = random.integers(-2000, 2000, channels, np.int32)
        return Job(command=command, arrays=arrays)

    points = {"input_zero_point": 3, "output_zero_point": -5}
    add = Command(operation=Operation.ADD, count=24, second_zero_point=-7, **points, **_SCALING)
    mul = replace(add, operation=Operation.MUL, output_shift=-7, left_shift=0)
    dense = Command(operation=Operation.FULLY_CONNECTED, count=2, input_channels=6, output_channels=3, **points)
    image = {"input_height": 5, "input_width": 4, "input_channels": 2, "output_height": 3, "output_width": 2}
    kernel = {"kernel_height": 3, "kernel_width": 3, "stride_height": 2, "stride_width": 2, "padding_top": 1}
    conv = Command(operation=Operation.CONV_2D, output_channels=3, padding_left=1, **points, **image, **kernel)
    return {
        "add": Job(command=add, arrays={"input": int8(24), "second": int8(24)}),
        "mul": Job(command=mul, arrays={"input": int8(24), "second": int8(24)}),
        "fully_connected": weighted(dense, bias=False),
        "conv_2d": weighted(conv, bias=True),
    }


class WooflesBench(DeviceCalls):
    """A device behind the device API of the bare-metal adapter, bound but not active."""

    def __init__(
        self,
        adapter: Adapter[Any],
        *,
        interrupt: bool = False,
        timing: Timing = DEFAULT_TIMING,
        power: bool = False,
        model: WooflesModel | None = None,
    ) -> None:
        self.adapter = adapter
        self.lib = adapter.lib
        self.model = model or WooflesModel(timing)
        self.injector = FaultInjector(self.model)
        self.masked = False
        self.context: CData = adapter.new("struct woofles *", {"base": BASE, "use_interrupt": interrupt})
        adapter.share(self.context)
        self.window = adapter.attach(
            BASE, self.injector, names=self.model.table, interrupt=self._interrupt if interrupt else None
        )
        self.powers: list[str] = []
        """The platform's power functions that were called."""
        self.notifies = True
        """Whether the interrupt handler notifies the device API."""
        self._power: CData = adapter.ffi.NULL
        if power:
            hooks = {
                name: adapter.callback("int32_t (void *)", lambda _context, name=name: self._switch(name))
                for name in ("on", "off", "cut")
            }
            self._power = adapter.new("struct ferrule_bare_metal_power *", hooks)
            adapter.keep(self._power)
        self.handle: CData = adapter.new("struct ferrule_device *")
        adapter.keep(self.handle)
        assert self.bind() == OK

    def bind(self) -> int:
        """Initialise and bind the handle."""
        adapter = self.adapter
        status = int(self.lib.ferrule_device_init(self.handle))
        base = adapter.ffi.cast("void *", BASE)
        driver = adapter.address("woofles_driver")
        return status or int(self.lib.ferrule_device_bind(self.handle, base, self._power, driver, self.context))

    def _switch(self, name: str) -> int:
        self.powers.append(name)
        return OK

    def _interrupt(self) -> bool:
        self.masked = not self.lib.woofles_interrupt(self.context)
        if self.notifies:
            self.lib.ferrule_device_notify(self.handle)
        return not self.masked

    def inject(self, fault: Fault | None) -> None:
        """Replace the injected fault, and restart the count of accesses from 0."""
        self.injector.inject(fault)

    def layer(self, job: Job, timeout_us: int = TIMEOUT_US) -> CData:
        """Return the job as a struct woofles_layer, with its constants in memory the device can reach."""
        command = {each.name: getattr(job.command, each.name) for each in fields(Command)}
        members: dict[str, Any] = {"command": command, "timeout_us": timeout_us}
        for name in ("weights", "bias", "multipliers", "shifts"):
            if name in job.arrays:
                members[name] = self._shared(job.arrays[name])
        layer = self.adapter.new("struct woofles_layer *", members)
        self.adapter.keep(layer)
        return layer

    def _shared(self, array: Array) -> CData:
        kind = "int8_t[]" if array.dtype == np.int8 else "int32_t[]"
        value = self.adapter.new(kind, array.tolist())
        self.adapter.share(value)
        return value

    def prepare(self, job: Job, timeout_us: int = TIMEOUT_US) -> Prepared:
        """Place a job's data in shared memory for repeated runs."""
        null = self.adapter.ffi.NULL
        second = self._shared(job.arrays["second"]) if "second" in job.arrays else null
        output = self._shared(np.full(arithmetic.sizes_bytes(job.command)[2], 99, np.int8))
        layer = self.layer(job, timeout_us)
        return Prepared(
            bench=self, layer=layer, input=self._shared(job.arrays["input"]), second=second, output=output, job=job
        )


@frozen(eq=False)
class Prepared:
    """A job with its data in shared memory."""

    bench: WooflesBench
    layer: CData
    input: CData
    second: CData
    output: CData
    job: Job

    @property
    def arguments(self) -> tuple[CData, ...]:
        """The arguments of the operators."""
        return (self.bench.handle, self.layer, self.input, self.second, self.output)

    def execute(self) -> int:
        """Run the job on the open device."""
        return int(self.bench.lib.woofles_execute(*self.arguments))

    def run(self) -> int:
        """Open the device, run the job and close the device."""
        return self.bench.run_open(self.execute)

    def forget(self) -> None:
        """Overwrite the output with a constant byte."""
        self.bench.adapter.ffi.buffer(self.output)[:] = b"\x63" * len(self.bench.adapter.ffi.buffer(self.output))

    @property
    def is_right(self) -> bool:
        """Whether the output equals the job's expected output."""
        got = np.frombuffer(bytes(self.bench.adapter.ffi.buffer(self.output)), np.int8)
        return bool((got == self.job.expected).all())
