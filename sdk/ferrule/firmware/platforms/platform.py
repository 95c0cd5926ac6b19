# SPDX-License-Identifier: Apache-2.0
"""The interface of platforms, which contribute the files around the model to a generated project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from ferrule._frozen import frozen
from ferrule.backends.contribution import Contribution
from ferrule.boards import Board, Peripheral
from ferrule.codegen import Program
from ferrule.firmware.manifest import Files
from ferrule.firmware.plan import SourceSet
from ferrule.firmware.platforms.tools import PlatformTools
from ferrule.firmware.toolchain import Optimization

MODEL_FOLDER = "model"
"""Folder of the model's generated C in every project."""
SEAL = "seal.py"
"""The file of a project with a self-test that records, after the link, what the test compares."""
LIBRARY_FOLDER = "lib"
"""Folder of Ferrule's own C in every project, with the layout of the sources: lib/include, lib/src_c, ..."""


@frozen
class ProjectRequest:
    """The inputs from which a project is generated."""

    program: Program
    board: Board
    toolchain: str
    """Name of the default toolchain of a bare-metal project."""
    optimization: Optimization
    self_test: bool = False
    """Whether the firmware has a self-test; see `Job.self_test`."""
    app: str = "link"
    """What the program does: it serves Ferrule's link, or answers the runner of a benchmark; see `Job.app`."""


@frozen
class ProjectFiles:
    """The files of a project by path relative to its folder, with `/` as the separator."""

    generated: Files
    """Files rewritten on each generation; if one was edited by hand, the generation stops."""
    starters: Files
    """Files meant for editing, such as main.c; one that was edited by hand is left unchanged and reported."""
    contributions: tuple[Contribution, ...] = ()
    """The C code in the project that was not generated, sorted by name."""
    code: SourceSet = field(default_factory=SourceSet)
    """The C files of the program if `ferrule build` can build it, otherwise none."""
    board_folder: str = ""
    """The folder with the board's description if `ferrule build` can build the project, otherwise empty."""
    build_hint: str = ""
    """The command that builds the project, with {folder} in place of the project's folder."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one line each, such as a feature that the board does not support."""


@frozen
class Platform:
    """Generates projects of one kind: for an RTOS, for bare metal, or a library for a program's own build."""

    name: str
    """The name that users select the platform by, such as "bare-metal"."""
    title: str
    """A short description of the platform."""
    files: Callable[[ProjectRequest], ProjectFiles]
    """Returns a project's files; equal requests return equal bytes. FerruleError if the platform does not support the
    board, the toolchain or the model; the message states why."""
    tools: PlatformTools | None = None
    """The tools that build the projects; None if `ferrule build` compiles `ProjectFiles.code` itself."""
    no_self_test: str = ""
    """Why its projects cannot have a self-test, see `Job.self_test`; "" if they can."""
    link_uart: Callable[[Program, Board], Peripheral] = lambda _, board: board.link_uart
    """Returns the board's UART that a project's link uses; FerruleError if none is left for it."""
