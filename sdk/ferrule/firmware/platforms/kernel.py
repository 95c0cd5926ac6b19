# SPDX-License-Identifier: Apache-2.0
"""Projects for kernels whose sources are in a tree that a variable names: start-up, linker script and CMake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.backends.contribution import BARE_METAL, RUNTIME, Contribution
from ferrule.boards import Board
from ferrule.errors import FerruleError
from ferrule.firmware.platforms.freestanding import (
    MAIN,
    code_of,
    device_interrupts,
    freestanding_library,
    project_values,
    shared_files,
    uart_lines,
)
from ferrule.firmware.platforms.library import LOCK, link_of
from ferrule.firmware.platforms.platform import Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.tools import GCC, Tree, TreeTools, gcc_notes
from ferrule.firmware.template import rendered

KERNEL_FOLDER = "kernel"
"""The folder of a project with the kernel's configuration for the board."""
_THREAD = {"FERRULE_PORT_THREAD": "1"}
"""The link runs in a thread of the kernel, to which SysTick belongs."""


@frozen
class Kernel:
    """A kernel: its tree, its adapter, and the files of a project that configure it."""

    name: str
    """The platform's name, the folder of the templates, and that of the adapter's header in ferrule/platform."""
    title: str
    """The kernel's name in texts."""
    tree: Tree
    adapter: Contribution
    ports: Mapping[str, tuple[str, str]]
    """The names of the ports for each core: without and with hard floats."""
    configuration: str
    """The header with the kernel's options, which is the user's to edit."""
    sources: Sequence[str] = ()
    """The C files with the parts of the kernel that a board provides."""

    def port(self, board: Board) -> str:
        """Return the name of the kernel's port for a board's core; FerruleError if there is none."""
        if board.cpu.type not in self.ports:
            raise FerruleError(
                f"board {board.name}: its core {board.cpu.type} is not supported in projects for {self.title}",
                hint=f"known: {', '.join(self.ports)}",
            )
        return self.ports[board.cpu.type][board.cpu.hard_float]


def kernel_platform(kernel: Kernel) -> Platform:
    """Return the platform of programs in which a thread of a kernel runs the model once and then serves the link."""
    return Platform(
        name=kernel.name,
        title=f"{kernel.title}: a CMakeLists.txt, start-up code and a linker script",
        files=partial(_files, kernel),
        tools=TreeTools(platform=kernel.name, title=kernel.title, trees=(kernel.tree,)),
    )


def _files(kernel: Kernel, request: ProjectRequest) -> ProjectFiles:
    chosen = request.toolchain
    request = replace(request, toolchain=GCC.name)
    runtime, link = replace(RUNTIME, defines=_THREAD), link_of(request.program)
    library = freestanding_library(request, runtime, link, *_adapter(kernel, request))
    own = tuple(f"{KERNEL_FOLDER}/{name}" for name in kernel.sources)
    values = {
        **project_values(request, code_of(request, library, own), kernel.name),
        "kernel": kernel,
        "port": kernel.port(request.board),
    }
    generated = {name: f"{kernel.name}/{Path(name).name}.j2" for name in ("kernel.cmake", *own)}
    starters = {
        MAIN: f"{kernel.name}/main.c.j2",
        "CMakeLists.txt": "kernel/CMakeLists.txt.j2",
        "README.md": "kernel/README.md.j2",
        f"{KERNEL_FOLDER}/{kernel.configuration}": f"{kernel.name}/{kernel.configuration}.j2",
    }
    return ProjectFiles(
        generated={
            **shared_files(request, library, values, f"{kernel.name}/{LOCK}.j2"),
            **rendered(values, generated),
        },
        starters=rendered(values, starters),
        contributions=library.contributions,
        build_hint=f"ferrule build {{folder}}, where {kernel.tree.variable} names {kernel.tree.what}",
        notes=gcc_notes(chosen),
    )


def _adapter(kernel: Kernel, request: ProjectRequest) -> tuple[Contribution, ...]:
    """Return the kernel's clock, and for devices its adapter, with interrupts and UARTs if drivers need them."""
    if not request.program.devices:
        return (kernel.adapter.part(f"{kernel.name}_cycles"),)
    own = request.board.architecture.bare_metal
    interrupts = (BARE_METAL.part(), own.part("interrupt")) if device_interrupts(request) else ()
    return (kernel.adapter, *interrupts, *uart_lines(request))
