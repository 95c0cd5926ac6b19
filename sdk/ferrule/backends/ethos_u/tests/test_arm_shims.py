# SPDX-License-Identifier: Apache-2.0
"""The shims around Arm's driver on the host, over a stand-in for it and the device model: every result of a call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from closing_checks import check_silence_is_loss, check_work_is_stopped
from coverage_gate import count_c, counted
from device_calls import by_interrupt_and_polled, ready
from ethos_u_bench import (
    ARGUMENT,
    ARM_DRIVER,
    BASE,
    BUSY,
    DEVICE,
    GOOD,
    JOB,
    OFFSET,
    OK,
    TIMEOUT,
    TIMEOUT_US,
    UNAVAILABLE,
    EthosUBench,
    changed,
    job,
)
from ethos_u_streams import U55, payload
from lost_writes import LostWrites
from needs import require_cc, require_module

from ferrule.backends.ethos_u.configuration import ARCH_ID, configuration
from ferrule.backends.ethos_u.model import EthosUModel
from ferrule.devices import FaultInjector, NeverDone, StuckBit, WrongId
from ferrule.testing import Adapter, build_adapter

pytestmark = pytest.mark.cc

MakeBench = Callable[..., EthosUBench]


@pytest.fixture(scope="module")
def adapter() -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return counted(build_adapter, "bare_metal", **ARM_DRIVER)


@pytest.fixture
def bench(adapter: Adapter[Any]) -> MakeBench:
    def make(**options: Any) -> EthosUBench:  # noqa: ANN401 those of EthosUBench
        adapter.reset()
        return EthosUBench(adapter, arm=True, **options)

    return make


@by_interrupt_and_polled
def test_a_stream(bench: MakeBench, interrupt: bool) -> None:
    device = ready(bench(interrupt=interrupt))
    for seed in range(3):
        prepared = device.prepare(job(seed))
        for _ in range(2):
            prepared.forget()
            assert prepared.execute() == OK
            assert prepared.is_right
    assert device.model.statistics()["streams"] == 6
    assert (device.close(), device.deactivate()) == (OK, OK)
    assert device.activate() == OK
    assert device.prepare(JOB).run() == OK


def test_the_interrupt_is_used(bench: MakeBench) -> None:
    """Between the start and the interrupt, the device is looked at once, however long that takes."""
    device = ready(bench(interrupt=True))
    assert device.prepare(JOB).execute() == OK
    trace = [str(access) for access in device.window.log]
    begin = trace.index("CMD <- 0x1")
    assert trace[begin + 1 : begin + 3] == ["STATUS -> 0x1", "STATUS -> 0x1010022"]


def test_a_lost_interrupt_costs_time(bench: MakeBench) -> None:
    device = ready(bench(interrupt=True))
    prepared = device.prepare(JOB)
    device.notifies = False
    begin = device.adapter.fakes.now_us
    assert prepared.execute() == OK
    assert device.adapter.fakes.now_us - begin >= TIMEOUT_US
    assert prepared.is_right


def test_one_stream_at_a_time(bench: MakeBench) -> None:
    device = ready(bench())
    lib, prepared = device.lib, device.prepare(JOB)
    assert lib.ethos_u_start(*prepared.arguments) == OK
    assert lib.ethos_u_start(*prepared.arguments) == BUSY
    assert lib.ferrule_device_finish(device.handle, TIMEOUT_US) == OK
    assert prepared.is_right


@by_interrupt_and_polled
def test_patience(bench: MakeBench, interrupt: bool) -> None:
    """The driver sees a semaphore that nobody gave, and resets the device."""
    device = ready(bench(interrupt=interrupt))
    assert device.prepare(JOB, timeout_us=3).execute() == TIMEOUT
    assert device.model.next_event() is None
    good = device.prepare(JOB)
    assert good.execute() == OK
    assert good.is_right


def test_arguments(bench: MakeBench) -> None:
    device = ready(bench())
    prepared = device.prepare(JOB)
    arguments = prepared.arguments
    assert device.lib.ethos_u_execute(arguments[0], arguments[1], prepared.scratch + 4, *arguments[3:]) == ARGUMENT
    driver = device.lib.ethos_u_driver
    assert driver.activate(device.adapter.ffi.NULL) == ARGUMENT
    assert driver.activate(device.adapter.new("struct ethos_u_arm *")) == ARGUMENT  # it has no address


def test_a_fast_scratch_of_its_own(bench: MakeBench) -> None:
    device = ready(bench())
    prepared = device.prepare(JOB)
    prepared.stream.fast_scratch_bytes = 64
    fast = device.aligned(bytes(64))
    assert device.lib.ethos_u_execute(*prepared.arguments[:3], fast, *prepared.arguments[4:]) == OK
    assert device.model.value("BASEP2") != device.model.value("BASEP1")
    assert list(device.context.region_bytes) == [0, prepared.stream.scratch_bytes, 64]


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        (changed(0, 0x32504F43), DEVICE),  # COP2
        (changed(4, 9), DEVICE),  # an unknown tag
        (GOOD[:28], ARGUMENT),  # no commands
        (GOOD + b"\x09\0\0\0", DEVICE),  # an unknown tag, once the commands are being executed
        (changed(2, configuration("ethos-u55-256").register), DEVICE),
        (changed(3, ARCH_ID + (1 << 28)), DEVICE),
        (changed(3, ARCH_ID + (1 << 20)), DEVICE),
        (changed(3, ARCH_ID + (1 << 16)), OK),
    ],
)
def test_payloads(bench: MakeBench, stream: bytes, status: int) -> None:
    device = ready(bench())
    assert device.prepare(JOB, stream=stream).execute() == status
    assert device.model.next_event() is None
    good = device.prepare(JOB)
    assert good.execute() == OK
    assert good.is_right


def test_a_stream_that_fails(bench: MakeBench) -> None:
    device = ready(bench())
    assert device.prepare(JOB, stream=payload(JOB.commands[:-1])).execute() == DEVICE
    assert device.prepare(JOB).execute() == OK


def test_another_product(bench: MakeBench) -> None:
    device = bench()
    device.inject(WrongId(offset=OFFSET["CONFIG"], value=configuration("ethos-u65-256").register))
    assert device.activate() == UNAVAILABLE
    device.inject(None)
    assert device.activate() == OK
    device.inject(WrongId(offset=OFFSET["CONFIG"]))
    assert device.open() == UNAVAILABLE


@pytest.mark.parametrize(("nonsecure", "unprivileged", "levels"), [(0, 0, 1), (1, 0, 3), (0, 1, 0), (1, 1, 2)])
def test_levels(bench: MakeBench, nonsecure: int, unprivileged: int, levels: int) -> None:
    device = ready(bench(nonsecure=bool(nonsecure), unprivileged=bool(unprivileged)))
    assert device.prepare(JOB).execute() == OK
    assert device.model.value("PROT") == levels


@pytest.mark.parametrize(("register", "bit"), [("STATUS", 0), ("STATUS", 3), ("PROT", 1)])
def test_a_reset_that_is_not_done(bench: MakeBench, register: str, bit: int) -> None:
    device = bench()
    device.inject(StuckBit(offset=OFFSET[register], bit=bit, level=True))
    assert device.activate() == DEVICE
    device.inject(None)
    assert device.activate() == OK


def test_a_reset_for_a_stream_that_is_not_done(bench: MakeBench) -> None:
    device = ready(bench())
    prepared = device.prepare(JOB)
    device.inject(StuckBit(offset=OFFSET["STATUS"], bit=3, level=True))
    assert prepared.execute() == DEVICE
    device.inject(None)
    assert prepared.execute() == OK


def test_a_reset_after_a_failure_that_is_not_done(bench: MakeBench) -> None:
    """The driver ignores that; the device API is told, and does not use the device until it has stopped."""
    device = ready(bench())
    prepared = device.prepare(JOB, stream=payload(JOB.commands[:-1]))
    device.inject(None)
    assert prepared.execute() == DEVICE
    run = next(each for each in device.injector.accesses if each.offset == OFFSET["CMD"] and each.value & 1)
    device.inject(StuckBit(offset=OFFSET["STATUS"], bit=3, level=True, since=run.number))
    assert prepared.execute() == DEVICE
    assert device.lib.ferrule_device_is_lost(device.handle)
    device.inject(None)
    assert (device.close(), device.recover()) == (OK, OK)
    assert device.prepare(JOB).run() == OK


@pytest.mark.parametrize("state", [0, 1])
def test_what_is_not_idle_is_set_up_again(bench: MakeBench, state: int) -> None:
    """Either the device runs, or the driver thinks so."""
    device = bench()
    assert device.activate() == OK
    device.context.npu.job.state = state
    device.model.set_field("STATUS", "RUNNING", 1 - state)
    assert device.prepare(JOB).run() == OK


def test_a_device_that_could_not_be_set_up_is_tried_again(bench: MakeBench) -> None:
    device = bench()
    assert device.activate() == OK
    device.inject(StuckBit(offset=OFFSET["STATUS"], bit=0, level=True))
    assert device.open() == DEVICE
    assert not device.context.is_ready
    device.inject(None)
    assert device.prepare(JOB).run() == OK
    assert device.deactivate() == OK


def test_a_device_that_works_when_it_is_closed_is_stopped(bench: MakeBench) -> None:
    check_work_is_stopped(ready(bench()), "RUNNING")


def test_a_device_that_does_not_answer_has_not_stopped(bench: MakeBench) -> None:
    check_silence_is_loss(ready(bench()), "CONFIG")


@by_interrupt_and_polled
def test_it_hangs_and_cannot_be_stopped(bench: MakeBench, interrupt: bool) -> None:
    device = ready(bench(interrupt=interrupt))
    prepared = device.prepare(JOB)
    device.inject(None)
    assert prepared.execute() == OK
    run = next(each for each in device.injector.accesses if each.offset == OFFSET["CMD"] and each.value & 1)
    device.inject(NeverDone(since=run.number + 1))
    assert prepared.execute() == DEVICE
    assert device.lib.ferrule_device_is_lost(device.handle)
    assert device.close() == OK
    assert (device.open(), device.recover(), device.deactivate()) == (DEVICE, DEVICE, DEVICE)
    device.inject(None)
    assert device.activate() == OK
    assert prepared.run() == OK
    assert prepared.is_right


def test_spurious_interrupts(bench: MakeBench) -> None:
    """They are not for Arm's handler, which would take one for the end of a job."""
    device = ready(bench(interrupt=True))
    assert device.handle_interrupt()
    assert device.context.npu.job.state == 0
    prepared = device.prepare(JOB)
    assert prepared.execute() == OK
    answers = [device.handle_interrupt() for _ in range(100)]
    assert answers == [True] * 99 + [False]
    assert prepared.execute() == OK  # by polling
    assert (device.close(), device.deactivate(), device.activate()) == (OK, OK, OK)
    assert not device.context.interrupt_lost


