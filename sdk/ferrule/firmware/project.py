# SPDX-License-Identifier: Apache-2.0
"""Firmware projects: folders with everything that a model's firmware needs on one platform."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule._version import VERSION
from ferrule.boards import DEFAULT_STACK_BYTES, Board, load_board
from ferrule.codegen import Artifact, Program
from ferrule.errors import FerruleError
from ferrule.firmware.build import execute
from ferrule.firmware.compile_commands import COMPILE_COMMANDS, compile_commands
from ferrule.firmware.folder import Kept, sha256, write_folder
from ferrule.firmware.identification import project_files
from ferrule.firmware.image import Image, StackBound, read_image
from ferrule.firmware.job import Job
from ferrule.firmware.linker import reserving
from ferrule.firmware.manifest import PENDING_NAME, Manifest, read_manifest
from ferrule.firmware.plan import SourceSet, plan_build
from ferrule.firmware.platforms import platform
from ferrule.firmware.platforms.platform import SEAL
from ferrule.firmware.platforms.tools import PlatformTools, build_with
from ferrule.firmware.sbom import SBOM_NAME, compiler_component, sbom
from ferrule.firmware.seal import SealError, seal_file
from ferrule.firmware.stack_bound import stack_bound
from ferrule.firmware.toolchain import toolchain
from ferrule.graph import brief
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork
from ferrule.progress import Progress, Step, say_nothing
from ferrule.reading import confined, exists, require_regular
from ferrule.record import building, inputs

BUILD_FOLDER = "build"
SMALLEST_STACK_BYTES = 2_048
"""The size of the stack on a board that states none, unless the bound needs more."""
_LEAST_MARGIN = 256


class StackTooSmallError(FerruleError):
    """The firmware may use more stack than the board reserves."""

    def __init__(self, board: str, bound: StackBound, reserved_bytes: int) -> None:
        self.bound = bound
        self.reserved_bytes = reserved_bytes
        super().__init__(
            f"the firmware may use {bound.size_bytes:,} B of stack ({bound.exception_bytes:,} B of them for an "
            f"exception), and board {board} reserves {reserved_bytes:,} B; the deepest calls: {' → '.join(bound.path)}",
            hint=f"set placement.stack_bytes in its board.toml to at least {bound.size_bytes}",
        )


@frozen
class Project:
    """A generated project on disk."""

    folder: Path
    manifest: Manifest
    kept: tuple[Kept, ...] = ()
    """Files edited by the user that the last generation left unchanged or renamed."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one line each."""
    build_hint: str = ""
    """The command that builds the project."""

    @override
    def __repr__(self) -> str:
        manifest = self.manifest
        return f"<Project {self.folder}: {brief(manifest.model)} for {manifest.platform}, {len(manifest.files)} files>"


@dataclass(frozen=True, kw_only=True)
class BuiltFirmware:
    """A network compiled for a board, alone or with others in one firmware."""

    network: Network
    """The network before optimisation; its numpy reference is the standard for the firmware's outputs."""
    optimized: OptimizedNetwork
    """The network divided over backends; `messages` states which backends did not receive a layer, and why."""
    board: Board
    artifact: Artifact
    program: Program
    """All models of the firmware, this one among them."""
    project: Project
    image: Image
    job: Job
    """The job that `compile` was called with."""
    toolchain: str
    """The name of the toolchain that compiled it."""
    toolchain_version: str
    """The compiler's version, as one line."""
    build_s: float
    """Wall-clock seconds of the build."""


