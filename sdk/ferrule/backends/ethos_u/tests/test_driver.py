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
from ethos_u_bench import (
    ARGUMENT,
    BASE,
    BUSY,
    DEVICE,
    DRIVER,
    GOOD,
    JOB,
    OFFSET,
    OK,
    TIMEOUT,
    TIMEOUT_US,
    UNAVAILABLE,
    UNSUPPORTED,
    EthosUBench,
    changed,
    job,
)
from ethos_u_streams import U55, payload, stop
from lost_writes import LostWrites
from needs import require_cc, require_module, require_sanitizers

from ferrule.backends.ethos_u.configuration import ARCH_ID, configuration
from ferrule.backends.ethos_u.model import EthosUModel
from ferrule.devices import FaultInjector, FlippedValue, NeverDone, StuckBit, WrongId
from ferrule.testing import Adapter, build_adapter, run_sanitized
from ferrule.testing.coverage import FileCoverage

pytestmark = pytest.mark.cc

MakeBench = Callable[..., EthosUBench]


@pytest.fixture(scope="module")
def adapter() -> Adapter[Any]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return counted(build_adapter, "bare_metal", **DRIVER)


@pytest.fixture
def bench(adapter: Adapter[Any]) -> MakeBench:
    def make(**options: Any) -> EthosUBench:  # noqa: ANN401 those of EthosUBench
        adapter.reset()
        return EthosUBench(adapter, **options)

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
    assert device.model.statistics()["hazards"] == 0
    assert (device.close(), device.deactivate()) == (OK, OK)
    assert device.model.value("CMD") == 0xC


def test_the_interrupt_is_used(bench: MakeBench) -> None:
    """Between the start and the interrupt, the driver looks at the device once, however long that takes."""
    device = ready(bench(interrupt=True))
    prepared = device.prepare(JOB)
    assert prepared.execute() == OK
    trace = [str(access) for access in device.window.log]
    begin = trace.index("CMD <- 0x1")
    seen = ["STATUS -> 0x1", "STATUS -> 0x1010022", "CMD <- 0xffff0002", "STATUS -> 0x20"]
    assert trace[begin + 1 : begin + 5] == seen


def test_without_a_notification_it_waits_until_its_time_is_over(bench: MakeBench) -> None:
    device = ready(bench(interrupt=True))
    prepared = device.prepare(JOB)
    device.notifies = False
    begin = device.adapter.fakes.now_us
    assert prepared.execute() == OK  # it looks once more at the end
    assert device.adapter.fakes.now_us - begin >= TIMEOUT_US


def test_one_stream_at_a_time(bench: MakeBench) -> None:
    device = ready(bench())
    lib, prepared = device.lib, device.prepare(JOB)
    assert lib.ethos_u_start(*prepared.arguments) == OK
    assert lib.ethos_u_start(*prepared.arguments) == BUSY
    assert lib.ferrule_device_finish(device.handle, TIMEOUT_US) == OK
    assert prepared.is_right


def test_closing_stops_what_is_in_flight(bench: MakeBench) -> None:
    device = ready(bench())
    prepared = device.prepare(JOB)
    assert device.lib.ethos_u_start(*prepared.arguments) == OK
    assert device.close() == OK
    prepared.forget()
    device.adapter.fakes.advance_ms(100)
    assert device.model.next_event() is None
    assert not prepared.is_right
    assert prepared.run() == OK
    assert prepared.is_right


@by_interrupt_and_polled
def test_patience(bench: MakeBench, interrupt: bool) -> None:
    device = ready(bench(interrupt=interrupt))
    late = device.prepare(JOB, timeout_us=3)
    assert late.execute() == TIMEOUT
    assert device.model.next_event() is None  # it was reset, so no write is pending
    good = device.prepare(JOB)
    assert good.execute() == OK
    assert good.is_right


def test_arguments(bench: MakeBench) -> None:
    device = ready(bench())
    lib, null = device.lib, device.adapter.ffi.NULL
    prepared = device.prepare(JOB)
    handle, stream, scratch, _ = prepared.arguments
    assert lib.ethos_u_execute(handle, null, scratch, null) == ARGUMENT
    assert lib.ethos_u_execute(handle, stream, null, null) == ARGUMENT
    assert lib.ethos_u_execute(handle, stream, scratch + 4, null) == ARGUMENT
    for name, value in (("payload", stream.payload + 4), ("payload", null), ("read_only_bytes", 1)):
        kept = getattr(stream, name)
        setattr(stream, name, value)
        assert prepared.execute() == ARGUMENT
        setattr(stream, name, kept)
    stream.fast_scratch_bytes = 16
    assert prepared.execute() == ARGUMENT
    stream.fast_scratch_bytes = 0
    assert device.model.value("QSIZE") == 0
    assert prepared.execute() == OK
    assert lib.ethos_u_driver.activate(null) == ARGUMENT


