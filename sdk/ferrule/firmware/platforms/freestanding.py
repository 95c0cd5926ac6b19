# SPDX-License-Identifier: Apache-2.0
"""What projects with Ferrule's own start-up code have in common, on bare metal and on kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from ferrule.backends.contribution import SELF_TEST, UART_DRIVERS, Contribution
from ferrule.codegen import DeviceUse
from ferrule.errors import FerruleError
from ferrule.firmware import seal
from ferrule.firmware.compile_commands import editor_compiler
from ferrule.firmware.linker import linker_script
from ferrule.firmware.mlperf_tiny import VENDOR, is_runner, runner_values
from ferrule.firmware.plan import SCRIPT_NAME, SourceSet
from ferrule.firmware.platforms.library import (
    LOCK,
    Library,
    devices_header,
    model_files,
    model_sources,
    shared_values,
)
from ferrule.firmware.platforms.platform import MODEL_FOLDER, SEAL, ProjectRequest
from ferrule.firmware.template import rendered
from ferrule.firmware.toolchain import WARNINGS, toolchain
from ferrule.firmware.uart import UartDriver, uart_driver
from ferrule.firmware.wires import WireUse, wires
from ferrule.reading import read_bytes

BOARD_FOLDER = "board"
MAIN = "main.c"
_INTERRUPT_LINES = 128
"""FERRULE_INTERRUPT_LINES in ferrule/platform/interrupt.h."""


def uart_lines(request: ProjectRequest) -> tuple[Contribution, ...]:
    """Return the transport and the drivers of the UARTs that devices are behind; nothing without such a device."""
    lines = [driver.contribution for _, driver in line_drivers(request)]
    return (UART_DRIVERS.part("uart_transport"), *lines) if lines else ()


def line_drivers(request: ProjectRequest) -> tuple[tuple[WireUse, UartDriver], ...]:
    """Return the devices behind UARTs, each with the driver of its UART; FerruleError if there is none."""
    return tuple((wire, uart_driver(request.board, wire.uart)) for wire in wires(request.program, request.board))


def device_interrupts(request: ProjectRequest) -> tuple[DeviceUse, ...]:
    """Return the devices whose drivers wait for an interrupt.

    Raises:
        FerruleError: two devices share an interrupt, or the vector table has no entry for it.
    """
    owners: dict[int, DeviceUse] = {}
    for use in request.program.devices:
        line = use.driver.interrupt
        if line is None:
            continue
        if line in owners:
            raise FerruleError(
                f"devices '{owners[line].device.name}' and '{use.device.name}' both have interrupt {line}"
            )
        if line >= _INTERRUPT_LINES:
            raise FerruleError(
                f"device '{use.device.name}' has interrupt {line}, the vector table has 0 to {_INTERRUPT_LINES - 1}"
            )
        owners[line] = use
    return tuple(owners.values())


def freestanding_library(request: ProjectRequest, runtime: Contribution, *own: Contribution) -> Library:
    """Return the contributions of a project: the model's, the run time, start-up, and the platform's `own`."""
    board, tested = request.board, SELF_TEST if request.self_test else ()
    common = (runtime, board.architecture.startup_for(board.cache_line_bytes), uart_driver(board).contribution)
    return Library.of(*request.program.contributions, *common, *own, *tested)


def code_of(request: ProjectRequest, library: Library, own: Iterable[str] = ()) -> SourceSet:
    """Return the C files of a project in the order in which all tools link; `own` are the platform's."""
    program = request.program
    glue = (*(("devices.c",) if program.devices else ()), *((LOCK,) if program.arena else ()))
    here = (".",) if program.devices else ()
    return library.code((*model_sources(program), *own, *glue), *here, MODEL_FOLDER, first=(MAIN,))


def project_values(request: ProjectRequest, code: SourceSet, adapter: str) -> dict[str, object]:
    """Return the values of the templates of a project; `adapter` names the header of its device adapter."""
    board = request.board
    chosen = toolchain(request.toolchain)
    level = request.optimization
    interrupts, lines = device_interrupts(request), line_drivers(request)
    return {
        **shared_values(request),
        "runner": runner_values(request.app, request.program, board) if is_runner(request.app) else None,
        "vendor": VENDOR,
        "driver": uart_driver(board),
        "interrupts": interrupts,
        "names": [use.name for use in request.program.devices],
        "vendors": any(use.driver.power for use in request.program.devices),
        "setups": board.setup_for(
            {board.link_uart.name, board.console_uart.name, *(wire.uart.name for wire, _ in lines)}
        ),
        "wires": {wire.use.name: (wire, uart) for wire, uart in lines},
        "device_headers": sorted(
            {use.driver.header for use in request.program.devices}
            | {f"ferrule/platform/{adapter}.h"}
            | ({"ferrule/platform/interrupt.h"} if interrupts else set())
            | ({"ferrule/drivers/uart_transport.h", "ferrule/transport.h"} if lines else set())
            | {uart.header for _, uart in lines}
        ),
        "toolchain": chosen,
        **asdict(code),
        "script": SCRIPT_NAME,
        "core_flags": tuple(flag for flag in chosen.compile_flags(board, level) if not flag.startswith("-O")),
        "target_flags": chosen.target_flags(board),
        "editor_compiler": editor_compiler(chosen, board, chosen.portable_command),
        "warnings": WARNINGS,
        "link_flags": tuple(
            flag for flag in chosen.link_flags(board, level, runtime=True) if not flag.startswith("-O")
        ),
        "libraries": chosen.libraries,
        "kernel": None,
    }


def shared_files(
    request: ProjectRequest, library: Library, values: Mapping[str, object], lock: str
) -> dict[str, bytes]:
    """Return the generated files that every such project has; `lock` is the template of a shared arena's lock."""
    program, board = request.program, request.board
    templates = {"ferrule.cmake": "bare_metal/ferrule.cmake.j2", "toolchain.cmake": "bare_metal/toolchain.cmake.j2"}
    if program.devices:
        templates |= {"devices.c": "bare_metal/devices.c.j2", devices_header(program): "bare_metal/devices.h.j2"}
    if program.arena:
        templates[LOCK] = lock
    return {
        **model_files(program),
        **library.files,
        **{f"{BOARD_FOLDER}/{board.path_among_boards(path).as_posix()}": read_bytes(path) for path in board.files},
        SCRIPT_NAME: linker_script(board).encode(),
        **rendered(values, templates),
        **({SEAL: read_bytes(Path(seal.__file__))} if request.self_test else {}),
    }