def write_project(model: Artifact | Program, job: Job, *, force: bool = False) -> Project:
    """Write the project of a model, or of several, into the job's folder; it is self-contained and can be moved.

    The toolchain need not be installed. `force` replaces generated files that were edited by hand and keeps the
    edited versions beside them as NAME.orig.

    Raises:
        FerruleError: as for `ferrule.firmware.folder.write_folder`; or the job names no folder, or an unknown platform,
            board, toolchain or optimization; or the platform does not support this board or model. Nothing is written
            in these cases.
    """
    if job.out is None:
        raise FerruleError("the job names no folder for the project", hint='give out="..."')
    folder, tools, board = Path(job.out), platform(job.platform).tools, job.load_board()
    program = _program(model)
    identities, files = project_files(program, job)
    compiler, chosen = None, toolchain(job.toolchain)
    if tools is None:  # the tools of a platform choose the compiler themselves
        compiler = compiler_component(chosen.name, "" if chosen.find() is None else chosen.version())
    bill = sbom(program, identities, files.contributions, files.generated, files.starters, inputs(), compiler)
    generated = {**files.generated, SBOM_NAME: bill}
    every = {**generated, **files.starters}
    manifest = Manifest(
        ferrule_version=VERSION,
        platform=job.platform,
        model=program.name,
        digest=program.digest,
        board=files.board_folder,
        board_name="" if tools is None else board.name,
        toolchain=job.toolchain,
        optimization=job.level,
        **asdict(files.code),
        stack_bytes=0 if board.placement.stack_is_stated or not files.board_folder else board.placement.stack_bytes,
        files={name: sha256(every[name]) for name in sorted(every)},
        starters=tuple(sorted(files.starters)),
    )
    kept = write_folder(folder, generated, files.starters, manifest, force=force)
    return Project(
        folder=folder,
        manifest=read_manifest(folder),
        kept=kept,
        notes=files.notes,
        build_hint=files.build_hint.format(folder=folder),
    )


def load_project(folder: Path) -> Project:
    """Return the project in a folder; FerruleError if there is none, or it is malformed or not written completely."""
    if exists(folder / PENDING_NAME):
        raise FerruleError(
            f"{folder} is not complete: a command that wrote it was ended early",
            hint="generate the project again, into the same folder",
        )
    return Project(folder=folder, manifest=read_manifest(folder))


def build_project(
    project: Project,
    *,
    toolchain_name: str | None = None,
    optimization: str | None = None,
    debug: bool = False,
    progress: Progress = say_nothing,
) -> Image:
    """Build a project in its folder `build` and return the firmware's image.

    With `debug`, a bare-metal firmware has debug information, and the same code; other platforms' own files state it.

    Toolchain and optimization default to those that the project was generated for. The same bare-metal project yields
    the same file in every folder, by this function and by its Makefile: it contains only paths relative to the folder.

    Raises:
        FerruleError: another toolchain or optimization is given for a platform that has a build system of its own, or
            that build system does not build for the board.
        MissingToolError: the toolchain, or something that the platform's build system needs, is not there.
        BuildError: a command failed.
        TooLargeError: the firmware does not fit the board.
        StackTooSmallError: the firmware may use more stack than the board reserves; no firmware is left in the folder.
    """
    manifest, folder = project.manifest, project.folder
    _check_places(project)
    tools = platform(manifest.platform).tools
    if tools is not None:
        if toolchain_name is not None or optimization is not None:
            raise FerruleError(
                f"{folder} is a project for {manifest.platform}, whose own files state toolchain and optimization",
                hint="give them to `ferrule generate`",
            )
        return _built_by(tools, project, progress)
    name = toolchain_name or manifest.toolchain
    board = load_board(folder / manifest.board)
    if manifest.stack_bytes and not board.placement.stack_is_stated:
        board = reserving(board, manifest.stack_bytes)
    phase = f"building with {name}"
    progress(Step(phase=phase))
    code = SourceSet(**{name: getattr(manifest, name) for name in SourceSet.__dataclass_fields__})
    plan = plan_build(
        code,
        board,
        toolchain(name),
        folder / BUILD_FOLDER,
        optimization or manifest.optimization,
        startup=False,
        relative_to=folder,
        debug=debug,
    )
    database = {plan.folder / COMPILE_COMMANDS: compile_commands(plan, folder)}
    plan = replace(plan, files={**plan.files, **database})

    def say(done: int, total: int, name: str) -> None:
        waiting = f"waiting for another build in {plan.folder}"
        progress(Step(phase=phase, done=done, total=total) if name else Step(phase=waiting))

    with building():
        elf = execute(plan, progress=say)
        if SEAL in manifest.files:
            try:
                seal_file(elf)
            except (SealError, OSError) as error:
                elf.unlink(missing_ok=True)  # without the record of what its self-test compares
                raise FerruleError(f"{elf}: {error}") from None
    bound = stack_bound(elf, plan.link.inputs, plan.board.architecture, plan.board.cpu)
    reserved = plan.board.placement.stack_bytes
    if bound.size_bytes is not None and bound.size_bytes > reserved:
        elf.unlink(missing_ok=True)
        raise StackTooSmallError(plan.board.name, bound, reserved)
    return replace(read_image(elf), stack=bound)


