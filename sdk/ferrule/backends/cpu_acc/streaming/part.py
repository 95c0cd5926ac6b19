# SPDX-License-Identifier: Apache-2.0
"""A part of a division of a graph's layers: a chain, or a single layer, and the memory that it needs."""

from __future__ import annotations

from ferrule._frozen import frozen


@frozen
class Part:
    """Consecutive layers of a graph that run as one; sizes are in bytes."""

    first: int
    """Index of its first layer."""
    end: int
    rows: int = 0
    """Rows that its stages compute at once; 0 for a single layer that runs as a whole."""
    cost: float
    """Estimated instructions."""
    source: int = 0
    """Size of the inputs that nothing reads later."""
    output: int = 0
    lines: int = 0
    """Size of the line buffers."""
    others: int = 0
    """Size of the tensors that live on beside it."""
    distance: int | None = None
    """As `Overlap.distance_bytes` of the output; None if it must not overlap an input."""
    lines_distance: int = 0
    """As `Overlap.distance_bytes` of the line buffers; without an effect if `distance` is None."""

    @property
    def peak_bytes(self) -> int:
        """The least bytes of tensors while it runs, wherever its input lies."""
        found = [self.source + self.output + self.lines]
        if self.distance is not None:
            extent = max(self.distance + self.source, self.output, self.source)
            between = max(self.distance, self.output + self.lines_distance) + self.source
            found += [extent + self.lines, max(between, self.source, self.output + self.lines)]
        return min(found) + self.others

    def highest_output(self, peak: int, highest_input: int) -> int | None:
        """Return the highest place of the output in memory of `peak` bytes; None if it has none.

        The input can have any place up to `highest_input`.
        """
        room, places = peak - self.others, []
        if self.source + self.output + self.lines <= room:
            places.append(room - self.output)
        if self.distance is not None:
            behind = min(highest_input, room - self.lines - self.source)
            places.append(min(behind - self.distance, room - self.lines - self.output) if behind >= 0 else -1)
            above = min(highest_input, room - self.source)
            place = min(above - self.distance, room - self.output)
            places.append(place if place >= self.lines and above >= self.lines_distance else -1)
        found = max(places, default=-1)
        return found if found >= 0 else None
