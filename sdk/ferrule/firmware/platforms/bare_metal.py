# SPDX-License-Identifier: Apache-2.0
"""Projects without an operating system: start-up, linker script, make and CMake."""

from __future__ import annotations

from dataclasses import replace

from ferrule.backends.contribution import BARE_METAL, MLPERF_TINY, RUNTIME, Contribution
from ferrule.firmware.mlperf_tiny import is_runner
from ferrule.firmware.platforms.freestanding import (
    BOARD_FOLDER,
    MAIN,
    code_of,
    device_interrupts,
    freestanding_library,
    project_values,
    shared_files,
    uart_lines,
)
from ferrule.firmware.platforms.library import LOCK, POWER, link_of
from ferrule.firmware.platforms.platform import Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.template import rendered


def _files(request: ProjectRequest) -> ProjectFiles:
    program, board = request.program, request.board
    link = MLPERF_TINY if is_runner(request.app) else link_of(program)
    library = freestanding_library(request, RUNTIME, link, *_adapter(request))
    code = code_of(request, library)
    values = project_values(request, code, "bare_metal")
    starters = (MAIN, "Makefile", "CMakeLists.txt", "README.md", *((POWER,) if program.devices else ()))
    return ProjectFiles(
        generated={
            **shared_files(request, library, values, f"bare_metal/{LOCK}.j2"),
            **rendered(values, {"ferrule.mk": "bare_metal/ferrule.mk.j2"}),
        },
        starters=rendered(values, {name: f"bare_metal/{name}.j2" for name in starters}),
        contributions=library.contributions,
        code=code,
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
    interrupts = ("interrupt",) if device_interrupts(request) else ()
    return (
        replace(BARE_METAL.part("bare_metal", "systick", *interrupts), defines=clock),
        *uart_lines(request),
    )


BARE_METAL_PLATFORM = Platform(
    name="bare-metal",
    title="no operating system: a Makefile, a CMakeLists.txt, start-up code and a linker script",
    files=_files,
)
"""Programs without an operating system: `main` runs the model once and then serves the link forever."""