def test_the_regions(bench: MakeBench) -> None:
    """Region 0 has the constants, region 1 the scratch, and region 2 the fast scratch, or the scratch again."""
    device = ready(bench())
    prepared = device.prepare(JOB)
    handle, stream, scratch, _ = prepared.arguments
    regions = ("BASEP0", "BASEP1", "BASEP2")
    assert prepared.execute() == OK
    first = [device.model.value(name) for name in regions]
    assert first[0] == 0
    assert first[1] == first[2]
    stream.read_only, stream.read_only_bytes = device.aligned(bytes(16)), 16
    stream.fast_scratch_bytes = 64
    assert device.lib.ethos_u_execute(handle, stream, scratch, device.aligned(bytes(64))) == OK
    second = [device.model.value(name) for name in regions]
    assert second[1] == first[1]
    assert len(set(second)) == 3


def test_a_stream_for_a_custom_dma(adapter: Adapter[Any]) -> None:
    custom = U55.register | 1 << 27
    header = adapter.new("struct ethos_u_header *", {"config": custom, "id": ARCH_ID})
    assert adapter.lib.ethos_u_is_compatible(header, custom, ARCH_ID)
    assert not adapter.lib.ethos_u_is_compatible(header, U55.register, ARCH_ID)


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        (b"", ARGUMENT),
        (GOOD[:4], ARGUMENT),
        (GOOD[:12], ARGUMENT),
        (GOOD[:28], ARGUMENT),
        (GOOD[:-4], ARGUMENT),
        (changed(0, 0x32504F43), ARGUMENT),  # COP2
        (changed(1, 5, 5, 5), ARGUMENT),  # no configuration
        (changed(4, 9), ARGUMENT),  # an unknown tag
        (changed(7, 2), ARGUMENT),  # no commands
        (changed(7, 2 | 0xFF00), ARGUMENT),  # more commands than there are
        (changed(6, 2 | 1 << 16), ARGUMENT),  # misaligned commands
        (changed(2, configuration("ethos-u55-256").register), UNSUPPORTED),
        (changed(2, configuration("ethos-u65-256").register), UNSUPPORTED),
        (changed(2, U55.register | 1 << 4), UNSUPPORTED),  # another version of the stream
        (changed(2, U55.register | 1 << 27), UNSUPPORTED),  # a custom DMA
        (changed(3, ARCH_ID + (1 << 28)), UNSUPPORTED),
        (changed(3, ARCH_ID + (1 << 20)), UNSUPPORTED),
        (changed(3, ARCH_ID + (1 << 16)), OK),  # patches of the architecture are compatible
        (changed(2, U55.register | 1 << 8), OK),  # so are sizes of the internal memory, as in Arm's driver
    ],
)
def test_headers(bench: MakeBench, stream: bytes, status: int) -> None:
    device = ready(bench())
    assert device.prepare(JOB, stream=stream).execute() == status
    assert device.prepare(JOB).execute() == OK


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param([0x3FF, *stop()], id="unknown"),
        pytest.param(JOB.commands[:-1], id="without STOP"),
        pytest.param([*job().commands[:-1], *stop(), 0], id="with words behind STOP"),
    ],
)
def test_streams_that_are_wrong(bench: MakeBench, commands: list[int]) -> None:
    """The device stops, which the driver reports; a reset makes it ready for the next stream."""
    device = ready(bench())
    assert device.prepare(JOB, stream=payload(commands)).execute() == DEVICE
    good = device.prepare(JOB)
    assert good.execute() == OK
    assert good.is_right


@pytest.mark.parametrize("register", ["ID", "CONFIG"])
def test_another_device(bench: MakeBench, register: str) -> None:
    device = bench()
    device.inject(WrongId(offset=OFFSET[register]))
    assert device.activate() == UNAVAILABLE
    device.inject(None)
    assert device.activate() == OK
    device.inject(WrongId(offset=OFFSET[register]))
    assert device.open() == UNAVAILABLE


def test_another_configuration_than_that_of_the_binding(bench: MakeBench) -> None:
    device = bench(expects=configuration("ethos-u55-256"))
    assert device.activate() == UNAVAILABLE
    device.context.config = 0
    assert device.activate() == OK
    device.context.config = U55.register ^ 1 << 8  # the size of the internal memory may differ
    assert device.deactivate() == device.activate() == OK


