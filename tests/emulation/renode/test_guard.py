# SPDX-License-Identifier: Apache-2.0
"""The memory that a device may access in Renode, and how Renode is told."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from copier import Copier

from ferrule.boards import load_board
from ferrule.devices import BusError, DeviceFaultError, MemoryBus, Range
from ferrule.emulation import AttachedDevice
from ferrule.emulation.renode import RenodeError
from ferrule.emulation.renode.guard import BoardBus, BoardModel
from ferrule.emulation.renode.install import find_renode, flavour, release
from ferrule.emulation.renode.script import bridged_entry, cosimulated_entry, machine_commands, platform_text

BOARD = load_board("mps2-an386")
RAM = 0x2000_0000


def memory() -> BoardBus:
    bus = MemoryBus()
    bus.add(0, np.zeros(0x1000, np.uint8))
    bus.add(RAM, np.zeros(0x1000, np.uint8))
    return BoardBus(bus, BOARD)


def test_memory_of_the_board_is_reached() -> None:
    bus = memory()
    bus.write(RAM, b"abc")
    assert bus.read(RAM, 3) == b"abc"
    assert bytes(bus.view(RAM, 3)) == b"abc"
    assert bus.read(0, 2) == b"\0\0"


@pytest.mark.parametrize(("address", "size"), [(0x7000_0000, 4), (RAM - 2, 4), (0x2040_0000 - 2, 4)])
def test_what_is_no_memory_is_refused(address: int, size: int) -> None:
    for access in (memory().read, memory().view):
        with pytest.raises(BusError, match="not in one memory of the board"):
            access(address, size)


def test_flash_is_not_written() -> None:
    with pytest.raises(BusError, match="read-only"):
        memory().write(0, b"x")
    with pytest.raises(BusError, match="read-only"):
        memory().view(0, 1, writable=True)


def guarded(*ranges: Range) -> BoardModel:
    device = AttachedDevice(name="npu", model=Copier(RAM, RAM + 0x100), address=0xA000_0000, ranges=ranges)
    model = BoardModel(device, BOARD)
    bus = MemoryBus()
    bus.add(RAM, np.zeros(0x1000, np.uint8))
    model.attach(bus=bus)
    return model


def test_dma_within_its_buffers_is_no_failure() -> None:
    model = guarded(Range(name="workspace", address=RAM, size_bytes=0x200))
    model.write(0, 4, 0)
    assert model.failure is None


def test_dma_outside_of_its_buffers_names_the_register() -> None:
    model = guarded(Range(name="workspace", address=RAM, size_bytes=0x110))
    with pytest.raises(DeviceFaultError):
        model.write(0, 4, 0)
    assert model.failure is not None
    assert "device npu: DMA outside of" in str(model.failure)
    assert "a write of 0x0 to offset 0x0" in str(model.failure)


def test_the_first_failure_is_kept() -> None:
    model = guarded()
    for offset in (8, 12):
        with pytest.raises(BusError):
            model.read(offset, 4)
    assert "no register at 0x8" in str(model.failure)


DEVICE = AttachedDevice(name="npu", model=Copier(), address=0xA000_0000, interrupt=28)


def test_the_bridge_in_the_platform() -> None:
    text = platform_text(BOARD, [partial(bridged_entry, DEVICE, 4000)])
    assert text.splitlines()[0] == 'using "mps2-an386.repl"'
    assert "npu: Miscellaneous.FerruleBridge @ sysbus 0xa0000000" in text
    assert "    IRQ -> nvic@28" in text


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ((1, 16), ["npu: CoSimulated.CoSimulatedPeripheral @ sysbus <0xa0000000, +0x1000>", "    frequency: 0"]),
        ((1, 15), ["npu: Verilated.VerilatedPeripheral @ sysbus <0xa0000000, +0x1000>", "    numberOfInterrupts: 1"]),
    ],
)
def test_co_simulation_in_the_platform(found: tuple[int, int], lines: list[str]) -> None:
    text = platform_text(BOARD, [partial(cosimulated_entry, DEVICE, found)])
    assert set(lines) | {"    0 -> nvic@28", '    address: "127.0.0.1"'} <= set(text.splitlines())


@pytest.mark.parametrize("found", [(1, 16), (1, 15)])
def test_ticks_in_the_platform(found: tuple[int, int]) -> None:
    lines = platform_text(BOARD, [partial(cosimulated_entry, DEVICE, found, ticks=True)]).splitlines()
    clock = [line for line in lines if line.startswith(("    frequency:", "    limitBuffer:"))]
    assert clock == ["    frequency: 25000000", "    limitBuffer: 1000"]


def test_commands() -> None:
    commands = machine_commands(BOARD, bridged=True, terminals={"uart0": 3456})
    assert commands[0] == "include @FerruleBridge.cs"
    assert "sysbus.cpu PerformanceInMips 25" in commands
    assert commands[-1] == "connector Connect sysbus.uart0 uart0_terminal"
    assert not any("include" in command for command in machine_commands(BOARD, bridged=False, terminals={}))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Renode, version 1.16.1 (d66b0c2a-local)", (1, 16)),
        ("Renode, version 1.15.3.0 (x)", (1, 15)),
        ("version: 2.0", (2, 0)),
    ],
)
def test_releases(text: str, found: tuple[int, int]) -> None:
    assert release(text) == found


@pytest.mark.parametrize(
    ("text", "message"), [("", "does not report"), ("Renode, version 1.9.0", r"this is Renode 1\.9")]
)
def test_no_release(text: str, message: str) -> None:
    with pytest.raises(RenodeError, match=message):
        release(text)


def test_flavours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "renode"
    for content, found in (
        (b"\x7fELF..", "portable"),
        (b"exec dotnet x", ".NET"),
        (b"mono x", "Mono"),
        (b"", "unknown"),
    ):
        program.write_bytes(content)
        assert flavour(program) == found
    assert flavour(tmp_path / "nowhere") == "unknown"
    program.chmod(0o755)
    monkeypatch.delenv("RENODE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_renode() == program.resolve()
