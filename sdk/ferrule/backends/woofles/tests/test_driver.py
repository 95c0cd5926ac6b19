# SPDX-License-Identifier: Apache-2.0
"""The C driver on the host, with the device model behind its registers: every possible result of a call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from closing_checks import check_silence_is_loss, check_work_is_stopped
from coverage_gate import count_c, counted
from device_calls import by_interrupt_and_polled, ready
from lost_writes import LostWrites
from needs import require_cc, require_module, require_sanitizers
from woofles_bench import (
    ARGUMENT,
    BASE,
    BUSY,
    DEVICE,
    DRIVER,
    OK,
    STATE,
    TIMEOUT,
    TIMEOUT_US,
    UNAVAILABLE,
    Job,
    WooflesBench,
    jobs,
)

from ferrule.backends.woofles.model import IMMEDIATE
from ferrule.backends.woofles.registers import TABLE
from ferrule.devices import FaultInjector, FlippedValue, NeverDone, StuckBit, WrongId
from ferrule.testing import Adapter, build_adapter, run_sanitized
from ferrule.testing.coverage import FileCoverage

pytestmark = pytest.mark.cc

JOBS = jobs()
OFFSET = {register.name: register.offset for register in TABLE}
MakeBench = Callable[..., WooflesBench]


@pytest.fixture(scope="module")
def adapter() -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return counted(build_adapter, "bare_metal", **DRIVER)


@pytest.fixture
def bench(adapter: Adapter[Any]) -> MakeBench:
    def make(**options: Any) -> WooflesBench:  # noqa: ANN401 those of WooflesBench
        adapter.reset()
        return WooflesBench(adapter, **options)

    return make


@by_interrupt_and_polled
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_each_operation(bench: MakeBench, job: Job, interrupt: bool) -> None:
    device = ready(bench(interrupt=interrupt))
    prepared = device.prepare(job)
    for _ in range(6):  # more than once around the ring
        prepared.forget()
        assert prepared.execute() == OK
        assert prepared.is_right
    assert device.model.value("COMPLETED") == 6
    assert (device.close(), device.deactivate()) == (OK, OK)
    assert device.model.value("CONTROL") == 0


def test_the_interrupt_is_used(bench: MakeBench) -> None:
    """Between doorbell and interrupt, the driver looks at the device once, however long that takes."""
    device = ready(bench(interrupt=True))
    for job in ("add", "conv_2d"):
        device.window.log.clear()
        assert device.prepare(JOBS[job]).execute() == OK
        trace = [str(access) for access in device.window.log[1:6]]
        assert trace[:2] == ["STATUS -> 0x1", f"COMPLETED -> {int(job != 'add'):#x}"]
        assert trace[2:] == ["INTERRUPT -> 0x1", "INTERRUPT <- 0x1", "INTERRUPT -> 0x0"]


def test_without_a_notification_it_waits_until_its_time_is_over(bench: MakeBench) -> None:
    device = ready(bench(interrupt=True))
    device.lib.ferrule_fake_forget_calls()
    job = device.prepare(JOBS["add"])
    device.notifies = False
    begin = device.adapter.fakes.now_us
    assert job.execute() == OK  # it looks once more at the end
    assert device.adapter.fakes.now_us - begin >= TIMEOUT_US


def test_several_commands_in_flight(bench: MakeBench) -> None:
    """The ring holds one command less than its entries; they are collected in order, whenever they are over."""
    for interrupt in (False, True):
        device = ready(bench(interrupt=interrupt))
        lib, prepared = device.lib, [device.prepare(job) for job in JOBS.values()]
        for round_ in range(5):
            taken = prepared[round_ % 2 :][:3]
            for job in taken:
                job.forget()
                assert lib.woofles_start(*job.arguments) == OK
            assert lib.woofles_start(*prepared[0].arguments) == BUSY
            assert lib.ferrule_device_in_flight(device.handle) == 3
            for job in taken:
                assert lib.ferrule_device_finish(device.handle, 4000) == OK
                assert job.is_right
            assert lib.ferrule_device_finish(device.handle, 4000) == STATE
        assert device.model.value("COMPLETED") == 15
        assert (device.close(), device.deactivate()) == (OK, OK)


def test_closing_stops_what_is_in_flight(bench: MakeBench) -> None:
    device = ready(bench())
    job = device.prepare(JOBS["conv_2d"])
    assert device.lib.woofles_start(*job.arguments) == OK
    assert device.close() == OK
    job.forget()
    device.adapter.fakes.advance_ms(100)
    assert not job.is_right  # nothing was written
    assert job.run() == OK
    assert job.is_right


def test_a_bad_command_among_others(bench: MakeBench) -> None:
    device = ready(bench())
    good, bad = device.prepare(JOBS["add"]), device.prepare(JOBS["mul"])
    bad.layer.command.count = 0
    assert device.lib.woofles_start(*good.arguments) == OK
    assert device.lib.woofles_start(*bad.arguments) == OK
    device.adapter.fakes.advance_ms(10)
    assert device.lib.ferrule_device_finish(device.handle, 4000) == DEVICE  # the device has stopped
    assert device.lib.ferrule_device_in_flight(device.handle) == 0
    assert good.execute() == OK
    assert good.is_right


@by_interrupt_and_polled
def test_patience(bench: MakeBench, interrupt: bool) -> None:
    device = ready(bench(interrupt=interrupt))
    late = device.prepare(JOBS["conv_2d"], timeout_us=3)
    assert late.execute() == TIMEOUT
    assert device.model.next_event() is None  # it was reset, so no write is pending
    good = device.prepare(JOBS["conv_2d"])
    assert good.execute() == OK
    assert good.is_right


def test_what_is_done_at_once_needs_no_patience(bench: MakeBench) -> None:
    device = ready(bench(timing=IMMEDIATE))
    assert device.prepare(JOBS["add"], timeout_us=0).execute() == OK


def test_arguments(bench: MakeBench) -> None:
    device = ready(bench())
    lib, null = device.lib, device.adapter.ffi.NULL
    job = device.prepare(JOBS["add"])
    assert lib.woofles_execute(device.handle, null, job.input, job.second, job.output) == ARGUMENT
    assert lib.woofles_execute(device.handle, job.layer, null, job.second, job.output) == ARGUMENT
    assert lib.woofles_execute(device.handle, job.layer, job.input, null, job.output) == ARGUMENT
    assert lib.woofles_execute(device.handle, job.layer, job.input, job.second, null) == ARGUMENT
    assert device.model.value("QUEUE_HEAD") == 0
    assert device.close() == OK
    assert job.execute() != OK  # it is not open
    driver = lib.woofles_driver
    assert device.adapter.call(driver.activate, null) == ARGUMENT


@pytest.mark.parametrize("register", ["ID", "VERSION"])
def test_another_device(bench: MakeBench, register: str) -> None:
    device = bench()
    device.inject(WrongId(offset=OFFSET[register]))
    assert device.activate() == UNAVAILABLE


def test_another_device_appears(bench: MakeBench) -> None:
    device = bench()
    assert device.activate() == OK
    device.inject(WrongId())
    assert device.open() == UNAVAILABLE
    device.inject(None)
    assert device.open() == OK


@pytest.mark.parametrize("register", ["CONTROL", "STATUS", "INTERRUPT", "QUEUE_TAIL", "COMPLETED"])
def test_a_reset_that_does_not_clear(bench: MakeBench, register: str) -> None:
    device = bench()
    device.inject(StuckBit(offset=OFFSET[register], bit=0, level=True))
    assert device.activate() == DEVICE


@pytest.mark.parametrize("register", ["QUEUE_BASE", "QUEUE_LENGTH", "CONTROL"])
def test_a_register_that_does_not_take(bench: MakeBench, register: str) -> None:
    device = bench()
    device.inject(LostWrites(OFFSET[register]))
    assert device.activate() == DEVICE


def test_deactivation_that_fails(bench: MakeBench) -> None:
    device = bench()
    assert device.activate() == OK
    device.inject(LostWrites(OFFSET["CONTROL"]))
    assert device.deactivate() == DEVICE
    device.inject(None)
    assert device.activate() == OK
    device.inject(StuckBit(offset=OFFSET["STATUS"], bit=0, level=True))
    assert device.deactivate() == DEVICE


@pytest.mark.parametrize("mask", [1, 2, 4])
@pytest.mark.parametrize("register", ["STATUS", "COMPLETED", "SEQUENCE", "QUEUE_TAIL"])
def test_what_it_says_does_not_fit(bench: MakeBench, register: str, mask: int) -> None:
    """The last read of each register is the driver's check of the command."""
    device = ready(bench())
    job = device.prepare(JOBS["add"])
    device.inject(None)
    assert job.execute() == OK
    last = [access.number for access in device.injector.accesses if access.offset == OFFSET[register]][-1]
    device.deactivate()
    device.close()
    device = ready(bench())
    job = device.prepare(JOBS["add"])
    device.inject(FlippedValue(at=last, mask=mask))
    assert job.execute() == DEVICE
    device.inject(None)
    assert job.execute() == OK
    assert job.is_right


