# SPDX-License-Identifier: Apache-2.0
"""Projects without an operating system: start-up, linker script, make and CMake."""

from __future__ import annotations

from dataclasses import replace

from ferrule.backends.contribution import BARE_METAL, MLPERF_TINY, RUNTIME, Contribution
from ferrule.boards import Board
from ferrule.firmware.micro_programs import ALIGNMENT, areas, digest, micro_programs, written, written_program
from ferrule.firmware.mlperf_tiny import CALIBRATION_APP, is_runner
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

_PROGRAMS = "micro_programs"
"""The file of a calibration's programs, without its suffix."""


def _files(request: ProjectRequest) -> ProjectFiles:
    program, board = request.program, request.board
    calibrates = request.app == CALIBRATION_APP
    link = MLPERF_TINY if is_runner(request.app) else link_of(program, further=calibrates)
    library = freestanding_library(request, RUNTIME, link, *_adapter(request))
    code = code_of(request, library, (f"{_PROGRAMS}.c",) if calibrates else ())
    values = {**project_values(request, code, "bare_metal"), **(_calibration(board) if calibrates else {})}
    starters = ("Makefile", "CMakeLists.txt", "README.md", *((POWER,) if program.devices else ()))
    own = [f"{_PROGRAMS}{suffix}" for suffix in (".c", ".h")] if calibrates else []
    return ProjectFiles(
        generated={
            **shared_files(request, library, values, f"bare_metal/{LOCK}.j2"),
            **rendered(values, {name: f"bare_metal/{name}.j2" for name in ("ferrule.mk", *own)}),
        },
        starters=rendered(
            values,
            {
                MAIN: f"bare_metal/{'calibration.c' if calibrates else MAIN}.j2",
                **{name: f"bare_metal/{name}.j2" for name in starters},
            },
        ),
        contributions=library.contributions,
        code=code,
        board_folder=f"{BOARD_FOLDER}/{board.name}",
        build_hint="make -C {folder}",
    )


def _calibration(board: Board) -> dict[str, object]:
    """Return the further values of the templates of a calibration's firmware."""
    programs = micro_programs(board)
    return {
        "programs": [written_program(each) for each in programs],
        "programs_digest": digest(programs),
        "areas": areas(board),
        "alignment": ALIGNMENT,
        "assembly": written(board.architecture.assembly),
    }


def _adapter(request: ProjectRequest) -> tuple[Contribution, ...]:
    """Return the adapter of the device API and its clock, with interrupts and serial lines if drivers need them.

    A core without a cycle counter gets the clock alone: it counts beyond the bits of the core's timer.
    """
    clock = {"FERRULE_CLOCK_HZ": f"{request.board.clock_hz}u"}
    if not request.program.devices:
        own = request.board.architecture.bare_metal.part("timer")
        return (replace(own, defines=clock),) if request.board.cpu.features.baseline else ()
    interrupts = ("interrupt",) if device_interrupts(request) else ()
    return (
        BARE_METAL,
        replace(request.board.architecture.bare_metal.part("timer", *interrupts), defines=clock),
        *uart_lines(request),
    )


BARE_METAL_PLATFORM = Platform(
    name="bare-metal",
    title="no operating system: a Makefile, a CMakeLists.txt, start-up code and a linker script",
    files=_files,
)
"""Programs without an operating system: `main` runs the model once and then serves the link forever."""
