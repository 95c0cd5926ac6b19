# SPDX-License-Identifier: Apache-2.0
"""The order in which a chain computes its bands, and the line buffers that this order needs.

It is the order of `ferrule_stream_next` in C: the next band is one of the last stage that has the rows it needs. If the
rows of the input are pushed, the next row comes when no band can be computed, and the first row comes first of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.streaming.chain import Chain

_ALIGNMENT = 4
"""Of the line buffers, in bytes."""
_PUSH = -1
_Key = tuple[str, int]
"""The rows of a tensor, or the sums of a stage."""


@frozen
class Buffer:
    """A line buffer, or the sums of a global average pool."""

    offset: int = 0
    size_bytes: int
    rows: int = 0
    """0 for sums."""
    live: int = field(default=0, compare=False)
    """The steps during which it is in use, as bits."""

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + self.size_bytes


@frozen
class Timeline:
    """The order of a chain's bands, as figures."""

    steps: int
    """Bands of all stages."""
    moved_bytes: int
    """Bytes that move to the front of their line buffers."""
    buffers: tuple[Buffer | None, ...]
    """By tensor; None for a resident input and for the output."""
    sums: tuple[Buffer | None, ...]
    """By stage."""
    lines_bytes: int
    """Size of all line buffers; some share their bytes, as they are never in use at the same time."""
    output_distance: int
    """How far the output must start below a resident input; see `Overlap.distance_bytes`."""
    lines_distance: int
    """The same for the line buffers."""


@dataclass
class _Lines:
    """The rows of a tensor during a run, and the buffer that they need."""

    end: int = 0
    """The rows that are written so far."""
    capacity: int = 0
    """The most rows that are needed at once."""
    since: int | None = None
    """The step since which the buffer is in use; None if it is not."""
    live: int = 0
    """The steps during which the buffer was in use, as bits."""

    def close(self, step: int) -> None:
        """End the use of the buffer."""
        if self.since is not None:
            self.live |= _bits(self.since, step)
            self.since = None


class _Run:
    """A simulated run of a chain."""

    def __init__(self, chain: Chain, *, pushed: bool) -> None:
        self._chain = chain
        self._pushed = pushed
        self._bands = [0] * len(chain.stages)
        self._step = 0
        self.lines = [_Lines() for _ in chain.tensors]
        """By tensor."""
        self.writes: list[tuple[int, int, int, int]] = []
        """By step: the stage or _PUSH, the tensor, the end of its rows, and the first row needed of the input."""

    def kept(self, tensor: int) -> int:
        """Return the first row of a tensor that is still needed."""
        kept = self.lines[tensor].end
        for stage, reach in self._chain.readers[tensor]:
            band = self._bands[stage]
            if band < self._chain.stages[stage].bands:
                kept = min(kept, reach.first(band))
        return kept

    def whole(self) -> None:
        """Run all bands, and measure the capacities."""
        chain = self._chain
        if self._pushed:
            self._push()
        else:
            self.lines[0] = _Lines(end=chain.height(0), since=0)
        start = chain.last_reader(0)
        while True:
            stage = next((number for number in range(start, -1, -1) if self._ready(number)), None)
            if stage is not None:
                self._fire(stage)
                start = chain.last_reader(chain.stages[stage].output)
            elif self._pushed and self.lines[0].end < chain.height(0):
                self._push()
                start = chain.last_reader(0)
            else:
                break
        for lines in self.lines:
            lines.close(self._step)

    def _ready(self, number: int) -> bool:
        stage, band = self._chain.stages[number], self._bands[number]
        return band < stage.bands and all(
            self.lines[reach.tensor].end >= reach.end(band, self._chain.height(reach.tensor)) for reach in stage.inputs
        )

    def _push(self) -> None:
        self._write(_PUSH, 0, 1)
        self._close((0,))

    def _fire(self, number: int) -> None:
        stage, band = self._chain.stages[number], self._bands[number]
        self._write(number, stage.output, stage.each[band].output_rows)
        self._bands[number] += 1
        self._close(tuple(reach.tensor for reach in stage.inputs))

    def _write(self, stage: int, tensor: int, rows: int) -> None:
        """Append rows to a tensor, whose buffer is measured here."""
        lines, kept = self.lines[tensor], self.kept(tensor)
        if lines.since is None and rows:
            lines.since = self._step
        lines.end += rows
        lines.capacity = max(lines.capacity, lines.end - kept)
        self.writes.append((stage, tensor, lines.end, self.kept(0)))
        self._step += 1

    def _close(self, tensors: Sequence[int]) -> None:
        """End the use of the buffers whose rows are all done."""
        for tensor in tensors:
            if self.kept(tensor) == self.lines[tensor].end:
                self.lines[tensor].close(self._step)


