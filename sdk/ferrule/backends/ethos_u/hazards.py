# SPDX-License-Identifier: Apache-2.0
"""Waits that a stream lacks, which a model that executes in order would hide.

Kernels and DMAs run beside each other; DMA_WAIT k waits until at most k DMAs are outstanding, KERNEL_WAIT n until at
most n kernels are. Kernels overlap with each other by blocks: BLOCKDEP states how many block jobs of the previous
kernel may be outstanding when one of the next begins. The queue has 2 kernels, and 1 DMA, or 2 on U65. The rules are
those by which Vela 5.2.0 inserts waits; the NPU may need fewer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.ethos_u.blocks import allowed_dependency, clobbers_tables
from ferrule.backends.ethos_u.commands import Kind, Short
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.dma import Copy
from ferrule.backends.ethos_u.kernel import Kernel
from ferrule.backends.ethos_u.machine import INTERNAL, LUT_BYTES, Range
from ferrule.backends.ethos_u.stream import Operation

KERNELS = 2
"""Kernels in the queue; a third waits until the first is done."""
_DMAS = {0: 1, 1: 2}
"""DMAs in the queue, by product."""


@frozen
class Hazard:
    """A wait that a stream lacks."""

    operation: Operation
    """The operation that may start too early."""
    earlier: Operation
    """The operation that may still run then."""
    range: Range
    """What both access, and one of them writes."""
    missing: str
    """What would prevent it, such as "DMA_WAIT 0"."""

    @override
    def __str__(self) -> str:
        return (
            f"word {self.operation.word_offset} ({self.operation.name}) accesses {self.range} while word"
            f" {self.earlier.word_offset} ({self.earlier.name}) may still run: {self.missing} is missing"
        )


@frozen(eq=False)
class _Outstanding:
    operation: Operation
    kernel: Kernel
    reads: tuple[Range, ...]
    writes: tuple[Range, ...]

    def conflict(self, later: _Outstanding) -> Range | None:
        """Return the range of a later operation that must not be accessed yet."""
        pairs = ((self.writes, later.reads), (self.writes, later.writes), (self.reads, later.writes))
        shared = (other for mine, theirs in pairs for own in mine for other in theirs if own.meets(other))
        return next(shared, None)


class HazardTracker:
    """Follows the operations of a stream in order."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._kernels: deque[_Outstanding] = deque(maxlen=KERNELS)
        self._copies: deque[_Outstanding] = deque(maxlen=_DMAS[configuration.product])
        self._previous: _Outstanding | None = None
        """The last kernel, unless a wait came after it."""

    def issue(self, operation: Operation, kernel: Kernel | None) -> tuple[Hazard, ...]:
        """Return the waits that are missing in front of an operation."""
        if operation.kind is Kind.DMA_WAIT:
            _retire(self._copies, operation.parameter)
        elif operation.kind is Kind.KERNEL_WAIT:
            _retire(self._kernels, operation.parameter)
            if not self._kernels:
                self._previous = None
        if kernel is None:
            return ()
        current = _Outstanding(
            operation=operation,
            kernel=kernel,
            reads=kernel.work.reads,
            writes=(*kernel.work.writes, *self._internal_writes(kernel)),
        )
        if isinstance(kernel, Copy):
            found = list(_conflicts(self._kernels, current, "KERNEL_WAIT"))
            self._copies.append(current)
            return tuple(found)
        found = list(_conflicts(self._copies, current, "DMA_WAIT"))
        if self._previous is not None:
            found += self._dependency(self._previous, current)
        self._kernels.append(current)
        self._previous = current
        return tuple(found)

    def _internal_writes(self, kernel: Kernel) -> tuple[Range, ...]:
        """Return the internal memory that a kernel's accumulators may use."""
        if isinstance(kernel, Copy):
            return ()
        size = self._configuration.shram_bytes
        end = size if clobbers_tables(kernel, self._configuration) else size - LUT_BYTES
        return (Range(INTERNAL, 0, end),)

    def _dependency(self, previous: _Outstanding, current: _Outstanding) -> Iterator[Hazard]:
        """Yield a hazard if BLOCKDEP lets a kernel read what the previous kernel has not written yet."""
        stated = current.operation.registers[Short.BLOCKDEP] & 3
        allowed, shared = allowed_dependency(previous.kernel, current.kernel, self._configuration)
        if stated > allowed:
            yield Hazard(
                operation=current.operation,
                earlier=previous.operation,
                range=shared,
                missing=f"a BLOCKDEP of {allowed} (it is {stated}) or KERNEL_WAIT 0",
            )


def _retire(outstanding: deque[_Outstanding], left: int) -> None:
    while len(outstanding) > left:
        outstanding.popleft()


def _conflicts(outstanding: deque[_Outstanding], current: _Outstanding, wait: str) -> Iterator[Hazard]:
    """Yield the conflict with the youngest operation that has one; its wait covers the older ones."""
    for younger, earlier in enumerate(reversed(outstanding)):
        shared = earlier.conflict(current)
        if shared is not None:
            yield Hazard(
                operation=current.operation,
                earlier=earlier.operation,
                range=shared,
                missing=f"{wait} {younger}",
            )
            return
