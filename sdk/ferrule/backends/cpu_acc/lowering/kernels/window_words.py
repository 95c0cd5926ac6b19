# SPDX-License-Identifier: Apache-2.0
"""The words of a sliding window and the plan of their products, as `ferrule/kernels/depthwise_window.h` has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernels.sliding import Sliding
from ferrule.graph import Array

_HEADER = 6


@frozen
class Record:
    """Words of weights of one line of the window."""

    line: int
    row: int
    first: int
    """The index in the row of the first word, for the first sum."""
    taps: tuple[tuple[int, ...], ...]
    """For each word, the indices along the line of its weights; -1 for none."""


@frozen
class Words:
    """The words of a sliding window."""

    way: Sliding
    pixels: int
    """Pixels per word."""

    @property
    def hop(self) -> int:
        """The distance of neighbouring sums in words."""
        return 2 if self.pixels == 1 and self.way.steps.part_stride == 2 else 1

    @property
    def spread(self) -> int:
        """The distance of neighbouring words in pixels."""
        return max(self.way.steps.part_stride // self.hop, self.pixels)

    @property
    def passes(self) -> int:
        """How many words are between neighbouring sums, in outputs."""
        return self.spread * self.hop // self.way.steps.part_stride

    def records(self, index: int) -> list[Record]:
        """Return the records of one line of the window in a pass."""
        none = (-1,) * self.pixels
        rows: dict[int, dict[int, tuple[int, ...]]] = {}
        for tap in range(self.way.steps.taps):
            period, pixel = divmod(index * self.way.steps.part_stride + tap, self.spread)
            half, row = pixel % self.pixels, rows.setdefault(pixel - pixel % self.pixels, {})
            row[period] = (*row.get(period, none)[:half], tap, *none[half + 1 :])
        found = []
        for start, row in rows.items():
            first, end = min(row), max(row) + 1
            while first < end:
                count = 3 if end - first == 3 or end - first > 4 else 2
                taps = tuple(row.get(each, none) for each in range(first, first + count))
                found.append(Record(line=0, row=start, first=first, taps=taps))
                first += count
        return found

    @property
    def starts(self) -> tuple[int, ...]:
        """The pixel at which the words of each row begin."""
        return tuple(sorted({record.row for index in range(self.passes) for record in self.records(index)}))

    @property
    def row_words(self) -> int:
        """The words of a row."""
        last = max(
            record.first + max(k for k, word in enumerate(record.taps) if max(word) >= 0)
            for index in range(self.passes)
            for record in self.records(index)
        )
        return (-(-self.way.steps.outputs // self.passes) - 1) * self.hop + last + 1

    @property
    def line_words(self) -> int:
        """The words of a line of a channel."""
        return len(self.starts) * self.row_words

    @property
    def stream_words(self) -> int:
        """The words of the streams of a channel."""
        lines = self.way.lines.taps
        return sum(
            _HEADER + lines * sum(1 + len(record.taps) for record in self.records(index))
            for index in range(self.passes)
        )

    def plan(self) -> Array:
        """Return the member of that name."""
        found: list[int] = []
        lines, taps, row_words = self.way.lines.taps, self.way.steps.taps, self.row_words
        rows = {start: number * row_words for number, start in enumerate(self.starts)}
        line_words = len(rows) * row_words
        for index in range(self.passes):
            line_records = self.records(index)
            records = [replace(each, line=line) for line in range(lines) for each in line_records]
            kinds = [[each for each in records if len(each.taps) == count] for count in (3, 2)]
            found += [len(kind) for kind in kinds]
            for record in (each for kind in kinds for each in kind):
                found.append(record.line * line_words + rows[record.row] + record.first)
                found += [lines * taps if tap < 0 else record.line * taps + tap for word in record.taps for tap in word]
        return np.array(found, np.int16)
