# SPDX-License-Identifier: Apache-2.0
"""Compares what a firmware's plan needs with the memories of boards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from math import inf

from ferrule._frozen import frozen
from ferrule.backends.target import CoreFeatures, Goal, MemoryKind
from ferrule.boards import Board, board_names, load_board
from ferrule.codegen import Program
from ferrule.codegen.plan import REGION, memory_of
from ferrule.codegen.shared_arena import arena_sizes
from ferrule.errors import FerruleError
from ferrule.firmware.arena import ArenaPart, arena_of
from ferrule.firmware.board_use import NOTHING_ASKED, BoardUse, Usage, board_use
from ferrule.firmware.job import Job
from ferrule.firmware.placement import emit_program
from ferrule.firmware.project import SMALLEST_STACK_BYTES
from ferrule.network import Network
from ferrule.timing.planned import Pace


@frozen
class MemoryNeed:
    """What the plan places in one memory of a board. The code is not part of it: only a build knows its size."""

    memory: str
    kind: str
    """"flash" or "ram"."""
    parts: dict[str, int]
    """Bytes of "weights", "arena", "state" and "stack", of those that lie in this memory."""
    need_bytes: int
    have_bytes: int

    @property
    def missing_bytes(self) -> int:
        """By how much the memory is too small; 0 if it is not."""
        return max(0, self.need_bytes - self.have_bytes)


@frozen
class BoardFit:
    """Whether the plan of a firmware fits a board."""

    board: str
    fits: bool
    memories: tuple[MemoryNeed, ...] = ()
    arena: ArenaPart | None = None
    """The arena of the firmware for this board, also where it does not fit; None if there is no plan."""
    problem: str = ""
    """Why there is no plan for the board, such as a device that it has no place for; empty if there is one."""
    use: BoardUse | None = None
    """What an inference takes of the board, from planned costs; None if there is no plan."""

    @property
    def missing(self) -> str:
        """By how much the board is too small, or why there is no plan for it; empty if the plan fits."""
        if self.problem:
            return self.problem
        return ", ".join(
            f"{each.missing_bytes:,} B too many for {each.kind} '{each.memory}'"
            for each in self.memories
            if each.missing_bytes
        )

    @property
    def suits(self) -> bool:
        """Whether the plan fits, and the board is not too slow for the rate that was asked for."""
        return self.fits and not (self.use is not None and self.use.too_slow)

    def bytes_of(self, kind: MemoryKind) -> int:
        """Return what the plan needs of all memories of a kind."""
        return sum(need.need_bytes for need in self.memories if need.kind == kind)


class RankBy(StrEnum):
    """What boards are ranked by, those that suit first; the others decide between boards that are equal in it."""

    TIME = "time"
    """Planned milliseconds. Boards without come behind those with, in the order of instructions by clock."""
    ENERGY = "energy"
    """Millijoules of an inference; boards that state no currents come last."""
    FLASH = "flash"
    RAM = "ram"


def rank(boards: Iterable[BoardFit], by: RankBy = RankBy.TIME) -> tuple[BoardFit, ...]:
    """Return the boards in the order of what an inference takes of them, the best first."""

    def order(fit: BoardFit) -> tuple[object, ...]:
        keys = {each: _measure(fit, each) for each in RankBy}
        return (not fit.suits, not fit.fits, keys.pop(by), *keys.values(), fit.board)

    return tuple(sorted(boards, key=order))


def _measure(fit: BoardFit, by: RankBy) -> tuple[bool, float]:
    """Return whether a value is not known, and the value."""
    use = fit.use
    match by:
        case RankBy.TIME if use is not None and use.milliseconds is not None:
            return False, use.milliseconds
        case RankBy.TIME:
            return True, inf if use is None or use.instructions is None else use.instructions / use.clock_hz
        case RankBy.ENERGY:
            return (True, 0.0) if use is None or use.energy_mj is None else (False, sum(use.energy_mj))
        case RankBy.FLASH:
            return not fit.memories, fit.bytes_of(MemoryKind.FLASH)
        case RankBy.RAM:
            return not fit.memories, fit.bytes_of(MemoryKind.RAM)


def fits(network: Network, job: Job, usage: Usage = NOTHING_ASKED) -> tuple[BoardFit, ...]:
    """Return, for each board and the job's own, whether a firmware of this network fits, lowered for its core.

    Each has the time and the energy of an inference that follow from planned costs, also for a rate and a battery. A
    board whose own files are invalid is left out.
    """
    given, known = job.load_board(), list(_boards())
    programs: dict[tuple[CoreFeatures, Pace | None], Program] = {}
    """By what the choice of kernels depends on."""

    def fit(board: Board) -> BoardFit:
        key = board.cpu.features, board.pace if job.goal == Goal.TIME else None
        try:
            program = programs.get(key) or emit_program([network], replace(job, board=board), limited=False)
        except FerruleError as error:
            return BoardFit(board=board.name, fits=False, problem=str(error))
        if not program.devices:  # whose places and memories are the board's
            programs[key] = program
        return _fit(program, job, board, usage)

    return tuple(map(fit, known if given.name in board_names() else [given, *known]))


def board_fit(network: Network, job: Job) -> BoardFit:
    """Return whether a firmware of this network fits the job's board, and what an inference takes there, as planned.

    Raises:
        FerruleError: there is no firmware for the job.
    """
    return _fit(emit_program([network], job, limited=False), job, job.load_board(), NOTHING_ASKED)


def _fit(program: Program, job: Job, board: Board, usage: Usage) -> BoardFit:
    needs = _needs(program, board)
    return BoardFit(
        board=board.name,
        fits=not any(need.missing_bytes for need in needs),
        memories=needs,
        arena=arena_of(program.artifacts[0], replace(job, board=board)),
        use=board_use(program.artifacts[0], board, usage),
    )


def roomier_boards(networks: Sequence[Network], job: Job) -> tuple[str, ...]:
    """Return the boards whose memories are large enough for the plan that the job's own board cannot hold.

    The plan is that for the core of the job's board; `fits` plans for each core.
    """
    program = emit_program(networks, job, limited=False)
    others = [each for artifact in program.artifacts for each in artifact.storage.arenas if each.name != REGION]
    found = []
    for board in _boards():
        places = {memory.name for memory in board.memories}
        if all(memory_of(region) in places for region in others) and not any(
            need.missing_bytes for need in _needs(program, board)
        ):
            found.append(board.name)
    return tuple(found)


def _boards() -> Iterator[Board]:
    for name in board_names():
        with suppress(FerruleError):
            yield load_board(name)


def _needs(program: Program, board: Board) -> tuple[MemoryNeed, ...]:
    parts: dict[str, Counter[str]] = {memory.name: Counter() for memory in board.memories}
    placement = board.placement
    for artifact in program.artifacts:
        parts[placement.weights]["weights"] += sum(record.constant_bytes for record in artifact.operators)
    parts[placement.stack]["stack"] += placement.stack_bytes if placement.stack_is_stated else SMALLEST_STACK_BYTES
    for artifacts in [program.artifacts] if program.arena else [(each,) for each in program.artifacts]:
        regions = {region.name: region for artifact in artifacts for region in artifact.storage.arenas}
        for name, size_bytes in arena_sizes(artifacts).items():
            parts[placement.workspace if name == REGION else memory_of(regions[name])]["arena"] += size_bytes
    for artifact in program.artifacts:
        if artifact.state_bytes:
            parts[placement.workspace]["state"] += artifact.state_bytes
    return tuple(
        MemoryNeed(
            memory=memory.name,
            kind=str(memory.kind),
            parts=dict(parts[memory.name]),
            need_bytes=parts[memory.name].total(),
            have_bytes=memory.size_bytes,
        )
        for memory in board.memories
        if parts[memory.name]
    )
