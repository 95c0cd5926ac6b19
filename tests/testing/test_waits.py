# SPDX-License-Identifier: Apache-2.0
"""Drivers that wait for an interrupt: the time of the device model passes meanwhile, on every platform's fakes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from needs import require_cc, require_module

from ferrule._typing import override
from ferrule.devices import Access, Register, RegisterModel, RegisterTable
from ferrule.testing import Adapter, CData, build_adapter
from ferrule.testing.registers import Registers

pytestmark = pytest.mark.cc
FOLDER = Path(__file__).parent / "c"
PLATFORMS = ("zephyr", "cmsis", "bare_metal")
BASE = 0x4009_0000
LATENCY_US, TIMEOUT_US, TICK_US = 7_000, 20_000, 1_000
OK, STATE, TIMEOUT = 0, -7, -9
TABLE = RegisterTable(
    name="SLEEPER",
    registers=(
        Register("START", 0x0),
        Register("DONE", 0x4, access=Access.CLEAR_BY_ONE),
        Register("VALUE", 0x8),
    ),
)


class Sleeper(RegisterModel):
    """Doubles a number, which takes its time, and raises its interrupt."""

    table = TABLE

    def __init__(self, latency_us: int = LATENCY_US) -> None:
        super().__init__()
        self._latency = latency_us
        self._left: int | None = None
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name == "START":
            self._left = self._latency if new else None
        if register.name == "DONE" and not new:
            self.irq.set(False)

    @override
    def advance(self, cycles: int) -> None:
        if self._left is not None:
            self._left -= cycles
            if self._left <= 0:
                self._left = None
                self._values.update(START=0, DONE=1, VALUE=2 * self._values["VALUE"])
                self.irq.set(True)

    @override
    def next_event(self) -> int | None:
        return self._left


@dataclass(frozen=True)
class Bench:
    """An open device with the driver, and the model behind it."""

    adapter: Adapter[Any]
    handle: CData
    sleeper: CData

    def attach(self, model: Sleeper, *, has_interrupt: bool = True) -> Registers:
        return self.adapter.attach(BASE, model, interrupt=self.interrupt if has_interrupt else None)

    def interrupt(self) -> None:
        self.adapter.lib.sleeper_isr(self.sleeper)
        self.adapter.lib.ferrule_device_notify(self.handle)

    def run(self, value: int) -> tuple[int, int, int]:
        """Return the status, the result, and the virtual time that the run took."""
        result, began = self.adapter.new("uint32_t *"), self.adapter.fakes.now_us
        status = self.adapter.lib.sleeper_run(self.handle, value, result)
        return status, result[0], self.adapter.fakes.now_us - began


@pytest.fixture(scope="module", params=PLATFORMS)
def built(request: pytest.FixtureRequest) -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_adapter(
        str(request.param), sources=[FOLDER / "sleeper.c"], headers=["sleeper.h"], include_dirs=[FOLDER]
    )


@pytest.fixture
def bench(built: Adapter[Any]) -> Bench:
    built.reset()
    handle, sleeper = built.new("struct ferrule_device *"), built.new("struct sleeper *", {"base": BASE})
    built.keep(handle, sleeper)
    lib, driver, null = built.lib, built.address("sleeper_driver"), built.ffi.NULL
    assert lib.ferrule_device_init(handle) == OK
    if hasattr(built.fakes, "device"):
        assert lib.ferrule_device_bind(handle, built.fakes.device("npu0"), driver, sleeper) == OK
    elif hasattr(built.fakes, "usart"):
        assert lib.ferrule_device_bind(handle, driver, sleeper) == OK
    else:
        assert lib.ferrule_device_bind(handle, null, null, driver, sleeper) == OK
    assert lib.ferrule_device_activate(handle) == OK
    assert lib.ferrule_device_open(handle) == OK
    return Bench(adapter=built, handle=handle, sleeper=sleeper)


def test_an_interrupt_ends_the_wait(bench: Bench) -> None:
    """The thread sleeps: it makes few calls in thousands of microseconds."""
    bench.attach(Sleeper())
    for value in (21, 4):
        bench.adapter.fakes.forget_calls()
        status, result, passed_us = bench.run(value)
        assert (status, result) == (OK, 2 * value)
        assert LATENCY_US <= passed_us < LATENCY_US + 100
        assert len(bench.adapter.fakes.calls) < 100


def test_an_interrupt_that_does_not_come_is_a_time_out(bench: Bench) -> None:
    bench.attach(Sleeper(), has_interrupt=False)
    status, _, passed_us = bench.run(21)
    assert status == TIMEOUT
    assert TIMEOUT_US <= passed_us < TIMEOUT_US + 2 * TICK_US


def test_a_late_notification_of_an_earlier_run_does_not_end_the_wait(bench: Bench) -> None:
    bench.attach(Sleeper())
    bench.adapter.lib.ferrule_device_notify(bench.handle)
    bench.adapter.fakes.at_ms(2, lambda: bench.adapter.lib.ferrule_device_notify(bench.handle))
    status, result, passed_us = bench.run(21)
    assert (status, result) == (OK, 42)
    assert passed_us >= LATENCY_US
    assert bench.sleeper.looks >= 3


def test_a_notification_before_the_wait_is_not_lost(bench: Bench) -> None:
    """The device is so fast that its interrupt comes between the start and the wait."""
    bench.attach(Sleeper(latency_us=1))
    status, result, passed_us = bench.run(21)
    assert (status, result) == (OK, 42)
    assert passed_us < TICK_US


def test_a_command_in_flight(bench: Bench) -> None:
    adapter, lib = bench.adapter, bench.adapter.lib
    window = bench.attach(Sleeper())
    value = adapter.new("uint32_t *", 21)
    assert lib.ferrule_device_submit(bench.handle, adapter.address("sleeper_driver"), value) == OK
    assert lib.ferrule_device_finish(bench.handle, lib.FERRULE_WAIT_DEFAULT) == OK
    assert adapter.fakes.now_us >= LATENCY_US
    assert lib.ferrule_mmio_read32(BASE + 0x8) == 42
    assert lib.ferrule_device_submit(bench.handle, adapter.address("sleeper_driver"), value) == OK
    assert lib.ferrule_device_finish(bench.handle, LATENCY_US // 2) == TIMEOUT
    assert window.trace[-1] == "START <- 0x0"  # aborted
    assert lib.ferrule_device_finish(bench.handle, LATENCY_US) == STATE


def test_a_cancelled_wait(bench: Bench) -> None:
    adapter, lib = bench.adapter, bench.adapter.lib
    bench.attach(Sleeper(latency_us=10**6))
    stop, value = adapter.new("struct ferrule_stop *"), adapter.new("uint32_t *", 21)
    lib.ferrule_device_close(bench.handle)
    assert lib.ferrule_device_open_for(bench.handle, lib.FERRULE_WAIT_DEFAULT, stop) == OK
    lib.ferrule_device_submit(bench.handle, adapter.address("sleeper_driver"), value)
    adapter.fakes.at_ms(3, lambda: lib.ferrule_stop_request(stop))
    assert lib.ferrule_device_finish(bench.handle, lib.FERRULE_WAIT_DEFAULT) == lib.FERRULE_ERR_CANCELLED
    assert adapter.fakes.now_us < 4_000


@pytest.mark.parametrize("built", ["zephyr", "cmsis"], indirect=True)
def test_another_thread_runs_while_a_driver_waits(built: Adapter[Any], bench: Bench) -> None:
    bench.attach(Sleeper())
    lib = built.lib
    sleep_ms = lib.k_msleep if hasattr(lib, "k_msleep") else lib.osDelay
    lib.ferrule_device_close(bench.handle)
    turns = []

    def wait() -> tuple[int, int]:
        assert lib.ferrule_device_open(bench.handle) == OK
        status, result, _ = bench.run(21)
        turns.append("over")
        assert lib.ferrule_device_close(bench.handle) == OK
        return status, result

    def work() -> None:
        for turn in range(5):
            turns.append(str(turn))
            sleep_ms(1)

    assert built.fakes.run(wait, work)[0] == (OK, 42)
    assert turns == ["0", "1", "2", "3", "4", "over"]


@pytest.mark.parametrize("built", ["bare_metal"], indirect=True)
def test_a_driver_in_python_with_commands_in_flight(built: Adapter[Any]) -> None:
    built.reset()
    lib, null = built.lib, built.ffi.NULL
    driver = built.driver(
        submit=lambda _context, _command: OK,
        submit_copy_to=lambda _context, _offset, _source, _bytes: OK,
        submit_copy_from=lambda _context, _destination, _offset, _bytes: OK,
        is_over=lambda _context: built.fakes.now_us > 1_000,
        poll_us=lambda _context: 100,
        finish=lambda _context: OK,
        abort=lambda _context: OK,
        depth=3,
        timeout_us=100,
        memory_bytes=4,
    )
    handle, data = built.new("struct ferrule_device *"), built.new("uint8_t[4]")
    lib.ferrule_device_init(handle)
    lib.ferrule_device_bind(handle, null, null, driver, null)
    lib.ferrule_device_activate(handle)
    lib.ferrule_device_open(handle)
    assert lib.ferrule_device_submit_copy_to(handle, 0, data, 4) == OK
    assert lib.ferrule_device_submit(handle, driver, null) == OK
    assert lib.ferrule_device_submit_copy_from(handle, data, 0, 4) == OK
    assert lib.ferrule_device_submit(handle, driver, null) == lib.FERRULE_ERR_BUSY
    assert lib.ferrule_device_finish(handle, 2_000) == OK
    assert lib.ferrule_device_finish(handle, lib.FERRULE_WAIT_DEFAULT) == OK
    lib.ferrule_device_close(handle)
    words = built.fakes.trace.split()
    assert [word for word in words if word in ("submit", "finish", "abort") or "copy" in word] == [
        *("submit_copy_to", "submit", "submit_copy_from", "finish", "finish", "abort"),
    ]