def _check_places(project: Project) -> None:
    """Raise FerruleError if a build would read or write something outside of the project, or no regular file."""
    manifest, folder = project.manifest, project.folder
    build = folder / BUILD_FOLDER
    folders = [manifest.board, *manifest.include_dirs, *manifest.system_include_dirs]
    try:
        for path in (build, *(folder / name for name in folders)):
            confined(path, folder)
        for name in dict.fromkeys([*manifest.files, *manifest.sources]):
            require_regular(folder / name, within=folder)
        for place, inner, names in os.walk(build) if platform(manifest.platform).tools is None else ():
            for name in (*inner, *names):
                confined(Path(place, name), build)
    except OSError as error:
        raise FerruleError(
            f"{error.filename}: {error.strerror}",
            hint="a build stays in the project's folder: put the file or folder itself there, instead of a link",
        ) from error


def _built_by(tools: PlatformTools, project: Project, progress: Progress) -> Image:
    manifest, folder = project.manifest, project.folder
    if not manifest.board_name:
        raise FerruleError(
            f"{folder} does not name its board: an older version of ferrule has written it",
            hint="generate the project again, into the same folder",
        )
    image = read_image(build_with(tools, folder, folder / BUILD_FOLDER, manifest.board_name, progress))
    reason = f"the threads and interrupts of {manifest.platform} have stacks of their own"
    return replace(image, stack=StackBound(reason=reason))


def make_firmware(model: Artifact | Program, job: Job, progress: Progress = say_nothing) -> tuple[Project, Image]:
    """Write a project and build it; for a board that states no size of the stack, the bound decides it.

    On a platform with a kernel, no bound is known, and the thread of the model has the usual size.
    The stack gets 2 KiB, and more if the bound with a margin of a quarter needs it. It gets the size that
    `write_project` alone gives it if no bound is known.

    Raises:
        FerruleError: as `write_project` and `build_project`.
    """
    program, board = _program(model), job.load_board()
    if board.placement.stack_is_stated or platform(job.platform).tools is not None:
        return _made(program, job, progress)
    try:
        made = _made(program, replace(job, board=reserving(board, SMALLEST_STACK_BYTES)), progress)
        bound = made[1].stack
    except StackTooSmallError as error:
        bound, made = error.bound, None
    wanted = DEFAULT_STACK_BYTES
    if bound.size_bytes is not None:
        wanted = -(-(bound.size_bytes + max(bound.size_bytes // 4, _LEAST_MARGIN)) // 8) * 8
    if made is not None and wanted <= SMALLEST_STACK_BYTES:
        return made
    return _made(program, replace(job, board=reserving(board, wanted)), progress)


def _made(program: Program, job: Job, progress: Progress) -> tuple[Project, Image]:
    project = write_project(program, job)
    return project, build_project(project, debug=job.debug, progress=progress)


def _program(model: Artifact | Program) -> Program:
    return model if isinstance(model, Program) else Program(artifacts=(model,))
