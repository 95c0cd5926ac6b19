# SPDX-License-Identifier: Apache-2.0
"""Runs that end early: cancelled at every call, by their deadline or by the caller, and a device that writes late.

The model is compiled for the host, with Woofles' device model behind its driver, by interrupt.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_networks import SCALE
from needs import require_cc, require_module
from small_networks import int8_input
from woofles_bench import BASE

from ferrule import Network
from ferrule._typing import override
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import Command
from ferrule.backends.woofles.model import Timing, WooflesModel
from ferrule.firmware import Job, emit
from ferrule.graph import Array
from ferrule.link.protocol import Status
from ferrule.testing import Adapter, CData, build_adapter

pytestmark = pytest.mark.cc

SLOW = Timing(command=400)
"""Each command takes longer than the core's layers on the host."""
HINTS = {"first": "Woofles/npu0", "left": "Woofles/npu0", "last": "Woofles/npu0"}


def network() -> Network:
    """Return a network whose device works beside the core."""
    made = Network("forked")
    made.add_input(int8_input("x", 1, 64))
    first = made.add_add_layer("x", "x", quantization=SCALE, name="first")
    left = made.add_mul_layer(first, first, quantization=SCALE, name="left")
    right = made.add_tanh_layer(made.add_relu_layer(first, name="relu"), name="right")
    made.set_outputs([made.add_add_layer(left, right, quantization=SCALE, name="last")])
    return made


class Watched(WooflesModel):
    """A device that counts the accesses to its registers, and acts at a chosen one."""

    def __init__(self, timing: Timing) -> None:
        super().__init__(timing)
        self.watch(0, lambda: None)

    def watch(self, number: int, action: Callable[[], None]) -> None:
        """Count from 1 again, and act at access `number`."""
        self.accesses, self._number, self._action = 0, number, action

    @override
    def read(self, offset: int, width: int) -> int:
        self._count()
        return super().read(offset, width)

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        self._count()
        super().write(offset, width, value)

    def _count(self) -> None:
        self.accesses += 1
        if self.accesses == self._number:
            self._action()


