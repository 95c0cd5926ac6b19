# SPDX-License-Identifier: Apache-2.0
"""Executes a build plan."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ferrule.boards import Board, board_names, load_board
from ferrule.cache import tool_environment
from ferrule.child_process import CommandError, ending, kill, start
from ferrule.errors import FerruleError
from ferrule.firmware.image import Image, Section, read_image
from ferrule.firmware.linker import roomy_memories
from ferrule.firmware.object_cache import ObjectCache
from ferrule.firmware.plan import BuildPlan, CompileStep, LinkStep
from ferrule.reading import read_bytes
from ferrule.scratch import locked, writing

EXIT_NOT_STARTED = 127

_UNDEFINED = re.compile(r"undefined (?:symbol|reference)")
_OVERFLOW = re.compile(r"will not fit in region|overflowed by|address .*out of range|does not fit|relocation truncated")


class BuildError(CommandError):
    """A command of the build failed."""


class TooLargeError(FerruleError):
    """The firmware does not fit into a memory of the board."""

    def __init__(
        self, board: Board, memory: str, need_bytes: int, parts: Sequence[tuple[str, int]], roomier: Sequence[str]
    ) -> None:
        """`roomier` are the boards that have room for all parts."""
        self.memory = memory
        self.need_bytes = need_bytes
        self.have_bytes = board.memory(memory).size_bytes
        self.parts = tuple(parts)
        listed = ", ".join(f"{name} {size:,} B" for name, size in self.parts)
        super().__init__(
            f"the firmware is too big for board {board.name}: memory '{memory}' holds {self.have_bytes:,} B, "
            f"{need_bytes:,} B are needed ({need_bytes - self.have_bytes:,} B too many): {listed}",
            hint="take a board with more memory, a smaller model, or change [placement] in its board.toml; boards with "
            f"room for these parts: {', '.join(roomier) or 'none'}",
        )


class Commands:
    """Runs the commands of a build, for several threads; each command holds the build's lock until it ends."""

    def __init__(self, cwd: Path, lock: int) -> None:
        self._cwd = cwd
        self._inherited = (lock,) if lock >= 0 else ()
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, argv: Sequence[str]) -> None:
        """Run a command; BuildError if it fails or the build has been stopped."""
        try:
            process = self._start(argv)
        except OSError as error:
            raise self._error(argv, EXIT_NOT_STARTED, str(error)) from None
        output, _ = process.communicate()
        with self._guard:
            self._running.discard(process)
        if process.returncode:
            raise self._error(argv, process.returncode, output.decode(errors="replace"))

    def _error(self, argv: Sequence[str], code: int, output: str) -> BuildError:
        how = f"{'was ended by' if code < 0 else 'failed with'} {ending(code)}"
        hint = f"in {self._cwd}: {shlex.join(argv)}"
        return BuildError(f"{Path(argv[0]).name} {how}:", argv, cwd=self._cwd, exit_code=code, output=output, hint=hint)

    def attempt(self, attempts: Sequence[Sequence[str]]) -> None:
        """Run the first of several links that lacks no symbol; BuildError if none succeeds."""
        for argv in attempts[:-1]:
            try:
                return self.run(argv)
            except BuildError as error:
                if not _UNDEFINED.search(error.output):
                    raise
        return self.run(attempts[-1])

    def stop(self) -> None:
        """Kill the running commands with their children, and start no others."""
        with self._guard:
            self._stopped = True
            for process in self._running:
                kill(process)

    def _start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._guard:
            if self._stopped:
                raise self._error(argv, EXIT_NOT_STARTED, "the build was stopped")
            process = start(
                argv, cwd=self._cwd, environment=tool_environment(), pass_fds=self._inherited, together=True
            )
            self._running.add(process)
            return process


def execute(
    plan: BuildPlan, *, progress: Callable[[int, int, str], None] = lambda *_: None, jobs: int | None = None
) -> Path:
    """Build the firmware and return the path of its ELF file; on failure no firmware is left in the folder.

    Objects that an earlier build produced with the same command from the same files are taken from the cache, and so is
    the firmware if all objects are the same. A build waits for another one in the same folder to end. A build that is
    killed leaves no firmware, and nothing that the next build uses.

    `progress` is called in the caller's thread with the number of completed steps, the number of all steps and the
    name of the file just built; the name is "" while the build waits for another one. `jobs` is the number of
    compilers run in parallel, by default one per core.

    Raises:
        BuildError: a command failed.
        TooLargeError: the firmware does not fit into the board's memories.
        FerruleError: the folder cannot be written.
    """
    total = len(plan.compile) + 1
    with _prepared(plan, waiting=lambda: progress(0, total, "")) as lock:
        commands = Commands(plan.folder, lock)
        objects = ObjectCache(plan)
        try:
            _compile_all(plan, commands, objects, lambda done, name: progress(done, total, name), jobs)
            _link(plan, commands, objects)
        except BaseException:
            commands.stop()
            raise
        objects.prune()
    progress(total, total, plan.elf.name)
    return plan.elf