@pytest.mark.parametrize(("times", "lost"), [(1, False), (4, False), (5, True)])
def test_an_interrupt_that_is_hard_to_clear(bench: MakeBench, times: int, lost: bool) -> None:
    """Arm's handler tries first, and then the shim up to four times."""
    device = ready(bench(interrupt=True))
    prepared = device.prepare(JOB)
    device.inject(LostWrites(OFFSET["CMD"], times, mask=2))
    assert prepared.execute() == OK
    assert prepared.is_right
    assert (device.context.interrupt_lost, device.masked) == (lost, lost)
    assert prepared.execute() == OK


def test_two_devices(bench: MakeBench, adapter: Adapter[Any]) -> None:
    device = ready(bench())
    context = adapter.new("struct ethos_u_arm *", {"base": BASE + 0x1000})
    adapter.share(context)
    other = FaultInjector(EthosUModel(U55))
    adapter.attach(BASE + 0x1000, other)
    driver = device.lib.ethos_u_driver
    assert adapter.call(driver.activate, context) == OK
    assert device.prepare(JOB).execute() == OK
    assert other.transfers == []
    assert adapter.call(driver.deactivate, context) == OK


def test_more_devices_than_semaphores(bench: MakeBench) -> None:
    device = bench()
    taken = []
    while (semaphore := device.lib.ethosu_semaphore_create()) != device.adapter.ffi.NULL:
        taken.append(semaphore)
    assert len(set(taken)) == len(taken)
    assert device.activate() == DEVICE
    for each in taken:
        device.lib.ethosu_semaphore_destroy(each)
    assert device.activate() == OK


def test_a_semaphore_does_not_wait(adapter: Adapter[Any]) -> None:
    adapter.reset()
    lib = adapter.lib
    semaphore = lib.ethosu_semaphore_create()
    lib.ethosu_semaphore_give(semaphore)
    assert [lib.ethosu_semaphore_take(semaphore, 2**64 - 1) for _ in range(2)] == [0, -1]
    lib.ethosu_semaphore_destroy(semaphore)


def test_the_mutex(adapter: Adapter[Any]) -> None:
    lib = adapter.lib
    mutex = lib.ethosu_mutex_create()
    assert (lib.ethosu_mutex_lock(mutex), lib.ethosu_mutex_unlock(mutex)) == (0, 0)
    lib.ethosu_mutex_destroy(mutex)


@pytest.mark.nightly
def test_all_of_the_shims_is_tested(tmp_path: Path) -> None:
    name = test_all_of_the_shims_is_tested.__name__
    (report,) = count_c(
        Path(__file__).parent, "test_arm_shims.py", "-k", f"not {name}", output=tmp_path / "counts.json"
    )
    for file in (report.file("arm.c"), report.file("system.c")):
        assert (file.missed_lines, file.missed_branches) == ([], [])
        assert len(file.lines) > 30
