# SPDX-License-Identifier: Apache-2.0
"""The estimates of compilers for pre-compiled layers, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.graph import Layer
from ferrule.report.tables import print_table

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedMemoryPart:
    """A compiler's estimate of the use of one memory in one inference."""

    name: str
    cycles: int
    """Cycles of the device in which it accesses the memory."""
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatePart:
    """What a compiler expects of a pre-compiled layer; nothing of it is measured."""

    source: str
    """The compiler, and what it has compiled for."""
    cycles: int
    """Cycles of the device for one inference."""
    clock_hz: int
    """The clock of the device that the compiler assumes."""
    layers: dict[str, int]
    """The cycles of the layers in whose place it runs, by name."""
    memories: tuple[EstimatedMemoryPart, ...]
    warnings: tuple[str, ...]
    """The compiler's warnings."""

    @property
    def total(self) -> str:
        """The cycles of one inference, and their time if the clock is known, as text."""
        cycles = f"{self.cycles:,} cycles"
        if self.clock_hz <= 0:  # in a document that another program wrote
            return cycles
        return f"{cycles}, {1e3 * self.cycles / self.clock_hz:.3f} ms at {self.clock_hz / 1e6:g} MHz"

    def share(self, cycles: int) -> float:
        """Return the share of cycles in those of the inference, 0 to 1."""
        return cycles / max(self.cycles, 1)


def estimate_part(layer: Layer) -> EstimatePart | None:
    """Return a layer's estimate; None for a layer that is not pre-compiled or whose compiler states none."""
    descriptor = layer.descriptor
    found = descriptor.estimate if isinstance(descriptor, PreCompiledDescriptor) else None
    if found is None:
        return None
    return EstimatePart(
        source=found.source,
        cycles=found.cycles,
        clock_hz=found.clock_hz,
        layers=dict(found.layers),
        memories=tuple(
            EstimatedMemoryPart(
                name=each.name, cycles=each.cycles, read_bytes=each.read_bytes, written_bytes=each.written_bytes
            )
            for each in found.memories
        ),
        warnings=found.warnings,
    )


def distinct_estimates(layers: Iterable[tuple[str, EstimatePart | None]]) -> tuple[tuple[str, EstimatePart], ...]:
    """Return the layers that have estimates, each name and estimate once, in the given order."""
    found: list[tuple[str, EstimatePart]] = []
    for name, part in layers:
        if part is not None and (name, part) not in found:
            found.append((name, part))
    return tuple(found)


def print_estimates(estimates: Iterable[tuple[str, EstimatePart]], console: Console) -> None:
    """Print the estimates of layers, given with their names: cycles of each replaced layer, totals and memories."""
    from rich.markup import escape

    for name, part in estimates:
        rows = [(escape(layer), f"{cycles:,}", f"{part.share(cycles):.1%}") for layer, cycles in part.layers.items()]
        print_table(
            console,
            ("in place of", "cycles", "share"),
            rows,
            right=("cycles", "share"),
            whole=("in place of",),
            title=escape(f"estimated cycles of {name}"),
        )
        console.print(escape(f"estimated by {part.source}: {part.total}"), highlight=False)
        for memory in part.memories:
            moved = f"{memory.read_bytes:,} B read, {memory.written_bytes:,} B written"
            console.print(escape(f"estimated: {memory.name} {moved} in {memory.cycles:,} cycles"), highlight=False)
        for warning in part.warnings:
            console.print(f"[yellow]note[/]: {escape(warning)}", highlight=False)