class Bench:
    """The compiled model with a bound device."""

    def __init__(self, adapter: Adapter[Any], model: WooflesModel) -> None:
        adapter.reset()
        self.adapter, self.model, lib = adapter, model, adapter.lib
        self.context: CData = adapter.new("struct woofles *", {"base": BASE, "use_interrupt": True})
        adapter.share(self.context)
        self.window = adapter.attach(BASE, model, names=model.table, interrupt=self._interrupt)
        self.handle: CData = adapter.new("struct ferrule_device *")
        assert lib.ferrule_device_init(self.handle) == Status.OK
        place, null = adapter.ffi.cast("void *", BASE), adapter.ffi.NULL
        driver = adapter.address("woofles_driver")
        assert lib.ferrule_device_bind(self.handle, place, null, driver, self.context) == Status.OK
        self.devices: CData = adapter.new("struct ferrule_forked_devices *", {"npu0": self.handle})
        self.info: CData = adapter.new("struct ferrule_run_info *")
        self.sram: CData = adapter.new("uint8_t[]", lib.FERRULE_FORKED_SRAM_BYTES + 64)
        self.x: CData = adapter.new("int8_t[]", 64)
        self.y: CData = adapter.new("int8_t[]", 64)
        for memory in (self.sram, self.x, self.y):
            adapter.share(memory)
        adapter.keep(self.handle, self.devices, self.info, self.context)

    def _interrupt(self) -> bool:
        fine: bool = self.adapter.lib.woofles_interrupt(self.context)
        self.adapter.lib.ferrule_device_notify(self.handle)
        return fine

    def run(self, seed: int = 0, deadline_us: int | None = None) -> Status:
        """Run once; after FERRULE_OK the output must equal the reference, and the devices are always released."""
        adapter, ffi, lib = self.adapter, self.adapter.ffi, self.adapter.lib
        x = np.random.default_rng(seed).integers(-128, 128, (1, 64), np.int8)
        ffi.buffer(self.x)[:] = x.tobytes()
        ffi.buffer(self.y)[:] = b"\x55" * 64
        inputs = adapter.new("struct ferrule_forked_inputs *", {"x": self.x})
        outputs = adapter.new("struct ferrule_forked_outputs *", {"last": self.y})
        start = -int(ffi.cast("uintptr_t", self.sram)) % 64
        size = lib.FERRULE_FORKED_SRAM_BYTES
        memory = adapter.new("struct ferrule_forked_memory *", {"sram": self.sram + start, "sram_bytes": size})
        arguments = (inputs, outputs, memory, self.devices, self.info)
        if deadline_us is None:
            status = Status(lib.ferrule_forked_run(*arguments))
        else:
            until = (lib.ferrule_platform_now_us() + deadline_us) % (1 << 32)
            status = Status(lib.ferrule_forked_run_until(*arguments, until))
        if status is Status.OK:
            assert self._output().tolist() == network().run([x])[0].tolist()
            assert self.info.failed_operator == 2**32 - 1
        assert lib.ferrule_device_open(self.handle) == Status.STATE  # it is not active
        return status

    def cancel(self) -> None:
        """Cancel from an interrupt."""
        self.adapter.lib.ferrule_run_cancel(self.info)

    def check_quiet(self) -> None:
        """Check that nothing writes to the memory of the run any more."""
        buffers = [self.adapter.ffi.buffer(memory) for memory in (self.sram, self.x, self.y)]
        for buffer in buffers:
            buffer[:] = b"\xa5" * len(buffer)
        self.adapter.fakes.advance_ms(50)
        assert all(bytes(buffer) == b"\xa5" * len(buffer) for buffer in buffers)

    def _output(self) -> Array:
        return np.frombuffer(bytes(self.adapter.ffi.buffer(self.y)), np.int8).reshape(1, 64)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    folder: Path = tmp_path_factory.mktemp("forked")
    device = Device(name="npu0", backend=BackendId("Woofles"), binding={"base": BASE})
    model = emit(network(), Job(backends=("CpuAcc",), hints=HINTS, devices=(device,)))
    for name, text in model.files.items():
        (folder / name).write_text(text)
    parts = model.contributions
    return build_adapter(
        "bare_metal",
        sources=[
            *(folder / name for name in ("ferrule_forked.c", "ferrule_forked_weights.c")),
            *(path for part in parts for path in part.source_paths if path.name not in {"command.c", "device.c"}),
        ],
        headers=["ferrule_forked.h", "woofles/command.h", "woofles/woofles.h"],
        include_dirs=[folder, *(path for part in parts for path in part.include_paths)],
    )


@pytest.fixture
def bench(adapter: Adapter[Any]) -> Bench:
    return Bench(adapter, WooflesModel(SLOW))


def test_the_device_works_beside_the_core(bench: Bench) -> None:
    for seed in range(3):
        assert bench.run(seed) is Status.OK
    assert bench.model.value("COMPLETED") == 0  # it was reset after the last run


