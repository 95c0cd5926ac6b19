# SPDX-License-Identifier: Apache-2.0
"""The choice of the layers that run row by row: those chains that give the lowest peak of the activations.

The layers of a graph, in their order, are divided into chains and single layers. The peak of a division is the most
bytes of tensors that one of its parts needs. Of all divisions that cost at most `_MOST_COST` times the instructions of
the single layers, one with the lowest peak is chosen, and of these the cheapest one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache

from ferrule.backends.cpu_acc.lowering.kernels.choice import overlaps_of_choice
from ferrule.backends.cpu_acc.lowering.table import rows_of
from ferrule.backends.cpu_acc.streaming.chain import MOST_STAGES, Chain, Streamed, data_inputs, refusal
from ferrule.backends.cpu_acc.streaming.cost import instructions_of, overhead_of
from ferrule.backends.cpu_acc.streaming.part import Part
from ferrule.backends.cpu_acc.streaming.timeline import timeline
from ferrule.backends.firmware import LoweringContext
from ferrule.backends.optimization_views import OptimizationViews, PreCompiledDescriptor, Substitution
from ferrule.backends.target import Target
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Layer, LayerType, SubgraphView, TensorInfo, refuse_states
from ferrule.interface import name_of
from ferrule.memory.request import Overlap
from ferrule.operators.interpreter import macs_of
from ferrule.operators.table import OPERATORS

_ROWS = (1, 2, 4)
"""The rows that the stages of a chain may compute at once."""
_MOST_COST = 1.15
"""The instructions that chains may take by their estimate, as a multiple of those of the single layers: chains that
are worth their bytes take little more; others take still more than they are estimated at."""
_NEVER = 1 << 60
"""More than any memory: the input of a layer that cannot have it as a whole."""
_SPARE_BYTES = 1 << 16
"""Scratch is not examined here, so that of every kernel counts as free."""


def stream(view: SubgraphView, target: Target) -> OptimizationViews:
    """Return the answer in which chains of layers run row by row where that lowers the peak."""
    fed = _fed(view) if target.input_rows else ""
    chains = [part for part in _Division(view, target, fed).parts() if part.rows]
    substitutions, left = [], view
    for part in chains:
        chain = SubgraphView.of(view.graph, (layer.name for layer in view.graph.layers[part.first : part.end]))
        substitutions.append(substitution(chain, part.rows, fed=fed in chain.inputs))
        left = left.without(chain.names)
    return OptimizationViews(substitutions=tuple(substitutions), untouched=(left,) if left.names else ())


def _fed(view: SubgraphView) -> str:
    """Return the input that the firmware is to take row by row; "" if these layers do not read it.

    Raises:
        UnsupportedError: these layers cannot take it.
    """
    hint = f"leave out {name_of('input_rows')}"
    refuse_states(view.graph.name, view.graph.states, f"an input row by row ({name_of('input_rows')})")
    if len(view.graph.sources) != 1:
        raise UnsupportedError(f"a network with {len(view.graph.sources)} inputs cannot take one row by row", hint=hint)
    name = view.graph.inputs[0].name
    for reader in view.graph.consumers(name):
        reason = refusal(view.graph, reader)
        if reader.name not in view.names:
            return ""
        if reason or name in {info.name for info in view.graph.results}:
            raise UnsupportedError(
                f"layer '{reader.name}' cannot take the input '{name}' row by row: "
                f"{reason or 'the input is an output of the network, too'}",
                hint=hint,
            )
    return name


def substitution(view: SubgraphView, rows: int, *, fed: bool = False) -> Substitution:
    """Return the replacement of layers by one layer, whose stages compute so many rows at once.

    With `fed`, the rows of its input are given one by one.
    """
    payload = Streamed(layers=view.to_graph(), rows=rows, fed=fed)
    lines = TensorInfo(
        view.graph.unique_name(f"{view.outputs[0]}_lines"),
        (max(timeline(payload.chain(), pushed=fed).lines_bytes, 1),),
        DataType.INT8,
    )
    descriptor = PreCompiledDescriptor(
        payload=payload,
        label=f"{len(view.names)} layers, row by row",
        macs=macs_of(view.graph, view.layers),
    )
    layer = Layer(
        view.graph.unique_name(f"stream_{view.names[0]}"),
        LayerType.PRE_COMPILED,
        descriptor,
        inputs=view.inputs,
        outputs=(*view.outputs, lines.name),
    )
    return Substitution(replaced=view, layers=(layer,), tensors=(lines,))


class _Division:
    """The search for the best division of a graph's layers."""

    def __init__(self, view: SubgraphView, target: Target, fed: str) -> None:
        """`fed` is the input whose rows are given one by one; "" if there is none."""
        self._graph = view.graph
        self._fed = fed
        self._target = target
        self._layers = view.graph.layers
        own = set(view.names)
        self._able = [layer.name in own and not refusal(view.graph, layer) for layer in self._layers]
        self._examined: list[Part] = []
        """The chains that are possible, of those examined so far."""
        self._part = cache(self._new_part)
        self._least = cache(self._bound)
        self._read = [data_inputs(view.graph, layer) for layer in self._layers]
        """By layer: its inputs that are not constants."""
        sources = [info.name for info in view.graph.sources]
        self._last = dict.fromkeys(sources, 0)
        """By tensor that is not a constant: the index of its last reader, or of its writer; the end for an output."""
        self._firsts = dict.fromkeys(sources, -1)
        """By tensor: the index of its writer; -1 for an input."""
        for index, layer in enumerate(self._layers):
            self._last |= dict.fromkeys((*self._read[index], *layer.outputs), index)
            self._firsts |= dict.fromkeys(layer.outputs, index)
        self._last |= {info.name: len(self._layers) for info in view.graph.results}
        self._singles = [self._single(index) for index in range(len(self._layers))]

    def parts(self) -> list[Part]:
        """Return the parts of the best division, in order; single layers only if chains do not lower the peak."""
        plain = max(part.peak_bytes for part in self._singles)
        if self._fed:  # single layers cannot take its rows, so any peak with a chain is better
            plain = _NEVER
        most = _MOST_COST * sum(part.cost for part in self._singles)
        lowest = self._lowest_peak()
        candidates = {lowest, *(part.peak_bytes for part in (*self._singles, *self._examined))}
        peaks = sorted(peak for peak in candidates if lowest <= peak < plain)
        found = bisect_left(peaks, True, key=lambda peak: self._cheapest(peak)[0] <= most)
        if found < len(peaks):
            return self._cheapest(peaks[found])[1]
        return self._whole_first(peaks) if self._fed else self._singles

    def _whole_first(self, peaks: Sequence[int]) -> list[Part]:
        """Return the parts of a division whose first chain takes the input; it costs more than it should."""
        parts = self._cheapest(peaks[-1])[1] if peaks else []
        if not parts:
            raise UnsupportedError(
                f"no chain of layers can take the input '{self._fed}' row by row and leave an output to later layers",
                hint=f"leave out {name_of('input_rows')}",
            )
        return parts

    def _others(self, first: int, end: int) -> int:
        """Return the bytes of tensors that live throughout some layers and are not read by them last, or not at all."""
        read = {name for names in self._read[first:end] for name in names}
        return sum(
            self._graph.info(name).size_bytes
            for name, last in self._last.items()
            if self._firsts.get(name, first) < first <= last and (name not in read or last >= end) and name != self._fed
        )

    def _single(self, index: int) -> Part:
        layer, graph = self._layers[index], self._graph
        read = {name for name in self._read[index] if self._last[name] <= index}
        source = sum(graph.info(name).size_bytes for name in read) if self._fed not in read else _NEVER
        distance: int | None = None
        operator = OPERATORS.get(layer.type)  # other backends have compiled layers
        if operator is not None and operator.view and read:
            distance = 0
        elif self._able[index]:
            context = LoweringContext(
                graph=graph, layer=layer, target=self._target, prefix="", pointers={}, spare_bytes=_SPARE_BYTES
            )
            stated = overlaps_of_choice(*rows_of(context))
            distance = min((_stepped(each) for each in stated if each.input in read), default=None)
        return Part(
            first=index,
            end=index + 1,
            cost=instructions_of(graph, layer),
            source=source,
            output=sum(graph.info(name).size_bytes for name in layer.outputs),
            others=self._others(index, index + 1),
            distance=distance,
        )

    def _border(self, first: int, end: int) -> tuple[str, str] | None:
        """Return the input and the output of layers that could be a chain; None if they could not."""
        inside = {name for layer in self._layers[first:end] for name in layer.outputs}
        read = {name for names in self._read[first:end] for name in names} - inside
        written = [name for name in inside if self._last[name] >= end]
        if len(read) != 1 or len(written) != 1 or written[0] != self._layers[end - 1].outputs[0]:
            return None
        return next(iter(read)), written[0]

    def _bound(self, first: int, end: int) -> int:
        """Return a lower bound of the peak of a chain, without running through its bands."""
        graph = self._graph
        chain = self._layers[first:end]
        inside = [layer.outputs[0] for layer in chain]
        rows = dict.fromkeys(inside[:-1], 1)
        for layer, read in zip(chain, self._read[first:end], strict=True):
            taps = getattr(layer.descriptor, "pool_h", 1)
            if layer.type in {LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D}:
                taps = graph.info(str(layer.inputs[1])).shape[1]
            for name in read:
                if name in rows and graph.info(name).shape[1] != taps:
                    rows[name] = max(rows[name], taps)
        lines = sum(_row_bytes(graph.info(name)) * count for name, count in rows.items() if count > 1)
        return graph.info(inside[-1]).size_bytes + lines

    def _new_part(self, first: int, end: int, rows: int) -> Part | None:
        """Return a chain of layers; None if they cannot be one."""
        border = self._border(first, end)
        if border is None or end - first > MOST_STAGES:
            return None
        read, written = border
        fed = read == self._fed
        if fed and (self._last[read] >= end or self._last[written] >= len(self._layers)):
            return None
        view = SubgraphView.of(self._graph, (layer.name for layer in self._layers[first:end]))
        chain = Chain.of(view.to_graph(), rows)
        times = timeline(chain, pushed=fed)
        source, output = (self._graph.info(name).size_bytes for name in border)
        last = self._last[read] < end and not fed
        part = Part(
            first=first,
            end=end,
            rows=rows,
            cost=sum(part.cost for part in self._singles[first:end]) + overhead_of(chain, times),
            source=source if last else 0,
            output=output,
            lines=times.lines_bytes,
            others=self._others(first, end),
            distance=times.output_distance if last else None,
            lines_distance=times.lines_distance,
        )
        self._examined.append(part)
        return part

    def _chains_before(self, end: int) -> Iterator[int]:
        """Yield the first layers of possible chains up to `end`, the shortest chain first."""
        for first in range(end - 1, -1, -1):
            if not self._able[first]:
                return
            yield first

    def _lowest_peak(self) -> int:
        """Return the lowest peak of any division."""
        best = [0]
        for end in range(1, len(self._layers) + 1):
            lowest = max(best[end - 1], self._singles[end - 1].peak_bytes)
            for first in self._chains_before(end):
                if self._least(first, end) >= lowest:
                    break  # longer chains need more
                if best[first] < lowest:  # otherwise the layers before it need as much, whatever the chain needs
                    part = self._part(first, end, 1)
                    if part is not None:
                        lowest = min(lowest, max(best[first], part.peak_bytes))
            best.append(lowest)
        return best[-1]

    def _cheapest(self, peak: int) -> tuple[float, list[Part]]:
        """Return the cost and the parts of the cheapest division of at most this peak; infinity if there is none.

        A division is followed with the highest place that its last output can have: outputs that overlap their inputs
        from below need room there.
        """
        inputs = sum(info.size_bytes for info in self._graph.sources if info.name != self._fed)
        best: list[list[tuple[float, int, list[Part]]]] = [[(0.0, peak - inputs, [])]]
        for end in range(1, len(self._layers) + 1):
            found = []
            for part in self._parts_before(end, peak):
                for cost, highest, parts in best[part.first]:
                    place = part.highest_output(peak, highest)
                    if place is not None:
                        found.append((cost + part.cost, place, [*parts, part]))
            best.append(_undominated(found))
        cost, _, parts = min(best[-1], key=lambda each: each[0], default=(float("inf"), 0, []))
        return cost, parts

    def _parts_before(self, end: int, peak: int) -> Iterator[Part]:
        single = self._singles[end - 1]
        if single.peak_bytes <= peak:
            yield single
        hot = False
        for first in self._chains_before(end):
            hot = hot or self._singles[first].peak_bytes > peak
            if not hot:  # each of its layers fits alone, and a chain takes more instructions
                continue
            if self._least(first, end) > peak:
                break  # longer chains need more
            for rows in _ROWS:
                part = self._part(first, end, rows)
                if part is not None and part.peak_bytes <= peak:
                    yield part


def _row_bytes(info: TensorInfo) -> int:
    return info.size_bytes // info.shape[1]


def _undominated(found: list[tuple[float, int, list[Part]]]) -> list[tuple[float, int, list[Part]]]:
    """Return the divisions than which none is cheaper and leaves more room below its last output."""
    kept: list[tuple[float, int, list[Part]]] = []
    for each in sorted(found, key=lambda each: (each[0], -each[1])):
        if not kept or each[1] > kept[-1][1]:
            kept.append(each)
    return kept


def _stepped(overlap: Overlap) -> int:
    """Return the least allowed difference of the offsets."""
    assert overlap.distance_bytes is not None, "no kernel goes from the last pixel to the first"
    return -(-overlap.distance_bytes // overlap.step_bytes) * overlap.step_bytes