@pytest.mark.parametrize(("nonsecure", "unprivileged", "levels"), [(0, 0, 1), (1, 0, 3), (0, 1, 0), (1, 1, 2)])
def test_levels(bench: MakeBench, nonsecure: int, unprivileged: int, levels: int) -> None:
    device = ready(bench(nonsecure=bool(nonsecure), unprivileged=bool(unprivileged)))
    assert device.model.value("PROT") == levels
    assert device.prepare(JOB).execute() == OK


@pytest.mark.parametrize(("register", "bit"), [("STATUS", 0), ("STATUS", 3), ("STATUS", 4), ("PROT", 1)])
def test_a_reset_that_is_not_done(bench: MakeBench, register: str, bit: int) -> None:
    device = bench()
    device.inject(StuckBit(offset=OFFSET[register], bit=bit, level=True))
    assert device.activate() == DEVICE
    assert len(device.injector.accesses) < 1100


@pytest.mark.parametrize("register", ["AXI_LIMIT0", "AXI_LIMIT3", "CMD", "QCONFIG", "REGIONCFG"])
def test_a_register_that_does_not_take(bench: MakeBench, register: str) -> None:
    device = bench()
    device.inject(LostWrites(OFFSET[register]))
    assert device.activate() == DEVICE


@pytest.mark.parametrize("register", ["BASEP1", "QBASE", "QSIZE"])
def test_an_address_that_does_not_take(bench: MakeBench, register: str) -> None:
    device = ready(bench())
    device.inject(LostWrites(OFFSET[register]))
    assert device.prepare(JOB).execute() == DEVICE
    assert device.model.statistics()["streams"] == 0


def test_a_device_that_is_not_idle(bench: MakeBench) -> None:
    device = ready(bench())
    device.inject(StuckBit(offset=OFFSET["STATUS"], bit=5, level=True))
    assert device.prepare(JOB).execute() == DEVICE
    assert device.model.statistics()["streams"] == 0


def test_deactivation_that_fails(bench: MakeBench) -> None:
    device = bench()
    assert device.activate() == OK
    device.inject(StuckBit(offset=OFFSET["STATUS"], bit=0, level=True))
    assert device.deactivate() == DEVICE
    device.inject(None)
    assert device.activate() == OK
    device.inject(StuckBit(offset=OFFSET["CMD"], bit=2, level=False))
    assert device.deactivate() == DEVICE


@pytest.mark.parametrize(("register", "mask"), [("STATUS", 1), ("STATUS", 1 << 5), ("STATUS", 1 << 2), ("QREAD", 4)])
def test_what_it_says_does_not_fit(bench: MakeBench, register: str, mask: int) -> None:
    """The read of QREAD, and the one of STATUS before it, are the driver's check of the stream."""
    device = ready(bench())
    prepared = device.prepare(JOB)
    device.inject(None)
    assert prepared.execute() == OK
    read = [access.number for access in device.injector.accesses if access.offset == OFFSET["QREAD"]][-1]
    device.inject(FlippedValue(at=read - (register == "STATUS"), mask=mask))
    assert prepared.execute() == DEVICE
    device.inject(None)
    assert prepared.execute() == OK
    assert prepared.is_right


def test_a_stale_end_is_none(bench: MakeBench) -> None:
    device = ready(bench())
    prepared = device.prepare(JOB)
    assert prepared.execute() == OK
    device.inject(LostWrites(OFFSET["CMD"], times=1))
    assert prepared.execute() == TIMEOUT
    assert prepared.execute() == OK


def test_a_device_that_works_when_it_is_closed_is_stopped(bench: MakeBench) -> None:
    check_work_is_stopped(ready(bench()), "RUNNING")


def test_a_device_that_does_not_answer_has_not_stopped(bench: MakeBench) -> None:
    check_silence_is_loss(ready(bench()), "ID")


@by_interrupt_and_polled
def test_it_hangs_and_cannot_be_stopped(bench: MakeBench, interrupt: bool) -> None:
    """It may still write to its scratch, so the handle is lost until the device has been stopped."""
    device = ready(bench(interrupt=interrupt))
    prepared = device.prepare(JOB)
    start = len(device.injector.accesses)
    assert prepared.execute() == OK
    run = next(access.number for access in device.injector.accesses[start:] if access.offset == OFFSET["CMD"])
    device.inject(NeverDone(since=run - start + 1))
    assert prepared.execute() == DEVICE
    assert device.lib.ferrule_device_is_lost(device.handle)
    assert device.close() == OK
    assert (device.open(), device.recover()) == (DEVICE, DEVICE)
    device.inject(None)
    assert prepared.run() == OK
    assert prepared.is_right


