# SPDX-License-Identifier: Apache-2.0
"""The times of runs on unicorn: their parts add up to the unit, and a device that is broken shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import require_module
from small_networks import int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles.model import Timing, WooflesModel
from ferrule.boards import load_board
from ferrule.devices import Bus, InterruptLine
from ferrule.emulation import Clock, engine
from ferrule.emulation.unicorn.timing import Timing as UnicornTiming
from ferrule.errors import FerruleError
from ferrule.report import Verdict, html_page
from ferrule.report.duration import Judgement
from ferrule.report.writers.chrome_trace import trace_text
from ferrule.report.writers.markdown import markdown_text
from ferrule.running import RunRequest
from ferrule.running.session import RunningFirmware
from ferrule.timing import BoardTiming, DataWaits, Duration, MemoryTiming
from ferrule.timing.usage import parse_battery, parse_rate

pytestmark = [pytest.mark.cc, pytest.mark.emu]

SCALE = ferrule.Quantization.of(1.0)
SIZE = 16
X = np.arange(-8, 8, dtype=np.int8).reshape(1, SIZE)
SLOW = Timing(command=50_000)
Compiled = Callable[..., ferrule.Firmware]


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    """Compiles two layers of a device around one of the core; 1 for a driver that waits for the interrupt."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    network = ferrule.Network("pair")
    network.add_input(int8_input("x", 1, SIZE))
    first = network.add_add_layer("x", "x", quantization=SCALE, name="first")
    core = network.add_tanh_layer(first, name="core")
    network.set_outputs([network.add_mul_layer(core, first, quantization=SCALE, name="last")])

    def build(use_interrupt: int, board: str = "mps2-an386") -> ferrule.Firmware:
        devices = [Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": use_interrupt})]
        return ferrule.compile(network, board=board, backends=["Woofles", "CpuAcc"], devices=devices)

    return build


def durations(firmware: ferrule.Firmware, *, runs: int = 1) -> list[Duration]:
    """Return the times of some runs."""
    found = []
    with RunningFirmware(firmware) as running:
        for _ in range(runs):
            running.run([X])
            assert running.took is not None
            assert not running.session.durations(), "they are taken once"
            found.append(running.took)
        assert running.longest == max(each.total for each in found)
    return found


def check(found: Duration) -> None:
    """Compare the total with the sums of the parts, and the layers with what they consist of."""
    assert found.total == found.work + found.asleep + sum(each.awake + each.asleep for each in found.waits)
    assert all(each.total == each.work + each.asleep + each.waited for each in found.steps)
    ends = [0, *(each.start + each.total for each in found.steps)]
    assert all(step.start == end for step, end in zip(found.steps[1:], ends[1:], strict=False))
    assert ends[-1] <= found.total
    assert sum(each.waited for each in found.steps) == found.waited
    for command in found.commands:
        assert command.begun is not None
        assert command.done is not None
        assert 0 <= command.start <= command.begun < command.done <= command.end <= found.total


@pytest.mark.parametrize("use_interrupt", [0, 1])
def test_the_parts_of_a_run_add_up(use_interrupt: int, compiled: Compiled) -> None:
    for found in durations(compiled(use_interrupt), runs=2):
        check(found)
        (wait,) = found.waits
        assert (wait.device, wait.waits, wait.limited, wait.late) == ("npu0", 2, 0, 0)
        assert [each.index for each in found.steps] == [0, 1, 2]
        assert [each.index for each in found.commands] == [0, 2]
        assert found.steps[1].waited == 0


@pytest.mark.parametrize("use_interrupt", [0, 1])
def test_transfers_of_a_device_keep_the_core_from_its_memory(use_interrupt: int, compiled: Compiled) -> None:
    firmware, totals = compiled(use_interrupt), []
    for waits in (0, 50):
        memories = {firmware.board.placement.workspace: MemoryTiming(dma_wait_states=waits)}
        board = replace(firmware.board, timing=BoardTiming(source="a test", memories=memories))
        with RunningFirmware(replace(firmware, board=board), RunRequest(clock=Clock.CYCLES)) as running:
            running.run([X])
            assert running.took is not None
            check(running.took)
            totals.append(running.took.total)
    assert totals[1] > totals[0]


@pytest.mark.parametrize("read_waits", [2, 1])
def test_waits_for_data_beside_a_device_by_interrupt(read_waits: int, compiled: Compiled) -> None:
    """They are repeated only if each block always waits the same: one that copies from flash and from RAM may not."""
    firmware = compiled(1, "stm32g0b1")
    flash, ram = firmware.board.placement.code, firmware.board.placement.workspace
    waits = {flash: MemoryTiming(wait_states=2), ram: MemoryTiming(wait_states=read_waits, write_wait_states=1)}
    board = replace(firmware.board, timing=BoardTiming(source="a test", memories=waits))
    expected, found = firmware.run([X]).outputs[0], []
    for repeats in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not repeats:
                patch.setattr(UnicornTiming, "repeat", lambda _: None)
            with RunningFirmware(replace(firmware, board=board), RunRequest(clock=Clock.CYCLES)) as running:
                times = []
                for _ in range(5):
                    assert (running.run([X])[0] == expected).all()
                    assert running.took is not None
                    check(running.took)
                    times.append(running.took)
                found.append(times)
    repeated, measured = found
    assert [each.data_waits for each in measured] == [DataWaits.MEASURED] * 5
    assert repeated[-1].data_waits is (DataWaits.REPEATED if read_waits == 2 else DataWaits.MEASURED)
    if read_waits == 1:
        assert repeated == measured
    # where waits are repeated, the device is begun before those of the accesses in the same block
    assert all(abs(one.total - other.total) <= other.total // 1000 for one, other in zip(*found, strict=True))


def test_a_core_sleeps_only_while_it_waits_for_the_interrupt(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device takes as long either way; the driver that looks for the end again and again is awake meanwhile."""
    created = WooflesModel.__init__
    monkeypatch.setattr(WooflesModel, "__init__", lambda self: created(self, SLOW))
    (polled,), (slept,) = durations(compiled(0)), durations(compiled(1))
    for found in (polled, slept):
        check(found)
        busy = sum((each.done or 0) - (each.begun or 0) for each in found.commands)
        assert busy >= 2 * SLOW.command
        assert found.waited >= busy * 9 // 10
    assert polled.waits[0].asleep == 0
    assert slept.waits[0].asleep > 9 * slept.waits[0].awake
    assert abs(slept.total - polled.total) < polled.total // 50


def test_a_firmware_without_devices_is_work_alone(compiled: Compiled) -> None:
    del compiled
    network = ferrule.Network("alone")
    network.add_input(int8_input("x", 1, SIZE))
    network.set_outputs([network.add_tanh_layer("x", name="core")])
    firmware = ferrule.compile(network)
    (found,) = durations(firmware)
    assert found == Duration(total=found.work, work=found.work, asleep=0)
    report = firmware.run([X])
    # the link counts from the call to the return, by a counter that it reads
    assert 0 <= report.count.per_inference - found.total < 50


class _Silent:
    """A line that nobody is connected to."""

    def set(self, level: bool) -> None:
        del level


def test_waits_that_end_by_their_limit_are_counted(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    """No interrupt comes: each wait takes its whole limit, which the elapsed time has, and its counts say why."""
    attach, created = WooflesModel.attach, WooflesModel.__init__
    monkeypatch.setattr(WooflesModel, "__init__", lambda self: created(self, SLOW))
    (healthy,) = durations(compiled(1))

    def cut(self: WooflesModel, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        attach(self, bus=bus, irq=None if irq is None else _Silent())

    monkeypatch.setattr(WooflesModel, "attach", cut)
    (found,) = durations(compiled(1))
    check(found)
    (wait,) = found.waits
    assert wait.waits == wait.limited == 2
    assert wait.late > 3 * healthy.total
    assert abs(found.total - wait.late - healthy.total) < healthy.total // 50
    assert found.work < healthy.work * 11 // 10, "by instructions alone it seems as fast as the healthy one"


# ---- reports


def test_a_report_states_the_time_with_its_parts(compiled: Compiled) -> None:
    """With both clocks: the parts add up, the layers and the commands are within, and only cycles are milliseconds."""
    firmware = compiled(1)
    for clock in Clock:
        report = firmware.run([np.concatenate([X, X])], clock=clock)
        part = report.duration
        assert (part.unit, part.modelled) == (clock.value, clock is Clock.CYCLES)
        assert part.elapsed == part.work + part.asleep + sum(each.awake + each.asleep for each in part.waits)
        assert [each.layer for each in part.layers] == ["first", "core", "last"]
        assert [each.layer for each in part.commands] == ["first", "last"]
        assert len(part.pauses) == sum(each.waits for each in part.waits) == 2
        assert part.longest is not None
        assert part.longest >= part.elapsed > report.count.per_inference // 2
        core = [each for each in report.timeline if each.track == "core"]
        assert [each.end - each.start for each in core] == [each.elapsed for each in part.layers]
        assert all(each.exact for each in report.timeline)
        if clock is Clock.CYCLES:
            assert part.milliseconds == 1e3 * part.elapsed / firmware.board.clock_hz
            assert report.count.unit == "cycles"
        else:
            assert part.milliseconds is None


def test_a_late_device_is_flagged(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are right, and so the verdict is; the time has a conclusion of its own, on each kind of page."""
    attach = WooflesModel.attach
    monkeypatch.setattr(WooflesModel, "attach", lambda self, *, bus=None, irq=None: attach(self, bus=bus, irq=_of(irq)))
    created = WooflesModel.__init__
    monkeypatch.setattr(WooflesModel, "__init__", lambda self: created(self, SLOW))
    document = compiled(1).run([X]).document
    assert document.verdict is Verdict.EXACT
    (conclusion,) = document.duration.conclusions()
    assert conclusion.words == "device npu0 is late"
    for text in (markdown_text([document]), html_page(document)):
        assert "2 of 2 waits for npu0 ended by the limit although the work was done" in text
    trace = json.loads(trace_text([document]))
    waits = [each for each in trace["traceEvents"] if each.get("name") == "wait for npu0"]
    assert sum(each["dur"] for each in waits) == document.duration.waits[0].total


def _of(irq: InterruptLine | None) -> InterruptLine | None:
    return None if irq is None else _Silent()


def test_a_deadline_is_judged_on_both_sides(compiled: Compiled) -> None:
    firmware = compiled(1)
    took = firmware.run([X], clock=Clock.CYCLES).duration.milliseconds
    assert took is not None
    beyond, within = (firmware.run([X], deadline_s=took * factor / 1e3).duration for factor in (0.99, 2))
    assert beyond.judgement is Judgement.MISSED
    assert within.judgement is (Judgement.UNPROVED if within.error is None else Judgement.KEPT)
    assert within.unit == "cycles", "a deadline asks for time"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"deadline_s": 0}, "the deadline is 0, expected seconds above 0"),
        ({"deadline_s": float("nan")}, "the deadline is nan, expected seconds above 0"),
        ({"deadline_s": 1, "clock": Clock.INSTRUCTIONS}, "the clock instructions states no milliseconds"),
        ({"deadline_s": 1, "engine": "qemu"}, "the deadline needs the time of an inference, which cannot be told"),
        ({"clock": Clock.CYCLES, "engine": "qemu"}, "engine qemu has no model of a core's cycles"),
        ({"battery": parse_battery("220mAh")}, "the battery 220mAh needs a rate of inferences to last for"),
        (
            {"battery": parse_battery("220mAh"), "rate": parse_rate("1/s")},
            "how long the battery 220mAh lasts is not known: board mps2-an386 states no currents",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(asked: dict[str, Any], message: str) -> None:
    board = load_board("mps2-an386")
    with pytest.raises(FerruleError, match=re.escape(message)):
        RunRequest(**asked).clock_for(board, engine(asked.get("engine", "unicorn")))


def test_the_time_of_kws_with_an_npu_adds_up(models: Path) -> None:
    """By interrupt: the core is asleep while the device works, which the count of instructions hides."""
    npu = Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": 1})
    job = ferrule.Job(backends=["Woofles", "CpuAcc"], devices=[npu])
    firmware = ferrule.compile(models / "kws_ref_model.tflite", job)
    for clock in Clock:
        report = firmware.run(clock=clock)
        part = report.duration
        assert part.elapsed is not None
        (wait,) = part.waits
        assert part.elapsed == part.work + part.asleep + wait.awake + wait.asleep
        outside = part.elapsed - sum(each.elapsed for each in part.layers)
        assert 0 < outside < 1_000
        assert wait.waits == len(part.commands) == 6
        assert wait.asleep > 150_000
        busy = sum((each.done or 0) - (each.begun or 0) for each in part.commands)
        work = report.devices[0].work
        assert work is not None
        assert busy == work.busy
        # the counter stops while the core sleeps; reading it takes some instructions
        assert abs(report.count.per_inference - (part.elapsed - wait.asleep)) < 100
