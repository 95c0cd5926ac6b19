# SPDX-License-Identifier: Apache-2.0
"""The times of runs on unicorn: their parts add up to the unit, and a device that is broken shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from needs import require_module
from small_networks import int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles.model import Timing, WooflesModel
from ferrule.devices import Bus, InterruptLine
from ferrule.running.session import RunningFirmware
from ferrule.timing import Duration

pytestmark = [pytest.mark.cc, pytest.mark.emu]

SCALE = ferrule.Quantization.of(1.0)
SIZE = 16
X = np.arange(-8, 8, dtype=np.int8).reshape(1, SIZE)
SLOW = Timing(command=50_000)
Compiled = Callable[[int], ferrule.Firmware]


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

    def build(use_interrupt: int) -> ferrule.Firmware:
        devices = [Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": use_interrupt})]
        return ferrule.compile(network, backends=["Woofles", "CpuAcc"], devices=devices)

    return build


def durations(firmware: ferrule.Firmware, *, runs: int = 1) -> list[Duration]:
    """Return the times of some runs."""
    with RunningFirmware(firmware) as running:
        running.session.durations()  # the firmware has made a run of its own before it answers
        for _ in range(runs):
            running.run([X])
        found = running.session.durations()
        assert found is not None
        assert not running.session.durations(), "they are taken once"
    assert len(found) == runs
    return list(found)


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
