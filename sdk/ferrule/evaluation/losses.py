# SPDX-License-Identifier: Apache-2.0
"""What each layer loses by its quantisation, against the float model on the user's data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.graph import Array, Layer, TensorInfo
from ferrule.network import Network
from ferrule.network.execution import by_name
from ferrule.operators.elementwise.quantize import CONVERSIONS
from ferrule.operators.interpreter import Observer, run_layer
from ferrule.progress import Progress, Step
from ferrule.report.losses import LossPart

COMPARED = 16
"""The samples by which losses are measured unless more are asked for: the numpy kernels are slow."""


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
    samples: Iterable[tuple[Sequence[Array], Sequence[Array]]],
    count: int,
    progress: Progress,
) -> tuple[tuple[LossPart, ...], int]:
    """Return the losses of a network's inputs and layers, in order, whose tensors the float network has by name.

    The second result is the number of the others.

    `samples` has the inputs of the float network and those of the network, `count` times; each runs from the initial
    state on, by the numpy kernels. Inputs and outputs are matched by their order. `names` has the names that users know
    of layers, by the tensor that they write. A tensor is left out if the float network has it with another shape, or
    with values that are not finite.
    """
    sums: dict[str, _Sums] = {}
    unknown = set[str]()
    same = {its.name: mine.name for mine, its in zip(network.inputs, float_network.inputs, strict=True)}
    if len(network.outputs) == len(float_network.outputs):
        same |= {its.name: mine.name for mine, its in zip(network.outputs, float_network.outputs, strict=True)}
    phase = "comparing the layers with the float model"
    progress(Step(phase=phase))
    for index, (real_inputs, stored_inputs) in enumerate(samples):
        given = by_name(network.name, float_network.inputs, real_inputs)
        real, stored = dict(given), dict[str, Array]()
        float_network.run(given, observe=_into(real))
        real = {same.get(name, name): values for name, values in real.items()}
        inputs = by_name(network.name, network.inputs, stored_inputs)
        network.run(inputs, observe=_into(stored))
        for info, array, own in _results(network, real, inputs | stored):
            if np.isfinite(real[info.name]).all() and np.isfinite(array).all():
                _add(sums.setdefault(info.name, _Sums()), info, real[info.name], array, own)
            else:
                unknown.add(info.name)
        progress(Step(phase=phase, done=index + 1, total=count))
    known = tuple(
        _part(network.info(tensor), network.producer(tensor), names, sums[tensor])
        for tensor in sums
        if tensor not in unknown
    )
    return known, sum(1 for _ in _measured(network)) - len(known)


def _measured(network: Network) -> Iterator[tuple[TensorInfo, Layer | None]]:
    """Yield the tensor of each quantised input and of each layer, but not of conversions to float."""
    for info in network.inputs:
        if info.quantization is not None:
            yield info, None
    for layer in network.layers:
        info = network.info(layer.outputs[0])
        if layer.type not in CONVERSIONS or info.quantization is not None:
            yield info, layer


def _into(found: dict[str, Array]) -> Observer:
    """Return an observer that keeps the outputs of layers by name."""

    def observe(layer: Layer, made: Sequence[Array]) -> None:
        found.update(zip(layer.outputs, made, strict=True))

    return observe


def _results(
    network: Network, real: Mapping[str, Array], stored: Mapping[str, Array]
) -> Iterator[tuple[TensorInfo, Array, Array | None]]:
    """Yield the tensor of each input and layer, its values, and those that it has for exact inputs."""
    for info, layer in _measured(network):
        values = real.get(info.name)
        if values is not None and _fits(info, values):
            array = stored[info.name]
            yield info, array, array if layer is None else _alone(network, layer, real)


def _fits(info: TensorInfo, values: Array) -> bool:
    """Return whether the float network's values are those of a tensor."""
    if values.shape != info.shape:
        return False
    return values.dtype == info.dtype.numpy if info.quantization is None else len(info.quantization.scales) == 1


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
        if values is None or not _fits(tensor.info, values):
            return None
        arrays.append(_stored(tensor.info, values))
    if network.info(layer.outputs[0]).quantization is not None and not all(map(_is_finite, arrays)):
        return None
    return run_layer(network, layer, arrays)[0]


def _is_finite(array: Array | None) -> bool:
    return array is None or array.dtype.kind != "f" or bool(np.isfinite(array).all())


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
        (low, high), half = info.limits, info.scale / 2
        sums.saturated += int(np.sum((exact < low - half) | (exact > high + half)))
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
