# SPDX-License-Identifier: Apache-2.0
"""Executes a build plan."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

from ferrule.boards import Board
from ferrule.errors import FerruleError
from ferrule.firmware.image import Image, Section, read_image
from ferrule.firmware.linker import roomy_memories
from ferrule.firmware.object_cache import ObjectCache
from ferrule.firmware.plan import BuildPlan, CompileStep, LinkStep

OUTPUT_LINES = 20

_UNDEFINED = re.compile(r"undefined (?:symbol|reference)")
_OVERFLOW = re.compile(r"will not fit in region|overflowed by|address .*out of range|does not fit|relocation truncated")


class BuildError(FerruleError):
    """A command of the build failed; the error keeps the command, its folder, exit code and output."""

    def __init__(self, argv: Sequence[str], cwd: Path, exit_code: int, output: str) -> None:
        self.argv = tuple(argv)
        self.cwd = cwd
        self.exit_code = exit_code
        self.output = output
        self.last_lines = tuple(output.splitlines()[-OUTPUT_LINES:])
        super().__init__(
            "\n".join((f"{Path(self.argv[0]).name} failed with exit code {exit_code}:", *self.last_lines)),
            hint=f"in {cwd}: {shlex.join(self.argv)}",
        )


class TooLargeError(FerruleError):
    """The firmware does not fit into a memory of the board."""

    def __init__(self, board: Board, memory: str, need_bytes: int, parts: Sequence[tuple[str, int]]) -> None:
        self.memory = memory
        self.need_bytes = need_bytes
        self.have_bytes = board.memory(memory).size_bytes
        self.parts = tuple(parts)
        listed = ", ".join(f"{name} {size:,} B" for name, size in self.parts)
        super().__init__(
            f"the firmware is too big for board {board.name}: memory '{memory}' holds {self.have_bytes:,} B, "
            f"{need_bytes:,} B are needed ({need_bytes - self.have_bytes:,} B too many): {listed}",
            hint="take a board with more memory, a smaller model, or change [placement] in its board.toml",
        )


def execute(
    plan: BuildPlan, *, progress: Callable[[int, int, str], None] | None = None, jobs: int | None = None
) -> Path:
    """Build the firmware and return the path of its ELF file; on failure no firmware is left in the folder.

    Objects that an earlier build produced with the same command from the same files are taken from the cache.

    `progress` is called in the caller's thread with the number of completed steps, the number of all steps and the
    name of the file just built. `jobs` is the number of compilers run in parallel, by default one per core.

    Raises:
        BuildError: a command failed.
        TooLargeError: the firmware does not fit into the board's memories.
        FerruleError: the folder cannot be written.
    """
    total = len(plan.compile) + 1
    _prepare(plan)
    objects = ObjectCache(plan)
    done = 0
    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1) as pool:
        waiting = {pool.submit(_compile, step, plan.folder, objects): step for step in plan.compile}
        pending: set[Future[None]] = set(waiting)
        try:
            while pending:
                finished, pending = wait(
                    pending, return_when=FIRST_EXCEPTION if progress is None else "FIRST_COMPLETED"
                )
                for future in finished:
                    future.result()
                    done += 1
                    if progress is not None:
                        progress(done, total, waiting[future].output.name)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    objects.prune()
    _link(plan)
    if progress is not None:
        progress(total, total, plan.elf.name)
    return plan.elf


def _prepare(plan: BuildPlan) -> None:
    try:
        (plan.folder / "objects").mkdir(parents=True, exist_ok=True)
        plan.elf.unlink(missing_ok=True)
        for path, text in plan.files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FerruleError(f"cannot build in {plan.folder}: {error}") from None


def _compile(step: CompileStep, cwd: Path, objects: ObjectCache) -> None:
    if not objects.restore(step):
        _run(step.argv, cwd)
        objects.keep(step)


def _run(argv: Sequence[str], cwd: Path) -> None:
    try:
        done = subprocess.run(
            argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False
        )
    except OSError as error:
        raise BuildError(argv, cwd, -1, str(error)) from None
    if done.returncode:
        raise BuildError(argv, cwd, done.returncode, done.stdout.decode("utf-8", errors="replace"))


def _attempt(attempts: Sequence[Sequence[str]], cwd: Path) -> None:
    for argv in attempts[:-1]:
        try:
            return _run(argv, cwd)
        except BuildError as error:
            if not _UNDEFINED.search(error.output):
                raise
    return _run(attempts[-1], cwd)


def _link(plan: BuildPlan) -> None:
    try:
        _attempt(plan.link.attempts, plan.folder)
    except BuildError as error:
        plan.elf.unlink(missing_ok=True)
        if _OVERFLOW.search(error.output):
            too_large = _measure(plan.link, plan.board, plan.folder)
            if too_large is not None:
                raise too_large from None
        raise


def _measure(link: LinkStep, board: Board, folder: Path) -> TooLargeError | None:
    """Link with enlarged memories and return the error naming the memory that is too small; None if that fails."""
    try:
        _attempt(link.roomy_attempts, folder)
        image = read_image(link.roomy_output)
    except FerruleError:
        return None
    finally:
        link.roomy_output.unlink(missing_ok=True)
    return _overflow(image, board)


def _overflow(image: Image, board: Board) -> TooLargeError | None:
    begins = {memory.name: memory.address for memory in roomy_memories(board)}
    for memory, sections in _by_memory(image, board).items():
        need = max(end for _, end, _ in sections) - begins[memory]
        if need > board.memory(memory).size_bytes:
            parts: dict[str, int] = {}
            for section, _, size in sections:
                parts[section.group] = parts.get(section.group, 0) + size
            return TooLargeError(board, memory, need, tuple(parts.items()))
    return None


def _by_memory(image: Image, board: Board) -> dict[str, list[tuple[Section, int, int]]]:
    """Return each memory's sections with end and size; initialised data is listed for both of its memories."""
    homes = {
        ".text": board.placement.code,
        ".rodata": board.placement.code,
        ".ferrule_identity": board.placement.code,
        ".ferrule_sizes": board.placement.code,
        ".ferrule_weights": board.placement.weights,
        ".ferrule_stack": board.placement.stack,
        ".data": board.placement.data,
        ".bss": board.placement.data,
        ".ferrule_workspace": board.placement.workspace,
    }
    found: dict[str, list[tuple[Section, int, int]]] = {}
    for section in image.sections:
        home = homes.get(section.name)
        if home is None:
            continue
        found.setdefault(home, []).append((section, section.address + section.size_bytes, section.size_bytes))
        if section.name == ".data":
            end = section.load_address + section.size_bytes
            found.setdefault(board.placement.code, []).append((section, end, section.size_bytes))
    return found