def test_a_stale_done_is_none(bench: MakeBench) -> None:
    device = ready(bench())
    job = device.prepare(JOBS["mul"])
    assert job.execute() == OK
    device.inject(LostWrites(OFFSET["QUEUE_HEAD"], times=1))
    assert job.execute() == TIMEOUT  # STATUS is still DONE from the previous command
    assert job.execute() == OK


def test_a_finished_command_is_not_executed_again(bench: MakeBench) -> None:
    """A flipped bit of QUEUE_HEAD makes the device continue into ring entries with old commands."""
    device = ready(bench())
    job = device.prepare(JOBS["add"])
    for _ in range(4):
        assert job.execute() == OK
    job.forget()
    device.inject(FlippedValue(at=0, mask=2))
    assert job.execute() == DEVICE
    assert device.injector.transfers[-1].write is False  # the second command was rejected
    device.inject(None)
    assert job.execute() == OK


def test_a_device_that_works_when_it_is_closed_is_stopped(bench: MakeBench) -> None:
    check_work_is_stopped(ready(bench()), "BUSY")


def test_a_device_that_does_not_answer_has_not_stopped(bench: MakeBench) -> None:
    check_silence_is_loss(ready(bench()), "ID")


@by_interrupt_and_polled
def test_it_hangs_and_cannot_be_stopped(bench: MakeBench, interrupt: bool) -> None:
    """It may still write to its output, so the handle is lost until the device has been stopped."""
    device = ready(bench(interrupt=interrupt))
    job = device.prepare(JOBS["fully_connected"])
    device.inject(NeverDone(since=0))
    assert job.execute() == DEVICE
    assert device.lib.ferrule_device_is_lost(device.handle)
    assert device.close() == OK
    assert (device.open(), device.recover()) == (DEVICE, DEVICE)
    device.inject(None)
    assert job.run() == OK
    assert job.is_right
    assert not device.lib.ferrule_device_is_lost(device.handle)


