# SPDX-License-Identifier: Apache-2.0
"""Projects without an operating system: start-up, linker script, make and CMake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.backends.contribution import (
    BARE_METAL,
    MLPERF_TINY,
    RUNTIME,
    SELF_TEST,
    UART_DRIVERS,
    Contribution,
    startup,
)
from ferrule.boards import Board, Peripheral
from ferrule.codegen import DeviceUse, Program
from ferrule.errors import FerruleError
from ferrule.firmware import seal
from ferrule.firmware.compile_commands import editor_compiler
from ferrule.firmware.linker import linker_script
from ferrule.firmware.mlperf_tiny import is_runner, runner_values
from ferrule.firmware.plan import SCRIPT_NAME
from ferrule.firmware.platforms.library import (
    LOCK,
    POWER,
    Library,
    devices_header,
    link_of,
    main_headers,
    model_files,
    model_sources,
)
from ferrule.firmware.platforms.platform import MODEL_FOLDER, SEAL, Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.template import render
from ferrule.firmware.toolchain import THIRD_PARTY_WARNINGS, WARNINGS, check_optimization, toolchain
from ferrule.firmware.uart import UartDriver, uart_driver
from ferrule.firmware.wires import WireUse, wires
from ferrule.reading import read_bytes

BOARD_FOLDER = "board"
MAIN = "main.c"
_INTERRUPT_LINES = 128
"""FERRULE_INTERRUPT_LINES in ferrule/platform/interrupt.h."""


@dataclass(frozen=True, slots=True)
class BareMetalPlatform(Platform):
    """A program without an operating system: `main` runs the model once and then serves the link forever."""

    @property
    @override
    def name(self) -> str:
        return "bare-metal"

    @property
    @override
    def title(self) -> str:
        return "no operating system: a Makefile, a CMakeLists.txt, start-up code and a linker script"

    @property
    @override
    def tools(self) -> None:
        return None

    @override
    def link_uart(self, program: Program, board: Board) -> Peripheral:
        return board.link_uart

    @override
    def files(self, request: ProjectRequest) -> ProjectFiles:
        program, board = request.program, request.board
        library = Library.of(
            *program.contributions,
            RUNTIME,
            MLPERF_TINY if is_runner(request.app) else link_of(program),
            startup(board.cache_line_bytes),
            uart_driver(board).contribution,
            *_adapter(request),
            *(SELF_TEST if request.self_test else ()),
        )
        glue = (*(("devices.c",) if program.devices else ()), *((LOCK,) if program.arena else ()))
        sources = (
            MAIN,
            *sorted((*library.sources, *model_sources(program), *glue)),
        )  # the order in which all tools link
        include_dirs = (*((".",) if program.devices else ()), MODEL_FOLDER, *library.include_dirs)
        values = _values(request, library, sources, include_dirs)
        generated = {
            **model_files(program),
            **library.files,
            **_board_files(board),
            SCRIPT_NAME: linker_script(board).encode(),
            "ferrule.mk": _rendered("ferrule.mk.j2", values),
            "ferrule.cmake": _rendered("ferrule.cmake.j2", values),
            "toolchain.cmake": _rendered("toolchain.cmake.j2", values),
        }
        if request.self_test:
            generated |= {SEAL: read_bytes(Path(seal.__file__))}
        if program.devices:
            generated |= {
                "devices.c": _rendered("devices.c.j2", values),
                devices_header(program): _rendered("devices.h.j2", values),
            }
        if program.arena:
            generated[LOCK] = _rendered("arena_lock.c.j2", values)
        return ProjectFiles(
            generated=generated,
            starters={
                MAIN: _rendered("main.c.j2", values),
                "Makefile": _rendered("Makefile.j2", values),
                "CMakeLists.txt": _rendered("CMakeLists.txt.j2", values),
                "README.md": _rendered("README.md.j2", values),
                **({POWER: _rendered(f"{POWER}.j2", values)} if program.devices else {}),
            },
            contributions=library.contributions,
            sources=sources,
            third_party=library.third_party,
            include_dirs=include_dirs,
            system_include_dirs=library.system_include_dirs,
            defines=library.defines,
            board_folder=f"{BOARD_FOLDER}/{board.name}",
            build_hint="make -C {folder}",
        )


def _adapter(request: ProjectRequest) -> tuple[Contribution, ...]:
    """Return the adapter of the device API and its clock, with interrupts and serial lines if drivers need them.

    A core without a cycle counter gets the clock alone: it counts beyond the 24 bits of SysTick.
    """
    clock = {"FERRULE_CLOCK_HZ": f"{request.board.clock_hz}u"}
    if not request.program.devices:
        return (replace(BARE_METAL.part("systick"), defines=clock),) if request.board.cpu.features.baseline else ()
    lines = [driver.contribution for _, driver in _wires(request)]
    adapter = BARE_METAL.part("bare_metal", "systick", *(("interrupt",) if _interrupts(request) else ()))
    return (
        replace(adapter, defines=clock),
        *((UART_DRIVERS.part("uart_transport"), *lines) if lines else ()),
    )


def _wires(request: ProjectRequest) -> tuple[tuple[WireUse, UartDriver], ...]:
    """Return the devices behind UARTs, each with the driver of its UART.

    Raises:
        FerruleError: the driver cannot report whether the transmitter can accept a byte, so a write could wait forever.
    """
    found = tuple((wire, uart_driver(request.board, wire.uart)) for wire in wires(request.program, request.board))
    for wire, driver in found:
        if not driver.tells_room:
            raise FerruleError(
                f"device '{wire.use.device.name}' can't be behind {wire.uart.name}: the driver {driver.header} has no "
                f"{driver.prefix}_can_write, without which a write may wait forever"
            )
    return found


def _interrupts(request: ProjectRequest) -> tuple[DeviceUse, ...]:
    """Return the devices whose drivers wait for an interrupt.

    Raises:
        FerruleError: two devices share an interrupt, or the vector table has no entry for it.
    """
    uses = tuple(use for use in request.program.devices if use.driver.interrupt is not None)
    owners: dict[int, str] = {}
    for use in uses:
        line = use.driver.interrupt
        assert line is not None
        if line in owners:
            raise FerruleError(f"devices '{owners[line]}' and '{use.device.name}' both have interrupt {line}")
        if line >= _INTERRUPT_LINES:
            raise FerruleError(
                f"device '{use.device.name}' has interrupt {line}, the vector table has 0 to {_INTERRUPT_LINES - 1}"
            )
        owners[line] = use.device.name
    return uses


def _rendered(template: str, values: Mapping[str, object]) -> bytes:
    return render(f"bare_metal/{template}", **values).encode()


def _values(
    request: ProjectRequest, library: Library, sources: tuple[str, ...], include_dirs: tuple[str, ...]
) -> dict[str, object]:
    board = request.board
    chosen = toolchain(request.toolchain)
    level = check_optimization(request.optimization)
    return {
        "version": VERSION,
        "main_headers": main_headers(request.program),
        "program": request.program,
        "runner": runner_values(request.app, request.program, board) if is_runner(request.app) else None,
        "board": board,
        "driver": uart_driver(board),
        "interrupts": _interrupts(request),
        "names": [use.name for use in request.program.devices],
        "vendors": any(use.driver.power for use in request.program.devices),
        "setups": board.setup_for(
            {board.link_uart.name, board.console_uart.name, *(wire.uart.name for wire, _ in _wires(request))}
        ),
        "wires": {wire.use.name: (wire, uart) for wire, uart in _wires(request)},
        "device_headers": sorted(
            {use.driver.header for use in request.program.devices}
            | {"ferrule/platform/bare_metal.h"}
            | ({"ferrule/platform/interrupt.h"} if _interrupts(request) else set())
            | ({"ferrule/drivers/uart_transport.h", "ferrule/transport.h"} if _wires(request) else set())
            | {uart.header for _, uart in _wires(request)}
        ),
        "seal": SEAL if request.self_test else "",
        "toolchain": chosen,
        "sources": sources,
        "third_party": library.third_party,
        "include_dirs": include_dirs,
        "system_include_dirs": library.system_include_dirs,
        "defines": library.defines,
        "script": SCRIPT_NAME,
        "core_flags": tuple(flag for flag in chosen.compile_flags(board, level) if not flag.startswith("-O")),
        "target_flags": chosen.target_flags(board),
        "editor_compiler": editor_compiler(chosen, board, chosen.portable_command),
        "optimization": request.optimization,
        "warnings": WARNINGS,
        "third_party_warnings": THIRD_PARTY_WARNINGS,
        "link_flags": tuple(
            flag for flag in chosen.link_flags(board, level, runtime=True) if not flag.startswith("-O")
        ),
        "libraries": chosen.libraries,
    }


def _board_files(board: Board) -> dict[str, bytes]:
    """Return the board's files by path in the project; their relative positions are preserved."""
    return dict(_each_board_file(board))


def _each_board_file(board: Board) -> Iterator[tuple[str, bytes]]:
    for path in board.files:
        yield f"{BOARD_FOLDER}/{board.path_among_boards(path).as_posix()}", read_bytes(path)
