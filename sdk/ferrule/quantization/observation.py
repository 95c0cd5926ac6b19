# SPDX-License-Identifier: Apache-2.0
"""Runs a float network on all samples and observes the values of its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ferrule.errors import InputError
from ferrule.evaluation.data import DataSet
from ferrule.evaluation.host import HostRuns, compile_kernels
from ferrule.evaluation.on_board import beginnings
from ferrule.graph import Array, DataType, Graph, Shape
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.progress import Progress, Step
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Histogram, Range, RangeRule
from ferrule.quantization.recurrent import cells

_CHUNK_BYTES = 1 << 26
"""The values that are held at a time."""


def observed_tensors(graph: Graph) -> tuple[str, ...]:
    """Return the names of the float tensors that a run computes or gets."""
    return tuple(
        tensor.info.name for tensor in graph.tensors if tensor.data is None and tensor.info.dtype is DataType.FLOAT32
    )


class Observation:
    """The values of a network's float tensors in all samples, whatever their order."""

    def __init__(
        self,
        network: Network,
        extremes: Mapping[str, Range],
        cells: Mapping[str, Range],
        counts: Mapping[str, Histogram],
        peaks: Mapping[str, Array],
    ) -> None:
        self.peaks = peaks
        """The largest magnitude of each float tensor by name, for each index of its last axis."""
        self._network = network
        self._extremes = extremes
        self._cells = cells
        self._counts = counts

    def ranges(self, rule: RangeRule, precisions: Mapping[str, Precision]) -> dict[str, Range]:
        """Return the range of each float tensor by name, by a rule that was known when they were observed.

        `precisions` are those of the layers by name, which decide the step of the method MSE.
        """
        if not rule.needs_counts:
            return {**self._extremes, **self._cells}
        return {
            name: histogram.chosen(rule, _precision(self._network, name, precisions))
            for name, histogram in self._counts.items()
        } | dict(self._cells)


def observed(
    network: Network, data: DataSet, rules: Sequence[RangeRule], names: Mapping[str, str], progress: Progress
) -> Observation:
    """Run a network on all samples and observe its float tensors, as the rules need them.

    `names` has the names that users know of layers, by the tensor that they write.

    Raises:
        InputError: there is no sample, or a value of a tensor is not finite; the message names the sample and layer.
    """
    if not len(data):
        raise InputError("the data has no sample, expected at least one")
    found: dict[str, Range] = {}
    kept: dict[str, Range] = {}
    states: dict[str, Array] = {}
    peaks: dict[str, Array] = {}
    for values, labels, begins in _values(network, data, progress, "observing the ranges of tensors"):
        for name, array in values.items():
            _check_finite(network, name, array, labels, names)
            low, high = _ends(array, network.info(name).shape)
            range_ = Range.spanning(float(low.min()), float(high.max()))
            found[name] = range_.joined(found[name]) if name in found else range_
            peaks[name] = np.maximum(peaks.get(name, np.float32(0)), np.maximum(-low, high))
        for name, range_ in cells(network, values, begins, states).items():
            kept[name] = range_.joined(kept.get(name, range_))
    counts: dict[str, Histogram] = {}
    if any(rule.needs_counts for rule in rules):
        counts = {name: Histogram(range_) for name, range_ in found.items()}
        for values, _, _ in _values(network, data, progress, "counting the values of tensors"):
            for name, array in values.items():
                counts[name].add(array)
    return Observation(network, found, kept, counts, peaks)


def _ends(array: Array, shape: Shape) -> tuple[Array, Array]:
    """Return the least and the largest value for each index of the last axis of a tensor of a shape."""
    rows = array.reshape(-1, shape[-1] if shape else 1)
    return rows.min(axis=0), rows.max(axis=0)


def _precision(graph: Graph, tensor: str, precisions: Mapping[str, Precision]) -> Precision:
    """Return the precision that a tensor is quantised to; int8 for an input and for what stays in float."""
    writer = graph.producer(tensor)
    found = Precision.INT8 if writer is None else precisions[writer.name]
    return Precision.INT8 if found is Precision.FLOAT else found


def _values(
    network: Network, data: DataSet, progress: Progress, phase: str
) -> Iterator[tuple[dict[str, Array], tuple[str, ...], Sequence[bool]]]:
    """Yield the values of all float tensors by name, of some samples at a time, with their names and which begin."""
    names = observed_tensors(network)
    whole = network_of(network)
    given = {info.name for info in network.inputs}
    whole.set_outputs(name for name in names if name not in given)
    compile_kernels(progress)
    sample_bytes = sum(network.info(name).size_bytes for name in names)
    progress(Step(phase=phase))
    done = 0
    with HostRuns(whole) as host:
        for chunk in data.chunks(max(1, _CHUNK_BYTES // max(1, sample_bytes))):
            count = len(chunk.names)
            begins = beginnings(data, range(done, done + count))
            answers = host.run(chunk.inputs, begins)
            values = {
                info.name: array
                for info, array in zip(network.inputs, chunk.inputs, strict=True)
                if info.dtype is DataType.FLOAT32
            }
            values |= {info.name: array for info, array in zip(whole.outputs, answers, strict=True)}
            yield values, chunk.names, begins
            done += count
            progress(Step(phase=phase, done=done, total=len(data)))


def _check_finite(graph: Graph, tensor: str, values: Array, samples: tuple[str, ...], names: Mapping[str, str]) -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    place = int(np.argmin(finite.reshape(len(samples), -1).all(axis=1)))
    writer = graph.producer(tensor)
    where = f"input '{tensor}'"
    if writer is not None:
        where = f"the output of layer '{names.get(tensor, writer.name)}' {writer.type}"
    raise InputError(
        f"sample '{samples[place]}': {where} has the value {values[~finite].flat[0]}, expected finite numbers",
        hint="remove the sample, or repair it" if writer is None else "a tensor with such values has no range",
    )
