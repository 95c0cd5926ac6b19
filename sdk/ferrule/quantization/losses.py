# SPDX-License-Identifier: Apache-2.0
"""What each layer loses by its quantisation, against the float model on the user's data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.evaluation.data import DataSet
from ferrule.graph import Array, Layer, TensorInfo
from ferrule.network import Network
from ferrule.network.execution import by_name
from ferrule.operators.interpreter import Observer, run_layer
from ferrule.progress import Progress, Step
from ferrule.quantization.own import CONVERSIONS
from ferrule.quantization.ranges import Range
from ferrule.report.quantization_document import LossPart


@dataclass
class _Sums:
    """Sums over the elements of a layer's output in all samples, and its extreme stored values."""

    elements: int = 0
    signal: float = 0.0
    noise: float = 0.0
    own: float | None = 0.0
    """Of a layer with state, which is not computed apart, None."""
    saturated: int = 0
    lowest: float = np.inf
    highest: float = -np.inf


def layer_losses(
    network: Network,
    float_network: Network,
    names: Mapping[str, str],
    data: DataSet,
    samples: int,
    progress: Progress,
) -> tuple[LossPart, ...]:
    """Return the losses of a network's inputs and layers, in order, whose tensors the float network has by name.

    `names` has the names that users know of layers, by the tensor that they write. The losses are measured on the first
    samples of the data, each from the initial state on, by the numpy kernels.
    """
    sums: dict[str, _Sums] = {}
    count = min(samples, len(data))
    progress(Step(phase="comparing the layers with the float model"))
    for index in range(count):
        given = by_name(network.name, float_network.inputs, data.take([index]).inputs)
        real, stored = dict(given), dict[str, Array]()
        float_network.run(given, observe=_into(real))
        inputs = {info.name: _stored(info, given[info.name]) for info in network.inputs}
        network.run(inputs, observe=_into(stored))
        for info, array, own in _results(network, real, inputs | stored):
            _add(sums.setdefault(info.name, _Sums()), info, real[info.name], array, own)
        progress(Step(phase="comparing the layers with the float model", done=index + 1, total=count))
    return tuple(_part(network.info(tensor), network.producer(tensor), names, sums[tensor]) for tensor in sums)


def _into(found: dict[str, Array]) -> Observer:
    """Return an observer that keeps the outputs of layers by name."""

    def observe(layer: Layer, made: Sequence[Array]) -> None:
        found.update(zip(layer.outputs, made, strict=True))

    return observe


def _results(
    network: Network, real: Mapping[str, Array], stored: Mapping[str, Array]
) -> Iterator[tuple[TensorInfo, Array, Array | None]]:
    """Yield the tensor of each input and layer, its values, and those that it has for exact inputs."""
    for info in network.inputs:
        if info.quantization is not None:
            yield info, stored[info.name], stored[info.name]
    for layer in network.layers:
        info = network.info(layer.outputs[0])
        if info.name not in real or (layer.type in CONVERSIONS and info.quantization is None):
            continue
        yield info, stored[info.name], _alone(network, layer, real)


def _alone(network: Network, layer: Layer, real: Mapping[str, Array]) -> Array | None:
    """Return the first output of a layer whose inputs have the float model's values; None if that lacks one."""
    arrays: list[Array | None] = []
    for name in layer.inputs:
        tensor = None if name is None else network.tensor(name)
        if tensor is None or tensor.data is not None:
            arrays.append(None if tensor is None else tensor.data)
            continue
        values = real.get(tensor.info.name)
        if values is None:
            values = _behind_conversion(network, tensor.info.name, real)
        if values is None:
            return None
        arrays.append(_stored(tensor.info, values))
    return run_layer(network, layer, arrays)[0]


def _behind_conversion(network: Network, name: str, real: Mapping[str, Array]) -> Array | None:
    """Return the float model's values of a tensor that conversions alone separate from one that it has."""
    writer = network.producer(name)
    if writer is None or writer.type not in CONVERSIONS:
        return None
    source = writer.inputs[0]
    assert source is not None
    return real[source] if source in real else _behind_conversion(network, source, real)


def _stored(info: TensorInfo, values: Array) -> Array:
    return values if info.quantization is None else info.quantize(values)


def _add(sums: _Sums, info: TensorInfo, real: Array, stored: Array, alone: Array | None) -> None:
    exact = real.astype(np.float64)
    sums.elements += exact.size
    sums.signal += float(np.sum(exact**2))
    sums.noise += float(np.sum((info.dequantize(stored) - exact) ** 2))
    if alone is None or sums.own is None:
        sums.own = None
    else:
        sums.own += float(np.sum((info.dequantize(alone) - exact) ** 2))
    if info.quantization is not None:
        whole, half = Range.represented(info), info.scale / 2
        sums.saturated += int(np.sum((exact < whole.low - half) | (exact > whole.high + half)))
        sums.lowest, sums.highest = min(sums.lowest, stored.min()), max(sums.highest, stored.max())


def _part(info: TensorInfo, layer: Layer | None, names: Mapping[str, str], sums: _Sums) -> LossPart:
    unused = None
    if info.quantization is not None:
        limits = np.iinfo(info.dtype.numpy)
        unused = 1 - (float(sums.highest) - float(sums.lowest)) / (int(limits.max) - int(limits.min))
    return LossPart(
        name=names.get(info.name, info.name if layer is None else layer.name),
        type="input" if layer is None else str(layer.type),
        tensor=info.name,
        dtype=str(info.dtype),
        rms=(sums.signal / sums.elements) ** 0.5,
        error=(sums.noise / sums.elements) ** 0.5,
        own_error=None if sums.own is None else (sums.own / sums.elements) ** 0.5,
        saturated=None if info.quantization is None else sums.saturated / sums.elements,
        unused=unused,
    )
