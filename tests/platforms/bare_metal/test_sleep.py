# SPDX-License-Identifier: Apache-2.0
"""Waits on emulated cores: the core sleeps, an interrupt or the deadline wakes it, and no interrupt is overlooked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gate import every
from guest import build_guest
from needs import require_module

from ferrule import resources
from ferrule._typing import override
from ferrule.boards import load_board
from ferrule.devices import DeviceModel
from ferrule.emulation import Machine, engine
from ferrule.emulation.engine import AttachedDevice
from ferrule.link.protocol import Status

pytestmark = [pytest.mark.cc, pytest.mark.emu]
FOLDER = Path(__file__).parent / "firmware"
ROOT = resources.root()
BASE, LINE, CLOCK_HZ = 0xA000_0000, 28, 25_000_000
CYCLES_PER_US = CLOCK_HZ // 1_000_000
TIMER = "sdk/ferrule/architectures/cortex_m/bare_metal/timer.c"
SLEEP = "include/ferrule/sleep.h"
SOURCES = ("src_c/device/device.c", "src_c/device/command.c", "platforms/bare_metal/src/bare_metal.c", TIMER)
INFERENCE_US = 53_000


class Alarm(DeviceModel):
    """Raises its interrupt the written number of cycles after the write; a 0 lowers it."""

    def __init__(self) -> None:
        super().__init__()
        self._left: int | None = None

    @property
    @override
    def size_bytes(self) -> int:
        return 4

    @override
    def reset(self) -> None:
        self._left = None

    @override
    def read(self, offset: int, width: int) -> int:
        return 0

    @override
    def write(self, offset: int, width: int, value: int) -> None:
        self._left = value or None
        self.irq.set(False)

    @override
    def advance(self, cycles: int) -> None:
        if self._left is not None:
            self._left -= cycles
            if self._left <= 0:
                self._left = None
                self.irq.set(True)

    @override
    def next_event(self) -> int | None:
        return self._left


class Firmware:
    """The running test firmware."""

    def __init__(self, channel: object) -> None:
        self._channel = channel

    def ask(self, command: str, first: int, second: int, words: int) -> tuple[int, ...]:
        """Send a command, and return the words of its answer."""
        self._channel.write(command.encode() + struct.pack("<II", first, second))  # type: ignore[attr-defined]
        data = b""
        for _ in range(4 * words):
            if len(data) < 4 * words:
                data += self._channel.read(4 * words - len(data), 10.0)  # type: ignore[attr-defined]
        assert len(data) == 4 * words, "the firmware does not answer"
        return struct.unpack(f"<{words}i", data)

    def missed(self, longest: int, timeout_us: int) -> int:
        """Return how many waits the interrupt did not end."""
        return self.ask("s", longest, timeout_us, 1)[0]

    def wait(self, cycles: int, timeout_us: int, command: str = "w") -> tuple[int, int, int, int]:
        """Return the status of a wait, its microseconds, its cycles, and its executed instructions."""
        status, us, passed, executed = self.ask(command, cycles, timeout_us, 4)
        return status, us, passed, executed


def built(compiler: str, folder: Path, board: str = "mps2-an385", *mutations: tuple[str, str, str]) -> Machine:
    """Return a machine with the firmware, after changes of files: each is a path, the old and the new text."""
    changed = {}
    for path, old, new in mutations:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        changed[path] = folder / "changed" / path.removeprefix("include/")
        changed[path].parent.mkdir(parents=True)
        changed[path].write_text(text.replace(old, new), encoding="utf-8")
    flags = [
        f"-I{folder / 'changed'}",
        f"-I{ROOT / 'platforms' / 'bare_metal' / 'include'}",
        *(f"-DFERRULE_CLOCK_HZ={CLOCK_HZ}u", f"-DALARM_BASE={BASE:#x}u", f"-DALARM_LINE={LINE}u"),
        *(str(changed.get(source, ROOT / source)) for source in SOURCES),
    ]
    return build_guest(compiler, "sleep", load_board(board), folder / "sleep.elf", FOLDER, flags)


@contextmanager
def running(machine: Machine, name: str = "unicorn") -> Iterator[Firmware]:
    require_module("unicorn", "pip install 'ferrule[run]'")
    device = AttachedDevice(name="npu0", model=Alarm(), address=BASE, interrupt=LINE)
    devices = (device,) if name == "unicorn" else ()
    with engine(name).start(Machine(board=machine.board, elf=machine.elf, devices=devices)) as session:
        yield Firmware(session.channel())


@pytest.fixture(scope="module")
def firmware(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return built(arm_gcc, tmp_path_factory.mktemp("sleep"))


def check_interrupt(firmware: Firmware) -> None:
    """The core sleeps until the interrupt."""
    status, us, passed, executed = firmware.wait(INFERENCE_US * CYCLES_PER_US, 1_000_000)
    assert status == Status.OK
    assert INFERENCE_US <= us < INFERENCE_US + 50
    assert passed >= INFERENCE_US * CYCLES_PER_US
    assert executed < passed / 100


def check_notified_before(firmware: Firmware) -> None:
    """A notification before the wait ends it at once, and counts once."""
    status, us, _, _ = firmware.wait(0, 5_000, "n")
    assert (status, us < 50) == (Status.OK, True)
    assert firmware.wait(0, 5_000)[0] == Status.TIMEOUT


def check_deadline(firmware: Firmware) -> None:
    """The core wakes at the deadline, whether it comes before or after the end of SysTick's period, and sleeps."""
    for timeout_us in (1, 100, 3_000, 400_000, 671_500, 1_500_000):
        status, us, passed, executed = firmware.wait(0, timeout_us)
        assert status == Status.TIMEOUT
        assert timeout_us <= us < timeout_us + 150
        assert abs(passed - us * CYCLES_PER_US) < 1_000
        assert executed < max(passed / 100, 1_500)