def test_a_lost_device_is_off(bench: MakeBench) -> None:
    device = ready(bench())
    job = device.prepare(JOBS["fully_connected"])
    device.inject(NeverDone(since=0))
    assert job.execute() == DEVICE
    assert (device.close(), device.deactivate(), device.activate(), device.recover()) == (OK, DEVICE, DEVICE, DEVICE)
    assert device.lib.ferrule_device_is_lost(device.handle)
    device.inject(None)
    assert device.recover() == OK
    assert not device.lib.ferrule_device_is_lost(device.handle)
    assert device.activate() == OK
    assert job.run() == OK
    assert job.is_right


def test_it_hangs_and_loses_its_power(bench: MakeBench) -> None:
    """Where the power can be cut, the device is stopped by that, and powered up again when it is opened."""
    device = ready(bench(power=True))
    job = device.prepare(JOBS["fully_connected"])
    device.inject(NeverDone(since=0))
    assert job.execute() == TIMEOUT
    assert device.powers == ["on", "cut"]
    assert not device.lib.ferrule_device_is_lost(device.handle)
    assert device.close() == OK
    assert device.open() == DEVICE  # it is powered up, and still does not respond
    device.inject(None)
    assert job.run() == OK
    assert job.is_right
    assert device.deactivate() == OK