def timeline(chain: Chain, *, pushed: bool = False) -> Timeline:
    """Return the line buffers of a chain whose input is resident, or whose input's rows are pushed."""
    run = _Run(chain, pushed=pushed)
    run.whole()
    last = len(chain.tensors) - 1
    inner = [*([0] if pushed else []), *range(1, last)]
    wanted: dict[_Key, Buffer] = {
        ("rows", tensor): Buffer(
            size_bytes=run.lines[tensor].capacity * chain.row_bytes(tensor),
            rows=run.lines[tensor].capacity,
            live=run.lines[tensor].live,
        )
        for tensor in inner
    }
    for number, stage in enumerate(chain.stages):
        if stage.sums_bytes:
            added = [step for step, (writer, *_) in enumerate(run.writes) if writer == number]
            wanted["sums", number] = Buffer(size_bytes=stage.sums_bytes, live=_bits(added[0], added[-1] + 1))
    placed = _placed(wanted)
    buffers = tuple(placed.get(("rows", tensor)) for tensor in range(len(chain.tensors)))
    sums = tuple(placed.get(("sums", number)) for number in range(len(chain.stages)))
    return Timeline(
        steps=len(run.writes),
        moved_bytes=_moved_bytes(chain, run),
        buffers=buffers,
        sums=sums,
        lines_bytes=_end(placed.values()),
        output_distance=_distance(chain, run, lambda _, tensor, end: end * chain.row_bytes(last) * (tensor == last)),
        lines_distance=_distance(
            chain, run, lambda stage, tensor, _: _end((buffers[tensor], None if stage == _PUSH else sums[stage]))
        ),
    )


def _moved_bytes(chain: Chain, run: _Run) -> int:
    """Return an upper estimate of the bytes that the buffers move: all rows that stay, at each write."""
    rows = {
        reach.tensor: max(reach.rows - reach.step, 0) * chain.row_bytes(reach.tensor)
        for stage in chain.stages
        for reach in stage.inputs
    }
    return sum(rows.get(tensor, 0) for _, tensor, _, _ in run.writes)


def _end(buffers: Iterable[Buffer | None]) -> int:
    return max((each.end for each in buffers if each is not None), default=0)


def _distance(chain: Chain, run: _Run, written: Callable[[int, int, int], int]) -> int:
    """Return the maximum of the end of what is written minus the start of what is read of the resident input.

    What a step writes counts against what it reads itself, too.
    """
    row_bytes, height = chain.row_bytes(0), chain.height(0)
    distance, end = -height * row_bytes, 0
    for stage, tensor, rows, first in run.writes:
        end = max(end, written(stage, tensor, rows))
        if end and first < height:
            distance = max(distance, end - first * row_bytes)
    return distance


def _placed(wanted: Mapping[_Key, Buffer]) -> dict[_Key, Buffer]:
    """Return the buffers with their offsets: the better of two orders, each at the first gap."""
    orders = (
        sorted(wanted, key=lambda key: (_lowest(wanted[key].live), key)),
        sorted(wanted, key=lambda key: (-wanted[key].size_bytes, key)),
    )
    return min((_at_first_gap(order, wanted) for order in orders), key=lambda placed: _end(placed.values()))


def _at_first_gap(order: Sequence[_Key], wanted: Mapping[_Key, Buffer]) -> dict[_Key, Buffer]:
    placed: dict[_Key, Buffer] = {}
    for key in order:
        buffer, offset = wanted[key], 0
        for other in sorted(placed.values(), key=lambda each: each.offset):
            if not other.live & buffer.live:
                continue
            if offset + buffer.size_bytes <= other.offset:
                break
            offset = max(offset, -(-other.end // _ALIGNMENT) * _ALIGNMENT)
        placed[key] = replace(buffer, offset=offset)
    return placed


def _bits(first: int, end: int) -> int:
    """Return a number with the bits of the steps [first, end) set."""
    return ((1 << (end - first)) - 1) << first


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
