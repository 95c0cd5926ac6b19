# SPDX-License-Identifier: Apache-2.0
"""Renode's input: a platform description (.repl) with the devices, and the commands of a script (.resc)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ferrule.boards import Board, Dictionary, NewObject, Platform, Value, read_platform
from ferrule.emulation.crash import EngineError
from ferrule.emulation.engine import AttachedDevice
from ferrule.emulation.renode import bridge
from ferrule.reading import read_bytes
from ferrule.rendering.quoting import REPL_STRING

MACHINE = "ferrule"
"""The machine's name in Renode."""
PLATFORM_FILE = "machine.repl"
ELF_FILE = "firmware.elf"
QUANTUM_S = 0.001
"""Virtual time between two synchronisations of the core with the rest of the emulation."""
COSIMULATION_TIMEOUT_MS = 60_000
TICK_CYCLES = 1000
"""Cycles of the board's clock between two ticks of the co-simulation socket; each tick is a round trip."""
_NUMBER = r"(?:0[xX][0-9a-fA-F]+|[0-9]+)"
_RANGE = rf"<\s*{_NUMBER}\s*(?:,\s*\+?|\s)\s*{_NUMBER}\s*>"
_HARMLESS = re.compile(
    rf'(?:sysbus\s+)?(?:Tag\s*{_RANGE}\s*"[A-Za-z0-9_ .:/()-]*"(?:\s+{_NUMBER})?|SilenceRange\s*{_RANGE})'
)
"""The commands that Renode gets from scripts in platform descriptions."""
_NAMESPACES = frozenset(
    [
        *("Analog", "Bus", "CAN", "CPU", "DMA", "GPIOPort", "I2C", "I3C", "IRQControllers", "Input", "MTD", "Memory"),
        *("MemoryControllers", "Miscellaneous", "Network", "PCI", "SD", "SENT", "SPI", "Sensor", "Sensors", "Sound"),
        *("Timers", "UART", "USB", "USBDeprecated", "Video", "Wireless"),
    ]
)
"""Namespaces of Renode's classes without those that execute scripts or load libraries (Python, CoSimulated, ...)."""


Entry = Callable[[Board, str], str]
"""Returns a device's entry in the platform description of a board, whose interrupt controller has this name."""


def bridged_entry(device: AttachedDevice, port: int, board: Board, controller: str) -> str:
    """Return the entry of a device behind the bridge, whose model listens on a port."""
    lines = [
        f"{device.name}: {bridge.CLASS} @ sysbus {device.address:#010x}",
        f"    port: {port}",
        f"    size: {device.model.size_bytes:#x}",
        f"    frequency: {board.clock_hz}",
    ]
    if device.interrupt is not None:
        lines.append(f"    IRQ -> {controller}@{device.interrupt}")
    return "\n".join(lines) + "\n"


def cosimulated_entry(
    device: AttachedDevice, release: tuple[int, int], board: Board, controller: str, *, ticks: bool = False
) -> str:
    """Return the entry of a device behind Renode's own co-simulation socket.

    Before the release 1.16, its classes have other names and parameters. With `ticks`, Renode sends a tick every
    `TICK_CYCLES`.
    """
    where = f"@ sysbus <{device.address:#010x}, +{device.model.size_bytes:#x}>"
    common = ['    address: "127.0.0.1"', f"    timeout: {COSIMULATION_TIMEOUT_MS}"]
    clock = [f"    frequency: {board.clock_hz}", f"    limitBuffer: {TICK_CYCLES}"]
    if release >= (1, 16):
        lines = [f"{device.name}: CoSimulated.CoSimulatedPeripheral {where}", *common]
        lines += clock if ticks else ["    frequency: 0"]
        interrupts = "    cosimToRenodeSignalRange: <0, +1>"
    else:
        lines = [f"{device.name}: Verilated.VerilatedPeripheral {where}", *common, "    maxWidth: 32"]
        # its clock cannot be disabled; one tick per second of virtual time is negligible
        lines += clock if ticks else ["    frequency: 1", "    limitBuffer: 1"]
        interrupts = "    numberOfInterrupts: 1"
    if device.interrupt is not None:
        lines += [interrupts, f"    0 -> {controller}@{device.interrupt}"]
    return "\n".join(lines) + "\n"


def _single(platform: Platform, type_name: str) -> str:
    entries = platform.of_type(type_name)
    if len(entries) != 1:
        raise EngineError(f"{platform.file} has {len(entries)} entries of type {type_name}, one is expected")
    return entries[0].name


