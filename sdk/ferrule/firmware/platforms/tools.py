# SPDX-License-Identifier: Apache-2.0
"""Builds the projects of platforms that have a build system of their own, from trees that variables name."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from ferrule._frozen import frozen, positional
from ferrule._typing import override
from ferrule.architectures import CORTEX_M
from ferrule.errors import FerruleError, MissingToolError
from ferrule.firmware.build import Commands
from ferrule.firmware.probe import ToolStatus, probe_program
from ferrule.firmware.toolchain import gcc_for
from ferrule.firmware.trial import newlib_status
from ferrule.progress import Progress, Step
from ferrule.reading import is_file, read_text
from ferrule.scratch import locked

CMAKE = "cmake"
NINJA = "ninja"
GCC = gcc_for(CORTEX_M)
"""The kernels' ports are those for GCC; csolution's other compilers need a different linker script."""


def gcc_notes(toolchain: str) -> tuple[str, ...]:
    """Return the note for a project whose job has another toolchain than the one that builds it."""
    return () if toolchain == GCC.name else (f"it is built by {GCC.name}, not by {toolchain}",)


Steps = Sequence[tuple[str, Sequence[str]]]
"""The commands of a build, each with a phase's name."""


class PlatformTools(Protocol):
    """The tools that build a platform's projects: programs, and trees that variables of the environment name."""

    @property
    def platform(self) -> str:
        """The platform's name."""
        ...

    def needs(self) -> list[ToolStatus]:
        """Return the status of each tool and tree that a build needs, as `ferrule doctor` lists them."""
        ...

    def compiler(self) -> str:
        """Return the name of the toolchain; the firmware states the compiler's version itself."""
        ...

    def check(self, board: str) -> None:
        """Raise FerruleError if these tools do not build for a board of Ferrule's; all needs are met."""
        ...

    def steps(self, folder: Path, build: Path, board: str) -> Steps:
        """Return the commands that build a project for a board in the folder `build`, each with a phase's name."""
        ...

    def program(self, build: Path) -> Path:
        """Return the path of the firmware's ELF file in the folder `build`."""
        ...


@positional
class Tree:
    """A tree of sources that a variable of the environment names."""

    variable: str
    what: str
    """Its description, such as "a checkout of ARM-software/CMSIS_6"."""
    marker: str
    """Path of a file in every such tree."""
    version: Callable[[Path], str | None]
    """Returns the version of a tree; None if it is unknown."""
    oldest: tuple[int, ...] = ()
    """The first version with which projects build; empty if all do."""

    def find(self) -> Path | None:
        """Return the tree, or None if the variable is not set or names something else."""
        value = os.environ.get(self.variable)
        return Path(value).resolve() if value and is_file(Path(value) / self.marker) else None

    def status(self, platform: str) -> ToolStatus:
        """Return the status for a platform."""
        path, value = self.find(), os.environ.get(self.variable)
        wrong = f" (it is {value!r}, where {self.marker} is missing)" if value and path is None else ""
        return ToolStatus(
            self.variable,
            f"builds firmware for {platform}: {self.what}",
            f"set {self.variable} to {self.what}{wrong}",
            found=path is not None,
            version=None if path is None else self.version(path),
            path=None if path is None else str(path),
        )

    def require(self) -> Path:
        """Return the tree; MissingToolError if the variable does not name one."""
        found = self.find()
        if found is None:
            raise MissingToolError(f"{self.variable} names no tree", hint=self.status("").remedy)
        return found

    def check(self, title: str) -> None:
        """Raise FerruleError if projects do not build with the tree; `title` is that of its contents."""
        path = self.require()
        version = self.version(path) or "?"
        if tuple(map(int, re.findall(r"\d+", version))) < self.oldest:
            oldest = ".".join(map(str, self.oldest))
            raise FerruleError(
                f"{self.variable} names {title} {version}, expected {oldest} or later: {path}",
                hint=f"check out a newer release: {self.what}",
            )