@pytest.mark.parametrize("register", ["AXI_LIMIT0", "REGIONCFG", "PROT"])
def test_a_device_that_lost_its_registers_is_set_up_again(bench: MakeBench, register: str) -> None:
    device = bench()
    assert device.activate() == OK
    device.model.set_value(register, 2)
    prepared = device.prepare(JOB)
    assert prepared.run() == OK
    assert prepared.is_right
    device.model.reset()
    assert prepared.run() == OK


def test_it_stopped_by_itself(bench: MakeBench) -> None:
    device = bench()
    assert device.activate() == OK
    device.model.write(OFFSET["QSIZE"], 4, 4)
    device.model.write(OFFSET["CMD"], 4, 1)
    assert device.model.field("STATUS", "BUS")
    assert device.prepare(JOB).run() == OK


def test_spurious_interrupts(bench: MakeBench) -> None:
    device = ready(bench(interrupt=True))
    assert device.lib.ethos_u_interrupt(device.context)
    assert device.context.spurious == 1
    prepared = device.prepare(JOB)
    assert prepared.execute() == OK
    assert device.context.spurious == 0
    answers = [device.lib.ethos_u_interrupt(device.context) for _ in range(100)]
    assert answers == [True] * 99 + [False]
    assert device.context.interrupt_lost
    assert prepared.execute() == OK  # by polling
    assert device.close() == OK
    assert prepared.run() == OK


@pytest.mark.parametrize(("times", "lost"), [(1, False), (3, False), (4, True)])
def test_an_interrupt_that_is_hard_to_clear(bench: MakeBench, times: int, lost: bool) -> None:
    device = ready(bench(interrupt=True))
    prepared = device.prepare(JOB)
    device.inject(LostWrites(OFFSET["CMD"], times, mask=2))
    assert prepared.execute() == OK
    assert prepared.is_right
    assert device.context.interrupt_lost == lost
    assert device.masked == lost
    assert prepared.execute() == OK


def test_a_polled_end_that_cannot_be_cleared(bench: MakeBench) -> None:
    device = ready(bench())
    prepared = device.prepare(JOB)
    device.inject(StuckBit(offset=OFFSET["STATUS"], bit=6, level=False))
    assert prepared.execute() == OK
    device.inject(LostWrites(OFFSET["CMD"], mask=2))
    assert prepared.execute() == DEVICE


def test_two_devices(bench: MakeBench, adapter: Adapter[Any]) -> None:
    device = ready(bench())
    context = adapter.new("struct ethos_u *", {"base": BASE + 0x1000})
    other = FaultInjector(EthosUModel("ethos-u65-256"))
    adapter.attach(BASE + 0x1000, other)
    assert adapter.call(device.lib.ethos_u_driver.activate, context) == OK
    assert device.prepare(JOB).execute() == OK
    assert other.transfers == []


def every_operation() -> None:
    """Run streams; called in a separate process whose builds have sanitizers."""
    for interrupt in (False, True):
        device = EthosUBench(build_adapter("bare_metal", **DRIVER), interrupt=interrupt)
        prepared = ready(device).prepare(JOB)
        for fault in (None, NeverDone(since=0), None):
            device.inject(fault)
            prepared.execute()
        assert prepared.is_right
        for size in range(0, len(GOOD), 4):
            device.prepare(JOB, stream=GOOD[:size]).execute()
        assert (device.close(), device.deactivate()) == (OK, OK)


@pytest.mark.nightly
def test_without_undefined_behaviour() -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_sanitizers("address", "undefined")
    run_sanitized(every_operation)


def covered(tmp_path: Path, tests: str) -> tuple[FileCoverage, ...]:
    (report,) = count_c(Path(__file__).parent, "test_driver.py", "-k", tests, output=tmp_path / "counts.json")
    return tuple(report.file(name) for name in ("ethos_u.c", "ethos_u_call.c"))


@pytest.mark.nightly
def test_all_of_the_driver_is_tested(tmp_path: Path) -> None:
    tests = f"not {test_without_undefined_behaviour.__name__} and not is_tested and not is_noticed"
    for file in covered(tmp_path, tests):
        assert (file.missed_lines, file.missed_branches) == ([], [])
        assert len(file.lines) > 50


@pytest.mark.nightly
def test_what_does_not_run_is_noticed(tmp_path: Path) -> None:
    assert not any(file.is_full for file in covered(tmp_path, "test_patience"))