def check_no_interrupt_is_missed(firmware: Firmware) -> None:
    """The interrupt may come at any instruction between the look and the sleep."""
    assert firmware.missed(400, 2_000) == 0


def check_all(firmware: Firmware) -> None:
    for check in (check_interrupt, check_notified_before, check_deadline, check_no_interrupt_is_missed):
        check(firmware)


def test_it_sleeps(firmware: Machine) -> None:
    with running(firmware) as core:
        check_all(core)


def test_the_armv8_core_sleeps(arm_gcc: str, tmp_path: Path) -> None:
    with running(built(arm_gcc, tmp_path, "mps2-an505")) as core:
        check_interrupt(core)
        check_deadline(core)


def test_the_counter_shares_systick(firmware: Machine, qemu: str) -> None:
    """Under qemu, CYCCNT does not count, so the counter uses SysTick, whose period the wait shortens."""
    assert qemu
    with running(firmware, "qemu") as core:
        source, counted, us = core.ask("c", 0, 3_000, 3)
    assert source == 2  # FERRULE_COUNTER_TIMER
    assert us >= 3_000
    assert 3_000 * CYCLES_PER_US <= counted <= (us + 1) * CYCLES_PER_US


MUTANTS = {
    "not masked": (SLEEP, "const uint32_t masked = ferrule_port_critical_enter();", "const uint32_t masked = 0;"),
    "forgotten before": (
        SLEEP,
        "const uint32_t begin = ferrule_port_now_us();",
        "const uint32_t begin = ferrule_port_now_us();\n    *notified = false;",
    ),
    "not forgotten after": (SLEEP, "*notified = false;\n            ferrule_port", "ferrule_port"),
    "no alarm": (SLEEP, "ferrule_port_alarm(timeout_us - passed);", ""),
    "late alarm": (TIMER, "cycles >= systick.ends - now", "true"),
    "uncounted period": (TIMER, "systick.ends += PERIOD;\n    (void)", "(void)"),
    "uncounted alarm": (TIMER, "systick.ends = now + cycles;", ""),
    "no sleep": (SLEEP, "ferrule_port_sleep(masked);", "ferrule_port_critical_exit(masked);"),
}


@pytest.mark.parametrize("name", every(4, MUTANTS))
def test_a_mutant_is_noticed(name: str, arm_gcc: str, tmp_path: Path) -> None:
    with running(built(arm_gcc, tmp_path, "mps2-an385", MUTANTS[name])) as core, pytest.raises(AssertionError):
        check_all(core)
