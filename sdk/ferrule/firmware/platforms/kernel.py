# SPDX-License-Identifier: Apache-2.0
"""Projects for kernels whose sources are in a tree that a variable names: start-up, linker script and CMake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.contribution import BARE_METAL, RUNTIME, SELF_TEST, Contribution, startup
from ferrule.boards import Board
from ferrule.errors import FerruleError
from ferrule.firmware.platforms.freestanding import (
    MAIN,
    code_of,
    device_interrupts,
    project_values,
    shared_files,
    uart_lines,
)
from ferrule.firmware.platforms.library import LOCK, Library, link_of
from ferrule.firmware.platforms.platform import Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.tools import GCC, Tree, TreeTools
from ferrule.firmware.template import render
from ferrule.firmware.uart import uart_driver

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


@frozen(kw_only=False)
class KernelPlatform(Platform):
    """A program in which a thread of a kernel runs the model once and then serves the link."""

    kernel: Kernel

    @property
    @override
    def name(self) -> str:
        return self.kernel.name

    @property
    @override
    def title(self) -> str:
        return f"{self.kernel.title}: a CMakeLists.txt, start-up code and a linker script"

    @property
    @override
    def tools(self) -> TreeTools:
        return TreeTools(platform=self.kernel.name, title=self.kernel.title, trees=(self.kernel.tree,))

    @override
    def files(self, request: ProjectRequest) -> ProjectFiles:
        chosen = request.toolchain
        request = replace(request, toolchain=GCC.name)
        program, board, kernel = request.program, request.board, self.kernel
        library = Library.of(
            *program.contributions,
            replace(RUNTIME, defines=_THREAD),
            link_of(program),
            startup(board.cache_line_bytes),
            uart_driver(board).contribution,
            *self._adapter(request),
            *(SELF_TEST if request.self_test else ()),
        )
        own = tuple(f"{KERNEL_FOLDER}/{name}" for name in kernel.sources)
        values = {
            **project_values(request, code_of(request, library, own), kernel.name),
            "kernel": kernel,
            "port": kernel.port(board),
        }
        generated = {
            **shared_files(request, library, values, f"{kernel.name}/{LOCK}.j2"),
            "kernel.cmake": _rendered(f"{kernel.name}/kernel.cmake.j2", values),
            **{name: _rendered(f"{kernel.name}/{Path(name).name}.j2", values) for name in own},
        }
        configuration = f"{kernel.name}/{kernel.configuration}.j2"
        return ProjectFiles(
            generated=generated,
            starters={
                MAIN: _rendered(f"{kernel.name}/main.c.j2", values),
                "CMakeLists.txt": _rendered("kernel/CMakeLists.txt.j2", values),
                "README.md": _rendered("kernel/README.md.j2", values),
                f"{KERNEL_FOLDER}/{kernel.configuration}": _rendered(configuration, values),
            },
            contributions=library.contributions,
            build_hint=f"ferrule build {{folder}}, where {kernel.tree.variable} names {kernel.tree.what}",
            notes=() if chosen == GCC.name else (f"it is built by {GCC.name}, not by {chosen}",),
        )

    def _adapter(self, request: ProjectRequest) -> tuple[Contribution, ...]:
        """Return the kernel's clock, and for devices its adapter, with interrupts and UARTs if drivers need them."""
        clock = f"{self.kernel.name}_cycles"
        if not request.program.devices:
            return (self.kernel.adapter.part(clock),)
        lines = uart_lines(request)
        interrupts = (BARE_METAL.part("interrupt"),) if device_interrupts(request) else ()
        return (self.kernel.adapter, *interrupts, *lines)


def _rendered(template: str, values: Mapping[str, object]) -> bytes:
    return render(template, **values).encode()
