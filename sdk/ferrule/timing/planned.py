# SPDX-License-Identifier: Apache-2.0
"""Planned times: the cycles of kernels on a core, from a table that was measured, without a build or a run.

The table of a core is planned/<core>.toml beside this module. `benchmarks/planned_time.py --update` writes it, from
layers of the shapes of public models that ran in the embedded engine with the clock `cycles`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec

from ferrule._frozen import frozen
from ferrule.documents import convert, read_toml
from ferrule.timing.memory_timing import BoardTiming, MemoryTiming

FOLDER = Path(__file__).parent / "planned"
_MOST_CYCLES = 1e6
"""Of a unit of work; it only finds slips in a table."""
_Cycles = Annotated[float, msgspec.Meta(gt=0, le=_MOST_CYCLES)]
_Rate = Annotated[float, msgspec.Meta(ge=0, le=_MOST_CYCLES)]
_LEAST_CACHE, _SMALL_CACHE = 256, 2048
"""Bytes of an instruction cache from which loops fit, as far as they do in 1 KiB, and above which all of them fit."""
_WORD, _MISS_LINE = 4, 8
"""Bytes of a read, and of the lines of `Accesses.misses`."""
_NO_WAITS = MemoryTiming()


@frozen
class KernelWork:
    """What a kernel does for a layer in one inference, as far as it is known before a build."""

    kernel: str
    """As `LoweredOp.kernel`."""
    instructions: int | None
    """The estimate of the kernel's costs; None if it states none."""
    elements: int = 0
    """Of the largest tensor that the layer reads or writes, without constants: the measure of kernels without an
    estimate."""
    weight_bytes: int = 0
    """Constants of the layer, as often as the kernel runs."""


class Accesses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The accesses of a kernel to the memories of code and weights, for each unit of its work."""

    code_bytes: _Rate
    """Bytes of code that run."""
    jumps: _Rate
    """Times that the next code is in another line of the memory, beyond those that follow from `code_bytes`."""
    misses: _Rate
    """Lines of 8 bytes that an instruction cache of 1 KiB does not have."""
    reads: _Rate
    """Reads of weights and literals."""

    def fetches(self, memory: MemoryTiming) -> float:
        """Return the fetches of code that wait for a memory, without its prefetch buffer."""
        cache = memory.instruction_cache
        if cache is None or cache.size_bytes < _LEAST_CACHE:
            width = memory.width_bytes if cache is None else cache.line_bytes
            return self.code_bytes / width + self.jumps
        return self.misses * _MISS_LINE / cache.line_bytes if cache.size_bytes <= _SMALL_CACHE else 0.0

    def data_reads(self, memory: MemoryTiming) -> float:
        """Return the reads of data that wait for a memory: weights are read in order, each word once."""
        cache = memory.data_cache
        return self.reads if cache is None else self.reads * _WORD / cache.line_bytes


class KernelTimings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cycles of a core's kernels, with code and weights in memories without wait states."""

    core: str
    """Arm's name in lower case: `cortex-m4`."""
    per_instruction: Annotated[dict[str, _Cycles], msgspec.Meta(min_length=1)]
    """By kernel: for each instruction of the estimate."""
    per_element: Annotated[dict[str, _Cycles], msgspec.Meta(min_length=1)]
    """By kernel without an estimate: for each of `KernelWork.elements`."""
    per_mac: _Cycles
    """For each multiply-accumulate of a layer whose kernel is not chosen yet."""
    per_output: _Cycles
    """For each element that such a layer writes."""
    per_weight_byte: dict[str, _Rate] = {}
    """By kernel: for each of `KernelWork.weight_bytes`, beside those of the instructions; 0 for others. A layer that
    uses each weight once loads more for its instructions than one that uses them for many pixels."""
    accesses: dict[str, Accesses] = {}
    """By kernel; one that is not here has the median of each rate for a cycle."""

    def unit(self, work: KernelWork) -> float:
        """Return the cycles of an instruction or element of a kernel; the median of all kernels if it is unknown."""
        known = self._known(work)
        return known.get(work.kernel) or median(known.values())

    def accesses_of(self, work: KernelWork) -> Accesses | None:
        """Return the accesses of a kernel for a unit of work; None if those of no kernel were measured."""
        if work.kernel in self.accesses or not self.accesses.keys() & {*self.per_instruction, *self.per_element}:
            return self.accesses.get(work.kernel)
        units = {**self.per_element, **self.per_instruction}
        known = {kernel: each for kernel, each in self.accesses.items() if kernel in units}
        rates = {
            name: median(getattr(each, name) / units[kernel] for kernel, each in known.items())
            for name in Accesses.__struct_fields__
        }
        return Accesses(**{name: rate * self.unit(work) for name, rate in rates.items()})

    def knows(self, work: KernelWork) -> bool:
        """Return whether the work's kernel was measured."""
        return work.kernel in self._known(work)

    def _known(self, work: KernelWork) -> Mapping[str, float]:
        return self.per_element if work.instructions is None else self.per_instruction


