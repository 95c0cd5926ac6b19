# SPDX-License-Identifier: Apache-2.0
"""The estimates of compilers for pre-compiled layers, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ferrule._frozen import frozen
from ferrule.backends.optimization_views import EstimatedMemory, PreCompiledDescriptor
from ferrule.graph import Layer
from ferrule.report.base import Row, part_of
from ferrule.report.sections import Only, Part, State, Table, Text, names, numbers, share


@frozen
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
    memories: tuple[EstimatedMemory, ...]
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

    def section(self, layer: str) -> Part:
        """Return the estimate of a layer: the cycles of each layer that it replaced, and the use of memories."""
        layers = Table(
            f"estimated cycles of {layer}",
            (*names("in place of"), *numbers("estimated cycles", bar=True), *numbers("share")),
            [(name, count, share(self.share(count))) for name, count in self.layers.items()],
            largest="estimated cycles",
        )
        memories = Table(
            f"estimated use of memories by {layer}",
            (*names("memory"), *numbers("read, B", "written, B", "estimated cycles")),
            [(each.name, each.read_bytes, each.written_bytes, each.cycles) for each in self.memories],
        )
        total = Text(self.total, f"estimated by {self.source}")
        warnings = (Text(warning, "note", State.WARN) for warning in self.warnings)
        return Part(layer, (total, layers, memories if self.memories else None, *warnings))


Estimates = Sequence[tuple[str, EstimatePart]]
"""The estimates of pre-compiled layers, with the names of the layers."""


def estimate_part(layer: Layer) -> EstimatePart | None:
    """Return a layer's estimate; None for a layer that is not pre-compiled or whose compiler states none."""
    descriptor = layer.descriptor
    found = descriptor.estimate if isinstance(descriptor, PreCompiledDescriptor) else None
    if found is None:
        return None
    return part_of(EstimatePart, found, layers=dict(found.layers))


def distinct_estimates(layers: Iterable[tuple[str, EstimatePart | None]]) -> Estimates:
    """Return the layers that have estimates, each name and estimate once, in the given order."""
    found: list[tuple[str, EstimatePart]] = []
    for name, part in layers:
        if part is not None and (name, part) not in found:
            found.append((name, part))
    return tuple(found)


def estimates_part(estimates: Estimates) -> Part | None:
    """Return the section of estimates, which are given with the names of their layers; None without estimates."""
    if not estimates:
        return None
    text = "What compilers expect of pre-compiled layers. None of these numbers is measured."
    return Part(
        "Estimates of compilers", (Text(text, only=Only.PAGES), *(each.section(name) for name, each in estimates))
    )


def estimate_rows(place: Row, estimates: Estimates) -> Iterator[Row]:
    """Yield a row per estimate, and one for each of the layers in whose place it runs and for each memory."""
    for name, part in estimates:
        yield {
            **place,
            "row": "estimate",
            "layer": name,
            "estimated_cycles": part.cycles,
            "estimated_clock_hz": part.clock_hz,
            "estimated_by": part.source,
            "warnings": "; ".join(part.warnings),
        }
        inside: Row = {**place, "part_of": name, "estimated_by": part.source}
        for layer, cycles in part.layers.items():
            yield {
                **inside,
                "row": "estimated layer",
                "layer": layer,
                "estimated_cycles": cycles,
                "estimated_share": part.share(cycles),
            }
        for memory in part.memories:
            yield {
                **inside,
                "row": "estimated memory",
                "memory": memory.name,
                "estimated_cycles": memory.cycles,
                "estimated_read_bytes": memory.read_bytes,
                "estimated_written_bytes": memory.written_bytes,
            }