def check_platform(platform: Platform) -> None:
    """Raise EngineError for a description with which Renode could run code or open files.

    Renode executes the scripts of entries in its Monitor, which has Python and the commands of a shell, and some of its
    classes execute a script or load a library.
    """
    for entry in platform.entries.values():
        for line in (line for script in entry.scripts for line in script.lines):
            if _HARMLESS.fullmatch(line) is None:
                raise EngineError(
                    f"{entry.place}: the script of '{entry.name}' has the command '{line}', which is not passed on to "
                    "Renode",
                    hint="only Tag and SilenceRange are; set up registers in board.toml ([[setup]]) or in main.c",
                )
        values = [*entry.properties.values()]
        for place in entry.registrations:
            values += (place.point, *place.properties.values())
        for kind in (entry.type, *_classes(values)):
            if kind.partition(".")[0] not in _NAMESPACES:
                raise EngineError(
                    f"{entry.place}: '{entry.name}' is of class {kind}, which is not passed on to Renode",
                    hint=f"Renode gets classes of {', '.join(sorted(_NAMESPACES))}, which do not execute scripts",
                )


def _classes(values: Iterable[Value]) -> Iterator[str]:
    """Yield the classes of the objects within values."""
    for value in values:
        match value:
            case NewObject():
                yield value.type
                yield from _classes(value.properties.values())
            case Dictionary():
                yield from _classes(each for item in value.items for each in item)
            case tuple():
                yield from _classes(value)
            case _:
                pass


def core_name(board: Board) -> str:
    """Return the name of the board's core in its platform description."""
    return _single(read_platform(board.platform), board.architecture.platform.core)


def platform_text(board: Board, entries: Sequence[Entry]) -> str:
    """Return a platform description that extends the board's own with the devices."""
    controller = _single(read_platform(board.platform), board.architecture.platform.controller) if entries else ""
    parts = [
        f'using "{REPL_STRING.quote(board.path_for_renode(board.platform).as_posix())}"\n',
        *(each(board, controller) for each in entries),
    ]
    return "\n".join(parts)


EMULATION_COMMANDS = (
    "emulation SetSeed 1",
    f'emulation SetGlobalQuantum "{QUANTUM_S:g}"',
    "emulation SetGlobalAdvanceImmediately true",
    f'mach create "{MACHINE}"',
)
"""The commands that create an empty machine."""


def load_commands(board: Board, platform: str, elf: str) -> list[str]:
    """Return the commands that load a board and a firmware into the machine, from these paths."""
    core = core_name(board)
    return [
        f"machine LoadPlatformDescription {platform}",
        f"sysbus.{core} PerformanceInMips {max(1, round(board.clock_hz / 1e6))}",
        f"sysbus LoadELF {elf}",
        f"sysbus.{core} VectorTableOffset {board.memory(board.placement.code).address:#x}",
    ]


def machine_commands(board: Board, *, bridged: bool, terminals: Mapping[str, int]) -> list[str]:
    """Return the Monitor commands that create the machine and load the firmware without starting it.

    The core executes as many instructions per microsecond as its clock has cycles, so that one instruction takes one
    cycle of virtual time. `terminals` maps each UART that is made accessible to its port.
    """
    commands = [
        *([f"include @{bridge.SOURCE.name}"] if bridged else []),
        *EMULATION_COMMANDS,
        *load_commands(board, f"@{PLATFORM_FILE}", f"@{ELF_FILE}"),
    ]
    for uart, port in terminals.items():
        commands += [
            f'emulation CreateServerSocketTerminal {port} "{uart}_terminal" false',
            f"connector Connect sysbus.{uart} {uart}_terminal",
        ]
    return commands


def write_files(folder: Path, board: Board, entries: Sequence[Entry], elf: Path, *, bridged: bool) -> None:
    """Write the files that the commands name: platform descriptions and, if needed, the bridge and the firmware.

    Raises:
        EngineError: the board's platform description would make Renode run code.
    """
    check_platform(read_platform(board.platform))
    for file in board.files:
        if file.suffix == ".repl":
            target = folder / board.path_for_renode(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(read_bytes(file))
    (folder / PLATFORM_FILE).write_text(platform_text(board, entries), encoding="utf-8")
    if bridged:
        shutil.copyfile(bridge.SOURCE, folder / bridge.SOURCE.name)
    shutil.copyfile(elf, folder / ELF_FILE)
