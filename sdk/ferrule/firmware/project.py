# SPDX-License-Identifier: Apache-2.0
"""Firmware projects: a folder with everything that a model's firmware needs, that builds on its own with make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ferrule._version import VERSION
from ferrule.backends.firmware import Contribution
from ferrule.boards import Board, load_board
from ferrule.codegen import Artifact
from ferrule.errors import FerruleError
from ferrule.firmware.build import Progress, execute
from ferrule.firmware.folder import sha256, write_folder
from ferrule.firmware.image import Image, read_image
from ferrule.firmware.linker import linker_script
from ferrule.firmware.manifest import MANIFEST_NAME, Manifest, read_manifest
from ferrule.firmware.plan import SCRIPT_NAME, plan_build
from ferrule.firmware.template import render
from ferrule.firmware.toolchain import WARNINGS, check_optimization, toolchain
from ferrule.firmware.uart import uart_driver
from ferrule.resources import root

MODEL_FOLDER = "model"
LIBRARY_FOLDER = "lib"
BOARD_FOLDER = "board"
BUILD_FOLDER = "build"
_LIBRARY_SOURCES = ("src_c/startup", "src_c/runtime", "src_c/link")
_INCLUDE_DIRS = ("include", "src_c/startup/include")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A generated project on disk."""

    folder: Path
    manifest: Manifest


def write_project(artifact: Artifact, *, board: Board, toolchain_name: str, optimization: str, folder: Path) -> Project:
    """Write the project of a model for a board, with the board's own files, so that it builds wherever it is moved.

    The toolchain need not be installed. Raises as `ferrule.firmware.folder.write_folder` does, and FerruleError where
    the board's link UART has no driver, or the board includes a file from far away.
    """
    library = _library(artifact, board)
    sources = tuple(
        sorted(
            [
                *(name for name in library if name.endswith(".c")),
                f"{MODEL_FOLDER}/ferrule_{artifact.symbol}.c",
                f"{MODEL_FOLDER}/ferrule_{artifact.symbol}_link.c",
                f"{MODEL_FOLDER}/ferrule_{artifact.symbol}_weights.c",
                "main.c",
            ]
        )
    )
    include_dirs = _include_dirs(artifact)
    files = {f"{MODEL_FOLDER}/{name}": text.encode() for name, text in artifact.files.items()}
    files |= library
    files |= _board_files(board)
    files |= _rendered(artifact, board, toolchain_name, optimization, sources, include_dirs)
    manifest = Manifest(
        ferrule_version=VERSION,
        model=artifact.graph.name,
        digest=artifact.digest,
        board=f"{BOARD_FOLDER}/{board.name}",
        toolchain=toolchain_name,
        optimization=optimization,
        sources=sources,
        include_dirs=include_dirs,
        files={name: sha256(files[name]) for name in sorted(files)},
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    write_folder(folder, {**files, MANIFEST_NAME: text + b"\n"})
    return Project(folder=folder, manifest=manifest)


def load_project(folder: Path) -> Project:
    """Return the project in a folder; FerruleError if there is none or its manifest is malformed."""
    return Project(folder=folder, manifest=read_manifest(folder))


def build_project(
    project: Project,
    *,
    toolchain_name: str | None = None,
    optimization: str | None = None,
    progress: Progress | None = None,
) -> Image:
    """Build a project into its folder `build` and return the firmware's image.

    Toolchain and optimization are by default those that the project was generated for.

    Raises:
        MissingToolError: the toolchain is not installed.
        BuildError: a command failed.
        TooLargeError: the firmware does not fit the board.
    """
    manifest, folder = project.manifest, project.folder
    plan = plan_build(
        [folder / name for name in manifest.sources],
        [folder / name for name in manifest.include_dirs],
        load_board(folder / manifest.board),
        toolchain(toolchain_name or manifest.toolchain),
        folder / BUILD_FOLDER,
        optimization or manifest.optimization,
        startup=False,
    )
    return read_image(execute(plan, progress=progress))


def _library(artifact: Artifact, board: Board) -> dict[str, bytes]:
    """Return the C sources and headers that the firmware is linked from, by path in the project."""
    names: set[str] = {*artifact.sources, uart_driver(board).source}
    for folder in _LIBRARY_SOURCES:
        names |= set(_below(folder, ".c")) | set(_below(folder, ".h"))
    for folder in (*_INCLUDE_DIRS, *artifact.include_dirs):
        names |= set(_below(folder, ".h"))
    for source in artifact.sources:  # headers that are private to kernels stand beside them
        names |= {str(Path(source).parent / path.name) for path in (root() / source).parent.glob("*.h")}
    files = {f"{LIBRARY_FOLDER}/{name}": (root() / name).read_bytes() for name in sorted(names)}
    for contribution in artifact.contributions:
        for path in _contributed(contribution):
            files[f"{_home(contribution)}/{path.relative_to(contribution.folder).as_posix()}"] = path.read_bytes()
    return files


def _home(contribution: Contribution) -> str:
    """Return where a backend's own C lies in the project."""
    return f"{LIBRARY_FOLDER}/backends/{contribution.folder.name}"


def _contributed(contribution: Contribution) -> Iterator[Path]:
    for source in contribution.sources:
        yield contribution.folder / source
    for include in contribution.include_dirs:
        yield from sorted((contribution.folder / include).rglob("*.h"))


def _include_dirs(artifact: Artifact) -> tuple[str, ...]:
    shared = (f"{LIBRARY_FOLDER}/{name}" for name in (*_INCLUDE_DIRS, *artifact.include_dirs))
    own = (f"{_home(part)}/{include}" for part in artifact.contributions for include in part.include_dirs)
    return (MODEL_FOLDER, *shared, *own)


def _board_files(board: Board) -> dict[str, bytes]:
    """Return the board's files by path in the project; they keep their places relative to each other."""
    files = {}
    for path in board.files:
        if not path.is_relative_to(board.folder.parent):
            raise FerruleError(
                f"board {board.name} includes {path}, which lies outside of {board.folder.parent}",
                hint="a project takes the board's files along: put what the board includes beside its folder",
            )
        files[f"{BOARD_FOLDER}/{path.relative_to(board.folder.parent).as_posix()}"] = path.read_bytes()
    return files


def _below(folder: str, suffix: str) -> Iterator[str]:
    for path in sorted((root() / folder).rglob(f"*{suffix}")):
        yield path.relative_to(root()).as_posix()


def _rendered(
    artifact: Artifact,
    board: Board,
    toolchain_name: str,
    optimization: str,
    sources: tuple[str, ...],
    include_dirs: tuple[str, ...],
) -> Mapping[str, bytes]:
    chosen = toolchain(toolchain_name)
    level = check_optimization(optimization)
    values = {
        "version": VERSION,
        "artifact": artifact,
        "model": artifact.graph,
        "board": board,
        "driver": uart_driver(board),
        "toolchain": chosen,
        "sources": sources,
        "include_dirs": include_dirs,
        "script": SCRIPT_NAME,
        "compile_flags": (*chosen.compile_flags(board, level), *WARNINGS),
        "link_flags": chosen.link_flags(board, level),
        "libraries": chosen.libraries,
    }
    texts = {
        "main.c": render("main.c.j2", **values),
        "Makefile": render("Makefile.j2", **values),
        "README.md": render("README.md.j2", **values),
        SCRIPT_NAME: linker_script(board),
    }
    return {name: text.encode() for name, text in texts.items()}
