# SPDX-License-Identifier: Apache-2.0
"""What a platform gives to a generated project: its files around the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ferrule.boards import Board
from ferrule.codegen import Artifact

MODEL_FOLDER = "model"
"""Where the generated C of the model lies in every project."""
LIBRARY_FOLDER = "lib"
"""Where the C that comes with Ferrule lies in every project, as it lies in the sources: lib/include, lib/src_c, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRequest:
    """What a project is generated from."""

    artifact: Artifact
    board: Board
    toolchain: str
    """Name of the toolchain that a project of bare metal is built with by default."""
    optimization: str
    """O2, O3 or Os."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFiles:
    """The files of a project by path relative to its folder, `/` between the parts."""

    generated: Mapping[str, bytes]
    """Written anew each time; one that was edited by hand stops the generation."""
    starters: Mapping[str, bytes]
    """The user's own after the first time, such as main.c: one that was edited by hand is left alone and told."""
    sources: tuple[str, ...] = ()
    """The C files of the program, where Ferrule itself can build it (`ferrule build`)."""
    third_party: tuple[str, ...] = ()
    """Those of the C files that are compiled without warnings."""
    include_dirs: tuple[str, ...] = ()
    system_include_dirs: tuple[str, ...] = ()
    """The include folders of third parties."""
    defines: Mapping[str, str] = field(default_factory=dict)
    """Macros of all C files."""
    board_folder: str = ""
    """The folder with the board's description, where Ferrule itself can build the project."""
    build_hint: str = ""
    """How the user builds it, in one line, with {folder} for the project's folder."""
    notes: tuple[str, ...] = field(default=())
    """What the user should know, in one line each, such as a feature that this board can't have."""


class Platform(Protocol):
    """Makes projects for one platform: an RTOS, or none."""

    @property
    def name(self) -> str:
        """How the user names it, such as "bare-metal"."""
        ...

    @property
    def title(self) -> str:
        """What it is, in some words."""
        ...

    def files(self, request: ProjectRequest) -> ProjectFiles:
        """Return the project; the same request gives the same bytes.

        Raises:
            FerruleError: the board, the toolchain or the model can't be had on this platform; the message says why.
        """
        ...
