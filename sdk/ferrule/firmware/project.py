# SPDX-License-Identifier: Apache-2.0
"""Firmware projects: a folder with everything that a model's firmware needs, for one platform."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ferrule._version import VERSION
from ferrule.boards import Board, load_board
from ferrule.codegen import Artifact
from ferrule.errors import FerruleError
from ferrule.firmware.build import Progress, execute
from ferrule.firmware.folder import Kept, sha256, write_folder
from ferrule.firmware.image import Image, read_image
from ferrule.firmware.manifest import Manifest, read_manifest
from ferrule.firmware.plan import plan_build
from ferrule.firmware.platforms import DEFAULT_PLATFORM, ProjectRequest, platform
from ferrule.firmware.toolchain import check_optimization, toolchain

BUILD_FOLDER = "build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A generated project on disk."""

    folder: Path
    manifest: Manifest
    kept: tuple[Kept, ...] = ()
    """Files that the user had edited, and that were left alone when the project was written last."""
    notes: tuple[str, ...] = ()
    """What the user should know of the project, in one line each."""
    build_hint: str = ""
    """How the project is built, in one line."""


def write_project(
    artifact: Artifact,
    *,
    board: Board,
    toolchain_name: str,
    optimization: str,
    folder: Path,
    platform_name: str = DEFAULT_PLATFORM,
    force: bool = False,
) -> Project:
    """Write the project of a model for a board and a platform: complete in itself, so that it can be moved.

    The toolchain need not be installed. `force` replaces generated files that were edited by hand, and keeps the
    edited ones beside them as NAME.orig.

    Raises:
        FerruleError: as `ferrule.firmware.folder.write_folder` does; or there is no such platform, toolchain or
            optimization; or the platform can't have this board or model. Nothing is written then.
    """
    chosen = platform(platform_name)
    toolchain(toolchain_name)
    check_optimization(optimization)
    request = ProjectRequest(artifact=artifact, board=board, toolchain=toolchain_name, optimization=optimization)
    files = chosen.files(request)
    every = {**files.generated, **files.starters}
    manifest = Manifest(
        ferrule_version=VERSION,
        platform=platform_name,
        model=artifact.graph.name,
        digest=artifact.digest,
        board=files.board_folder,
        toolchain=toolchain_name,
        optimization=optimization,
        sources=files.sources,
        include_dirs=files.include_dirs,
        files={name: sha256(every[name]) for name in sorted(every)},
        starters=tuple(sorted(files.starters)),
    )
    kept = write_folder(folder, files.generated, files.starters, manifest, force=force)
    return Project(
        folder=folder,
        manifest=read_manifest(folder),
        kept=kept,
        notes=files.notes,
        build_hint=files.build_hint.format(folder=folder),
    )


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
    """Build a project of bare metal into its folder `build` and return the firmware's image.

    Toolchain and optimization are by default those that the project was generated for.

    Raises:
        FerruleError: the project is for a platform with a build system of its own.
        MissingToolError: the toolchain is not installed.
        BuildError: a command failed.
        TooLargeError: the firmware does not fit the board.
    """
    manifest, folder = project.manifest, project.folder
    if not manifest.board:
        raise FerruleError(
            f"{folder} is a project for {manifest.platform}, which its own tools build",
            hint=f"{folder / 'README.md'} has the commands",
        )
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