def check_cancelled(bench: Bench, count: int, cancel_at: Callable[[int], None]) -> None:
    """Cancel at some of `count` places, each in a run of its own."""
    fakes = bench.adapter.fakes
    assert count > 10
    for number in sorted({*range(1, 9), *range(1, count + 1, max(count // 25, 1)), count - 1, count}):
        cancel_at(number)
        status = bench.run(number)
        fakes.forget_scripts()
        # a wait's number of looks depends a little on the time of its beginning
        assert status is Status.CANCELLED or (number > 0.9 * count and status is Status.OK), number
        bench.check_quiet()
    assert bench.run() is Status.OK


@pytest.mark.parametrize("name", ["ferrule_port_now_us", "ferrule_port_critical_exit"])
def test_cancelling_at_any_call_of_the_port(bench: Bench, name: str) -> None:
    """In every wait, and wherever a device is acquired; no call is behind the last operator but those that release."""
    fakes = bench.adapter.fakes
    note = bench.adapter.callback("void (void *, uint32_t)", lambda _context, _index: fakes.note("next"))
    bench.info.on_operator = note
    fakes.forget_calls()
    assert bench.run() is Status.OK
    names = [call.name for call in fakes.calls]
    begin, end = names.index("next"), len(names) - names[::-1].index("next")
    before, count = names[:begin].count(name), names[begin:end].count(name)
    check_cancelled(bench, count, lambda number: fakes.interrupt_before(name, bench.cancel, nth=before + number))


def test_cancelling_at_any_access_to_the_device(adapter: Adapter[Any]) -> None:
    model = Watched(SLOW)
    bench = Bench(adapter, model)
    assert bench.run() is Status.OK
    released = 5  # accesses of the deactivation at the end
    check_cancelled(bench, model.accesses - released, lambda number: model.watch(number, bench.cancel))


def test_a_wait_ends_at_once(bench: Bench) -> None:
    """The run does not wait for the device, whose command would take 400 microseconds more."""
    fakes = bench.adapter.fakes
    seen: list[int] = []

    def cancel() -> None:
        seen.append(fakes.now_us)
        bench.cancel()

    fakes.at_ms(0.1, cancel)
    assert bench.run() is Status.CANCELLED
    assert fakes.now_us - seen[0] < 100
    bench.check_quiet()


def test_every_operator_can_be_the_last(bench: Bench) -> None:
    adapter = bench.adapter
    for last in range(6):
        told: list[int] = []

        def stop_at(_context: CData, index: int, last: int = last, told: list[int] = told) -> int:
            told.append(index)
            return -99 if index == last else 0

        bench.info.stop_at = adapter.callback("int32_t (void *, uint32_t)", stop_at)
        if last == 5:  # it is called once more at the end, as on_operator is
            with pytest.raises(ValueError, match="-99"):
                bench.run()
        else:
            with pytest.raises(ValueError, match="-99"):
                bench.run()
            assert bench.info.failed_operator == last
        assert told == list(range(last + 1))
        bench.check_quiet()
    bench.info.stop_at = adapter.ffi.NULL
    assert bench.run() is Status.OK


def test_a_deadline(bench: Bench) -> None:
    fakes = bench.adapter.fakes
    begin = fakes.now_us
    assert bench.run() is Status.OK
    whole = fakes.now_us - begin
    for deadline in range(0, whole, max(whole // 40, 1)):
        begin = fakes.now_us
        assert bench.run(deadline_us=deadline) is Status.TIMEOUT
        assert fakes.now_us - begin < deadline + 150  # the device is stopped and switched off
        bench.check_quiet()
    assert bench.run(deadline_us=2 * whole) is Status.OK
    assert bench.run() is Status.OK


class Stubborn(WooflesModel):
    """A device that a reset does not stop: it finishes its command, and writes the result."""

    _late: Command | None = None

    @override
    def reset(self) -> None:
        running, left = getattr(self, "_running", None), getattr(self, "_left", 0)
        super().reset()
        if running is not None:
            self._running, self._left, self._late = running, left, running
            self.set_field("STATUS", "BUSY", 1)

    @override
    def _finish(self, command: Command) -> None:
        if command is not self._late:
            super()._finish(command)
            return
        self._running = self._late = None
        arithmetic.execute(command, self.bus)
        self.set_field("STATUS", "BUSY", 0)


def test_a_device_that_writes_late(adapter: Adapter[Any]) -> None:
    """It cannot be stopped, so the run says so, and no run uses memory before the device has stopped."""
    bench = Bench(adapter, Stubborn(SLOW))
    fakes, ffi = adapter.fakes, adapter.ffi
    assert bench.run() is Status.OK
    fakes.at_ms(0.1, bench.cancel)
    assert bench.run() is Status.DEVICE
    assert adapter.lib.ferrule_device_is_lost(bench.handle)
    ffi.buffer(bench.sram)[:] = b"\xa5" * ffi.sizeof(bench.sram)
    assert bench.run() is Status.DEVICE  # refused: nothing was run
    assert bytes(ffi.buffer(bench.sram)) == b"\xa5" * ffi.sizeof(bench.sram)
    fakes.advance_ms(1)
    assert bytes(ffi.buffer(bench.sram)) != b"\xa5" * ffi.sizeof(bench.sram)  # this is what the status warned of
    assert bench.run(seed=3) is Status.DEVICE  # stopped now, but it may have changed the inputs
    assert not adapter.lib.ferrule_device_is_lost(bench.handle)
    assert bench.run(seed=3) is Status.OK