@frozen
class TreeTools(PlatformTools):
    """Builds projects through their CMake list, with GCC and the trees that variables name."""

    platform: str
    title: str
    """The name of the trees' contents in texts."""
    trees: tuple[Tree, ...]

    @override
    def needs(self) -> list[ToolStatus]:
        gcc = probe_program(GCC.name)
        programs = (probe_program(CMAKE), probe_program(NINJA), gcc, *([newlib_status(gcc)] if gcc.found else []))
        return [*(tree.status(self.platform) for tree in self.trees), *programs]

    @override
    def compiler(self) -> str:
        return GCC.name

    @override
    def check(self, board: str) -> None:
        del board  # the project itself describes its board
        for tree in self.trees:
            tree.check(self.title)

    @override
    def steps(self, folder: Path, build: Path, board: str) -> Steps:
        del board
        trees = [f"-D{tree.variable}={tree.require()}" for tree in self.trees]
        return cmake_steps(folder, build, self.title, ("--toolchain", str(folder / "toolchain.cmake"), *trees))

    @override
    def program(self, build: Path) -> Path:
        return build / "firmware.elf"


def require_tools(tools: PlatformTools, board: str) -> list[ToolStatus]:
    """Check that a platform's tools are there and build for a board, and return them.

    Raises:
        MissingToolError: something is missing; the message names all of it, and the hint says how to get it.
        FerruleError: the tools do not build for the board.
    """
    needs = tools.needs()
    unmet = [need for need in needs if not need.works]
    if unmet:
        missing = ", ".join(need.name for need in unmet if not need.found)
        broken = [f"{need.name}: {need.problem}" for need in unmet if need.found]
        reasons = [*([f"missing: {missing}"] if missing else []), *broken]
        raise MissingToolError(
            f"firmware for {tools.platform} cannot be built here: {'; '.join(reasons)}",
            hint="; ".join(need.remedy for need in unmet) + "; `ferrule doctor` lists all",
        )
    tools.check(board)
    return needs


def build_with(tools: PlatformTools, folder: Path, build: Path, board: str, progress: Progress) -> Path:
    """Build a project in the folder `build` and return the firmware's path; on failure there is no firmware.

    A build waits for another one in the same folder to end. What earlier builds left in the folder is used again if
    they had the same commands, programs and trees.

    Raises:
        FerruleError: as `require_tools`, or the folder cannot be written.
        BuildError: a command failed.
    """
    needs = require_tools(tools, board)
    folder, build = folder.resolve(), build.resolve()
    program = tools.program(build)
    try:
        build.mkdir(parents=True, exist_ok=True)
        with locked(build, waiting=lambda: progress(Step(phase=f"waiting for another build in {build}"))) as lock:
            program.unlink(missing_ok=True)
            steps = tools.steps(folder, build, board)
            _forget_others(build, repr(([(need.name, need.path) for need in needs], steps)))
            commands = Commands(folder, lock)
            try:
                for phase, argv in steps:
                    progress(Step(phase=phase))
                    commands.run(argv)
            except BaseException:
                commands.stop()
                raise
    except OSError as error:
        raise FerruleError(f"cannot build in {build}: {error}") from None
    if not is_file(program):
        raise FerruleError(f"the build for {tools.platform} ended without {program}")
    return program


def _forget_others(build: Path, key: str) -> None:
    """Delete CMake's cache in a folder unless the last build there had this key.

    CMake and Zephyr keep the generator, the tree and the board of a folder's first build, whatever later ones name.
    """
    record = build / "ferrule-build.txt"
    if is_file(record) and read_text(record) == key:
        return
    record.unlink(missing_ok=True)
    (build / "CMakeCache.txt").unlink(missing_ok=True)
    shutil.rmtree(build / "CMakeFiles", ignore_errors=True)
    record.write_text(key, encoding="utf-8")


def cmake_steps(folder: Path, build: Path, title: str, options: Sequence[str]) -> Steps:
    """Return the commands that configure a project with CMake and build it with ninja."""
    return (
        (f"configuring with {title}", (CMAKE, "-G", "Ninja", "-S", str(folder), "-B", str(build), *options)),
        (f"building with {title}", (CMAKE, "--build", str(build), "--parallel", str(os.cpu_count() or 1))),
    )