@contextmanager
def _prepared(plan: BuildPlan, waiting: Callable[[], object]) -> Iterator[int]:
    """Hold the lock of the build's folder, which has the linker scripts and no firmware; yield its descriptor."""
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            lock = stack.enter_context(locked(plan.folder, waiting=waiting))
            for path in (plan.elf, plan.link.unfinished, plan.link.roomy_output):
                path.unlink(missing_ok=True)
            for step in plan.compile:
                step.output.parent.mkdir(parents=True, exist_ok=True)
            for path, text in plan.files.items():
                path.write_text(text, encoding="utf-8")
            held = stack.pop_all()
    except OSError as error:
        raise FerruleError(f"cannot build in {plan.folder}: {error}") from None
    with held:
        yield lock


def _compile_all(
    plan: BuildPlan, commands: Commands, objects: ObjectCache, say: Callable[[int, str], None], jobs: int | None
) -> None:
    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1) as pool:
        waiting = {pool.submit(_compile, step, commands, objects): step for step in plan.compile}
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                future.result()
                say(done, waiting[future].output.name)
        except BaseException:
            commands.stop()
            pool.shutdown(cancel_futures=True)
            raise


def _compile(step: CompileStep, commands: Commands, objects: ObjectCache) -> None:
    if not objects.restore(step):
        commands.run(step.argv)
        objects.keep(step)


def _link(plan: BuildPlan, commands: Commands, objects: ObjectCache) -> None:
    link = plan.link
    argv = [word for attempt in link.attempts for word in attempt]
    inputs = (link.script, *link.inputs)
    try:
        with writing(plan.elf):
            known = objects.firmware(argv, inputs)
            if known is None:
                commands.attempt(link.attempts)
                objects.keep_firmware(argv, inputs, read_bytes(link.unfinished))
            else:  # with the rights that a linker gives it
                with open(link.unfinished, "wb", opener=lambda path, flags: os.open(path, flags, 0o777)) as file:
                    file.write(known)
            link.unfinished.replace(plan.elf)
    except BuildError as error:
        if _OVERFLOW.search(error.output):
            too_large = _measure(link, plan.board, commands)
            if too_large is not None:
                raise too_large from None
        raise
    finally:
        link.unfinished.unlink(missing_ok=True)


def _measure(link: LinkStep, board: Board, commands: Commands) -> TooLargeError | None:
    """Link with enlarged memories and return the error naming the memory that is too small; None if that fails."""
    try:
        commands.attempt(link.roomy_attempts)
        image = read_image(link.roomy_output)
    except FerruleError:
        return None
    finally:
        link.roomy_output.unlink(missing_ok=True)
    begins = {memory.name: memory.address for memory in roomy_memories(board)}
    for memory, sections in _by_memory(image, board).items():
        need = max(end for _, end in sections) - begins[memory]
        if need > board.memory(memory).size_bytes:
            parts: Counter[str] = Counter()
            for section, _ in sections:
                parts[section.group] += section.size_bytes
            return TooLargeError(board, memory, need, tuple(parts.items()), _roomier(image))
    return None


def _roomier(image: Image) -> tuple[str, ...]:
    """Return the names of the boards whose memories are large enough for the sections of a firmware."""
    found = []
    for name in board_names():
        try:
            board = load_board(name)
        except FerruleError:
            continue
        if all(
            sum(section.size_bytes for section, _ in sections) <= board.memory(memory).size_bytes
            for memory, sections in _by_memory(image, board).items()
        ):
            found.append(name)
    return tuple(found)


def _by_memory(image: Image, board: Board) -> dict[str, list[tuple[Section, int]]]:
    """Return each memory's sections with their ends; initialised data is listed for both of its memories."""
    placement = board.placement
    homes = {
        ".text": placement.code,
        ".rodata": placement.code,
        ".ferrule_identity": placement.code,
        ".ferrule_sizes": placement.code,
        ".ferrule_weights": placement.weights,
        ".ferrule_stack": placement.stack,
        ".data": placement.data,
        ".bss": placement.data,
        ".ferrule_workspace": placement.workspace,
        **{f".ferrule_workspace.{memory.name}": memory.name for memory in board.memories},
    }
    found: dict[str, list[tuple[Section, int]]] = {}
    for section in image.sections:
        places = [(homes[section.name], section.address)] if section.name in homes else []
        if section.name == ".data":
            places.append((placement.code, section.load_address))
        for home, address in places:
            found.setdefault(home, []).append((section, address + section.size_bytes))
    return found
