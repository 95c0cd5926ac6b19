# SPDX-License-Identifier: Apache-2.0
"""Runs samples on an emulated or real board: a seeded part of them as a proof, or all of them in several processes."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import field, replace

import numpy as np

from ferrule._frozen import positional
from ferrule.emulation import CrashReport, EngineError
from ferrule.errors import FerruleError
from ferrule.evaluation.data import Chunk, DataSet
from ferrule.graph import Array
from ferrule.interface import is_command_line, name_of, spell_for
from ferrule.network.samples import split
from ferrule.progress import Step, say_nothing
from ferrule.running import Firmware, RunRequest
from ferrule.running.session import RunningFirmware
from ferrule.timing import DataWaits

PIECE = 32
"""The most samples that a process runs at a time, except for sequences, which are not divided."""
_PIECES_PER_JOB = 4
"""The least pieces per job, if there are enough samples, so that all end at about the same time."""


def cpu_s() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def beginnings(data: DataSet, indices: Sequence[int]) -> list[bool]:
    """Return by sample whether it begins with the initial state: all of them, or the first of each sequence."""
    if data.sequences is None:
        return [True] * len(indices)
    numbers, order = data.sequences, data.order
    return [not index or bool(numbers[order[index]] != numbers[order[index - 1]]) for index in indices]


def drawn_for_proof(data: DataSet, count: int, seed: int, *, stateful: bool) -> tuple[int, ...]:
    """Return the places of samples drawn with a seed, ascending; all if there are no more than `count`.

    Of a model with state and sequences, they are whole sequences, the last of which may end early.
    """
    if count >= len(data):
        return tuple(range(len(data)))
    random = np.random.default_rng(seed)
    if not stateful or data.sequences is None:
        return tuple(int(index) for index in np.sort(random.choice(len(data), count, replace=False)))
    numbers = data.sequences[list(data.order)]
    places: list[int] = []
    for number in random.permutation(np.unique(numbers)):
        places += np.flatnonzero(numbers == number)[: count - len(places)].tolist()
        if len(places) == count:
            break
    return tuple(sorted(places))


def pieces(data: DataSet, jobs: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of consecutive samples that one process runs, each from the beginning of a sequence."""
    size = max(1, min(PIECE, len(data) // (_PIECES_PER_JOB * jobs)))
    begins = beginnings(data, range(len(data)))
    start = 0
    for index in range(1, len(data)):
        if index - start >= size and begins[index]:
            yield start, index
            start = index
    yield start, len(data)


def processes(data: DataSet, jobs: int) -> int:
    """Return the number of processes that `run_all` uses."""
    return min(jobs, sum(1 for _ in pieces(data, jobs)))


@positional
class Ran:
    """All samples on a board."""

    outputs: list[Array]
    """Joined along the first axis."""
    cpu_s: float
    """Processor seconds."""
    longest: int | None
    """The most time of an inference, in units of the clock; None if the engine cannot tell."""
    data_waits: Mapping[DataWaits, int] = field(default_factory=dict)
    """The number of inferences by where their waits for data come from."""


def run_all(firmware: Firmware, request: RunRequest, data: DataSet, jobs: int) -> Ran:
    """Run all samples on the board.

    With several jobs, each is a process with a board of its own. A state is reset for each sample, or where a sequence
    begins.

    Raises:
        FerruleError: as `Firmware.run` does; or a process ended.
    """
    phase = f"running all samples on {firmware.board.name} by {request.engine}"
    progress = request.progress
    progress(Step(phase=phase))
    results: list[list[Array]] = []
    used = processes(data, jobs)
    if used == 1:
        before = cpu_s()
        with RunningFirmware(firmware, request) as running:
            for first, end in pieces(data, jobs):
                results.append(_run_piece(running, *_piece(data, first, end)))
                progress(Step(phase=phase, done=end, total=len(data)))
            longest, told = running.longest, running.data_waits
        return Ran(joined_rows(results), cpu_s() - before, longest, told)
    spent: dict[int, float] = {}
    times: list[int] = []
    origins: dict[int, Mapping[DataWaits, int]] = {}
    waiting: deque[tuple[int, Future[_Answer]]] = deque()

    def collect() -> None:
        end, future = waiting.popleft()
        answer = future.result()
        spent[answer.process] = answer.cpu_s
        origins[answer.process] = answer.data_waits
        times.extend([] if answer.longest is None else [answer.longest])
        results.append(answer.result())
        progress(Step(phase=phase, done=end, total=len(data)))

    with _pool(firmware, request, used) as pool:
        try:
            for first, end in pieces(data, jobs):
                if len(waiting) >= 2 * jobs:  # the inputs of few pieces are in memory at a time
                    collect()
                waiting.append((end, pool.submit(_work, *_piece(data, first, end))))
            while waiting:
                collect()
        except BrokenProcessPool as error:
            raise FerruleError(
                "a process that ran samples on the board has ended unexpectedly",
                hint=f"is there enough memory for this number of {name_of('jobs')}?",
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)
    together = sum(map(Counter, origins.values()), Counter[DataWaits]())
    return Ran(joined_rows(results), sum(spent.values()), max(times, default=None), together)


def _piece(data: DataSet, first: int, end: int) -> tuple[Chunk, list[bool]]:
    return data.take(range(first, end)), beginnings(data, range(first, end))


def joined_rows(parts: Sequence[Sequence[Array]]) -> list[Array]:
    """Return the arrays of several results joined along the first axis; scalars become rows."""
    return [np.concatenate([np.atleast_1d(part[index]) for part in parts]) for index in range(len(parts[0]))]


def _run_piece(running: RunningFirmware, chunk: Chunk, begins: Sequence[bool]) -> list[Array]:
    samples = split(running.network.inputs, chunk.inputs)
    return joined_rows([running.run(sample, reset=begin) for sample, begin in zip(samples, begins, strict=True)])


def _pool(firmware: Firmware, request: RunRequest, jobs: int) -> ProcessPoolExecutor:
    """Return processes, each with the firmware on a board of its own; they share no memory with this one."""
    portable = replace(firmware, lease=None, job=replace(firmware.job, registry=None))
    request = replace(request, progress=say_nothing)
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_begin, initargs=(portable, request, is_command_line())
    )


@positional
class _Answer:
    """What a process answers for a piece."""

    process: int
    cpu_s: float
    """Processor seconds of the process since its start."""
    outputs: list[Array] | None
    longest: int | None = None
    """The most time of an inference of the process."""
    data_waits: Mapping[DataWaits, int] = field(default_factory=dict)
    """The number of its inferences by where their waits for data come from."""
    error: str = ""
    """Why there are no outputs."""
    hint: str | None = None
    report: CrashReport | None = None

    def result(self) -> list[Array]:
        """Return the outputs, or raise the error as this process would have; not every error can be sent."""
        if self.outputs is not None:
            return self.outputs
        if self.report is not None:
            raise EngineError(self.error, hint=self.hint, report=self.report)
        raise FerruleError(self.error, hint=self.hint)


class _Worker:
    """In a process of `_pool`: its board, which is started for the first piece."""

    firmware: Firmware
    request: RunRequest
    running: RunningFirmware | None = None


def _begin(firmware: Firmware, request: RunRequest, on_command_line: bool) -> None:
    spell_for(command_line=on_command_line)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the process that reports it
    _Worker.firmware, _Worker.request = firmware, request


def _work(chunk: Chunk, begins: Sequence[bool]) -> _Answer:
    try:
        if _Worker.running is None:
            _Worker.running = RunningFirmware(_Worker.firmware, _Worker.request)
            atexit.register(_Worker.running.close)
        outputs = _run_piece(_Worker.running, chunk, begins)
    except FerruleError as error:
        report = error.report if isinstance(error, EngineError) else None
        return _Answer(os.getpid(), cpu_s(), None, error=str(error), hint=error.hint, report=report)
    return _Answer(os.getpid(), cpu_s(), outputs, _Worker.running.longest, Counter(_Worker.running.data_waits))