def test_a_device_that_lost_its_registers_is_set_up_again(bench: MakeBench) -> None:
    device = bench()
    assert device.activate() == OK
    device.model.reset()
    job = device.prepare(JOBS["add"])
    assert job.run() == OK
    assert job.is_right
    device.model.set_value("QUEUE_TAIL", 3)
    assert job.run() == OK


def test_it_stopped_by_itself(bench: MakeBench) -> None:
    device = bench()
    assert device.activate() == OK
    device.model.write(OFFSET["QUEUE_HEAD"], 4, 77)
    assert device.model.field("STATUS", "ERROR")
    assert device.prepare(JOBS["add"]).run() == OK


def test_spurious_interrupts(bench: MakeBench) -> None:
    device = ready(bench(interrupt=True))
    assert device.lib.woofles_interrupt(device.context)
    assert device.context.spurious == 1
    job = device.prepare(JOBS["add"])
    assert job.execute() == OK
    assert device.context.spurious == 0
    answers = [device.lib.woofles_interrupt(device.context) for _ in range(100)]
    assert answers == [True] * 99 + [False]
    assert device.context.interrupt_lost
    assert job.execute() == OK  # by polling
    assert device.close() == OK
    assert job.run() == OK
    assert not device.model.field("CONTROL", "IRQ_ENABLE")


@pytest.mark.parametrize(("times", "lost"), [(1, False), (3, False), (4, True)])
def test_an_interrupt_that_is_hard_to_clear(bench: MakeBench, times: int, lost: bool) -> None:
    device = ready(bench(interrupt=True))
    job = device.prepare(JOBS["mul"])
    device.inject(LostWrites(OFFSET["INTERRUPT"], times=times))
    assert job.execute() == OK
    assert job.is_right
    assert device.context.interrupt_lost == lost
    assert device.masked == lost
    assert job.execute() == OK


def test_two_devices(bench: MakeBench, adapter: Adapter[Any]) -> None:
    device = ready(bench())
    context = adapter.new("struct woofles *", {"base": BASE + 0x1000})
    adapter.share(context)
    other = FaultInjector(type(device.model)())
    adapter.attach(BASE + 0x1000, other)
    driver = device.lib.woofles_driver
    assert adapter.call(driver.activate, context) == OK
    assert device.prepare(JOBS["add"]).execute() == OK
    assert other.transfers == []


def every_operation() -> None:
    """Run every operation; called in a separate process whose builds have sanitizers."""
    for interrupt in (False, True):
        device = WooflesBench(build_adapter("bare_metal", **DRIVER), interrupt=interrupt)
        for job in JOBS.values():
            prepared = ready(device).prepare(job)
            for fault in (None, NeverDone(since=0), None):
                device.inject(fault)
                prepared.execute()
            assert prepared.is_right
            assert (device.close(), device.deactivate()) == (OK, OK)


def test_without_undefined_behaviour() -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_sanitizers("address", "undefined")
    run_sanitized(every_operation)


def covered(tmp_path: Path, tests: str) -> FileCoverage:
    (report,) = count_c(Path(__file__).parent, "test_driver.py", "-k", tests, output=tmp_path / "counts.json")
    return report.file("woofles.c")


def test_all_of_the_driver_is_tested(tmp_path: Path) -> None:
    file = covered(tmp_path, f"not {test_without_undefined_behaviour.__name__} and not is_tested and not is_noticed")
    assert (file.missed_lines, file.missed_branches) == ([], [])
    assert len(file.lines) > 100
    assert len(file.branches) > 50


@pytest.mark.nightly
def test_what_does_not_run_is_noticed(tmp_path: Path) -> None:
    assert not covered(tmp_path, "test_patience").is_full
