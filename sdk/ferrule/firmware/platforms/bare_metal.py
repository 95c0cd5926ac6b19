# SPDX-License-Identifier: Apache-2.0
"""Projects without an operating system: start-up, linker script, make and CMake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.contribution import BARE_METAL, MLPERF_TINY, RUNTIME, SELF_TEST, Contribution, startup
from ferrule.firmware.mlperf_tiny import is_runner
from ferrule.firmware.platforms.freestanding import (
    BOARD_FOLDER,
    MAIN,
    code_of,
    device_interrupts,
    project_values,
    shared_files,
    uart_lines,
)
from ferrule.firmware.platforms.library import LOCK, POWER, Library, link_of
from ferrule.firmware.platforms.platform import Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.template import render
from ferrule.firmware.uart import uart_driver


@frozen(kw_only=False)
class BareMetalPlatform(Platform):
    """A program without an operating system: `main` runs the model once and then serves the link forever."""

    name = "bare-metal"

    title = "no operating system: a Makefile, a CMakeLists.txt, start-up code and a linker script"

    tools = None

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
        code = code_of(request, library)
        values = project_values(request, code, "bare_metal")
        generated = {
            **shared_files(request, library, values, f"bare_metal/{LOCK}.j2"),
            "ferrule.mk": _rendered("ferrule.mk.j2", values),
        }
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


def _rendered(template: str, values: Mapping[str, object]) -> bytes:
    return render(f"bare_metal/{template}", **values).encode()