@frozen
class Pace:
    """How fast a core runs kernels, with code and weights in the memories of a board."""

    timings: KernelTimings = field(hash=False)
    code: MemoryTiming = _NO_WAITS
    weights: MemoryTiming = _NO_WAITS

    @property
    def waits(self) -> bool:
        """Whether accesses to code or weights wait."""
        return self.code.waits or self.weights.waits

    def cycles(self, work: KernelWork) -> int:
        """Return the planned cycles of a layer, at least 1; `knows` tells whether the kernel was measured."""
        units = work.elements if work.instructions is None else work.instructions
        streamed = self.timings.per_weight_byte.get(work.kernel, 0) * work.weight_bytes
        return max(round(units * (self.timings.unit(work) + self._waits(work)) + streamed), 1)

    def rough_cycles(self, macs: int, outputs: int) -> int:
        """Return the cycles of a layer whose kernel is not chosen yet, without waits; at least 1."""
        return max(round(self.timings.per_mac * macs + self.timings.per_output * outputs), 1)

    def _waits(self, work: KernelWork) -> float:
        """Return the cycles that a unit of work waits for memories."""
        accesses = self.timings.accesses_of(work)
        if accesses is None or not self.waits:
            return 0.0
        fetches, wait = accesses.fetches(self.code), self.code.wait_states
        waits = wait * fetches
        if self.code.prefetch and fetches:  # the memory reads the next line while the core runs the present one
            hidden = min(wait, max(self.timings.unit(work) / fetches - 1, 0))
            waits = wait * min(accesses.jumps, fetches) + (wait - hidden) * max(fetches - accesses.jumps, 0)
        return waits + self.weights.wait_states * accesses.data_reads(self.weights)

    def knows(self, work: KernelWork) -> bool:
        """Return whether the work's kernel was measured on the core."""
        return self.timings.knows(work)


def read_kernel_timings(path: Path) -> KernelTimings:
    """Read a core's table; FerruleError if it cannot be read, or a key is missing, unknown or out of its range."""
    return convert(str(path), read_toml(path), KernelTimings)


@cache
def kernel_timings(core: str) -> KernelTimings | None:
    """Return the cycles of a core's kernels; None for a core without a table."""
    path = FOLDER / f"{core}.toml"
    return read_kernel_timings(path) if path.is_file() else None


def pace_of(core: str, timing: BoardTiming | None, *, code: str, weights: str) -> Pace | None:
    """Return how fast a core runs kernels on a board; None for a core without a table.

    Args:
        core: Arm's name in lower case.
        timing: the waits of the board's memories; None if they are not stated, and then taken to be none.
        code: the name of the memory with the code.
        weights: that of the memory with the weights.
    """
    timings = kernel_timings(core)
    if timings is None:
        return None
    memories = {} if timing is None else timing.memories
    return Pace(timings=timings, code=memories.get(code, _NO_WAITS), weights=memories.get(weights, _NO_WAITS))
