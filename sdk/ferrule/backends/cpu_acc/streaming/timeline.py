# SPDX-License-Identifier: Apache-2.0
"""The order in which a chain computes its bands, and the line buffers that this order needs.

It is the order of `ferrule_stream_next` in C: the next band is one of the last stage that has the rows it needs. If the
rows of the input are pushed, the next row comes when no band can be computed, and the first row comes first of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

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


class _Run:
    """A simulated run of a chain."""

    def __init__(self, chain: Chain, *, pushed: bool) -> None:
        self._chain = chain
        self._pushed = pushed
        count = len(chain.tensors)
        self._ends = [0] * count
        self._bands = [0] * len(chain.stages)
        self._step = 0
        self._since: list[int | None] = [None] * count
        self.capacities = [0] * count
        self.live = [0] * count
        """By tensor: the steps during which its buffer is in use, as bits."""
        self.sums = [0] * len(chain.stages)
        """By stage: the same for its sums."""
        self.writes: list[tuple[int, int, int, int]] = []
        """By step: the stage or _PUSH, the tensor, the end of its rows, and the first row needed of the input."""

    def kept(self, tensor: int) -> int:
        """Return the first row of a tensor that is still needed."""
        kept = self._ends[tensor]
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
            self._ends[0] = chain.height(0)
            self._since[0] = 0
        start = chain.last_reader(0)
        while True:
            stage = next((number for number in range(start, -1, -1) if self._ready(number)), None)
            if stage is not None:
                self._fire(stage)
                start = chain.last_reader(chain.stages[stage].output)
            elif self._pushed and self._ends[0] < chain.height(0):
                self._push()
                start = chain.last_reader(0)
            else:
                break
        for tensor, since in enumerate(self._since):
            if since is not None:
                self.live[tensor] |= _bits(since, self._step)

    def _ready(self, number: int) -> bool:
        stage, band = self._chain.stages[number], self._bands[number]
        return band < stage.bands and all(
            self._ends[reach.tensor] >= reach.end(band, self._chain.height(reach.tensor)) for reach in stage.inputs
        )

    def _push(self) -> None:
        self._write(_PUSH, 0, 1)
        self._close((0,))

    def _fire(self, number: int) -> None:
        stage, band = self._chain.stages[number], self._bands[number]
        self._write(number, stage.output, stage.written(band, self._chain.height(stage.output)))
        if stage.sums_bytes:
            self.sums[number] |= 1 << (self._step - 1) if band == 0 else _bits(_lowest(self.sums[number]), self._step)
        self._bands[number] += 1
        self._close(tuple(reach.tensor for reach in stage.inputs))

    def _write(self, stage: int, tensor: int, rows: int) -> None:
        """Append rows to a tensor, whose buffer is measured here."""
        kept = self.kept(tensor)
        if self._since[tensor] is None and rows:
            self._since[tensor] = self._step
        self._ends[tensor] += rows
        self.capacities[tensor] = max(self.capacities[tensor], self._ends[tensor] - kept)
        self.writes.append((stage, tensor, self._ends[tensor], self.kept(0)))
        self._step += 1

    def _close(self, tensors: Sequence[int]) -> None:
        """End the use of the buffers whose rows are all done."""
        for tensor in tensors:
            since = self._since[tensor]
            if since is not None and self.kept(tensor) == self._ends[tensor]:
                self.live[tensor] |= _bits(since, self._step)
                self._since[tensor] = None


def timeline(chain: Chain, *, pushed: bool = False) -> Timeline:
    """Return the line buffers of a chain whose input is resident, or whose input's rows are pushed."""
    run = _Run(chain, pushed=pushed)
    run.whole()
    last = len(chain.tensors) - 1
    inner = [*([0] if pushed else []), *range(1, last)]
    wanted = {
        ("rows", tensor): Buffer(
            size_bytes=run.capacities[tensor] * chain.row_bytes(tensor),
            rows=run.capacities[tensor],
            live=run.live[tensor],
        )
        for tensor in inner
    }
    wanted |= {
        ("sums", number): Buffer(size_bytes=stage.sums_bytes, live=run.sums[number])
        for number, stage in enumerate(chain.stages)
        if stage.sums_bytes
    }
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
