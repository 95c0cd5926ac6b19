# SPDX-License-Identifier: Apache-2.0
"""Multiplies channels between two layers that sum products by powers of two, so that they share a range better.

What the first layer sums is multiplied by 2^k in each channel, and what the second one multiplies it with by 2^-k: the
network computes the same, bit for bit, as long as no number leaves the normal range of float32. A tensor has one scale
for all channels, so that a channel with small values has few steps of it (cross-layer equalisation: Nagel et al.,
"Data-free quantization through weight equalization and bias correction", 2019; their factors are no powers of two).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.graph import Array, GraphEditor, Layer, LayerType
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.activation import Activation, fused_activation
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.quantization.weights import Numbers, Weights, inputs_per_channel, with_constants

_Exponents = NDArray[np.int64]
_HOMOGENEOUS = frozenset(
    {
        LayerType.AVERAGE_POOL_2D,
        LayerType.LEAKY_RELU,
        LayerType.MAX_POOL_2D,
        LayerType.MEAN,
        LayerType.PRELU,
        LayerType.RELU,
        LayerType.RESHAPE,
    }
)
"""Layers that take a positive factor of a channel from their data to their results, as ReLU does."""
_STEPS = 255
"""Of a tensor of int8."""
_WEIGHT_STEPS = 127
"""Of weights of int8, at each side of 0."""
_CREST = 4.0
"""The largest value of a channel by the root of its mean square, as it is assumed."""
_STRENGTHS = (0.25, 0.5, 0.75, 1.0)
"""How far the sizes of channels are made equal."""
_FARTHEST = 12
"""The largest exponent."""
_LIMITS = np.finfo(np.float32)


@frozen
class Equalised:
    """A network with the same results, and how many channels of how many layers have other factors."""

    network: Network
    channels: int
    layers: int


def equalised(network: Network, peaks: Mapping[str, Array]) -> Equalised:
    """Return a float network that computes the same, with channels whose sizes differ less.

    `peaks` has the largest magnitude of each tensor in the samples, for each index of its last axis. Factors are chosen
    by the noise that is expected of what a second layer sums: of the steps of its data and of its weights.
    """
    editor, channels, layers = GraphEditor(network), 0, 0
    for layer in editor.layers():
        pair = _Pair.of(editor, layer)
        if pair is None:
            continue
        count = pair.equalise(editor, peaks)
        channels, layers = channels + count, layers + (count > 0)
    return Equalised(network=network_of(editor.finish()), channels=channels, layers=layers)


@frozen
class _Pair:
    """Two layers that sum products, the second of which alone reads what the first one sums."""

    first: Layer
    second: Layer
    own: Weights
    """Of the first layer."""
    reading: Weights
    """Of the second one."""
    tensors: tuple[str, ...]
    """What the first layer writes, and what layers behind it make of that, up to what the second one reads."""
    repeats: int
    """The indices of the last axis of the second layer's weights for each index of the last axis of what it reads."""

    @classmethod
    def of(cls, editor: GraphEditor, first: Layer) -> _Pair | None:
        """Return the pair that begins with a layer; None if there is none."""
        own = _alone(editor, first)
        if own is None or not _keeps_factors(editor, first):
            return None
        tensors = [first.outputs[0]]
        while True:
            tensor = tensors[-1]
            second, shape = editor.only_consumer(tensor), editor.info(tensor).shape
            if second is None or second.inputs[0] != tensor or not shape or shape[-1] % own.channels:
                return None
            reading = _alone(editor, second)
            if reading is not None:
                break
            if second.type not in _HOMOGENEOUS or not _keeps_factors(editor, second):
                return None
            tensors.append(second.outputs[0])
        along = reading.weights.shape[-1]
        flat = isinstance(second.descriptor, FullyConnectedDescriptor) and not along % own.channels
        repeats = inputs_per_channel(second, reading, along if flat else shape[-1])
        if repeats is None:
            return None
        return cls(first=first, second=second, own=own, reading=reading, tensors=tuple(tensors), repeats=repeats)

    def equalise(self, editor: GraphEditor, peaks: Mapping[str, Array]) -> int:
        """Multiply the channels of both layers, and return of how many."""
        rows = [peaks[name].astype(np.float64).reshape(-1, self.own.channels) for name in self.tensors]
        exponents = self._chosen(np.concatenate(rows).max(axis=0), rows[-1].max(axis=0))
        exponents[~self._normal(exponents)] = 0
        if not exponents.any():
            return 0
        for layer, changed in zip((self.first, self.second), self._changed(exponents), strict=True):
            stored = changed.stored()
            assert stored is not None
            editor.replace_layer(with_constants(editor, layer, stored))
        return int(np.count_nonzero(exponents))

    def _changed(self, exponents: _Exponents) -> tuple[Weights, Weights]:
        copies = self.reading.weights.shape[-1] // (self.own.channels * self.repeats)
        along = np.repeat(np.tile(exponents, copies), self.repeats)
        second = replace(self.reading, weights=np.ldexp(self.reading.weights, -along))
        return self.own.scaled(np.ldexp(1.0, exponents)), second

    def _normal(self, exponents: _Exponents) -> NDArray[np.bool_]:
        """Return for each channel whether its constants stay 0 or normal numbers of float32, and so are exact."""
        first, second = self._changed(exponents)
        parts = [np.moveaxis(first.weights, first.axis, -1), self._by_channel(second.weights)]
        parts += [] if first.bias is None else [first.bias]
        found = np.ones(len(exponents), np.bool_)
        for part in parts:
            magnitudes = np.abs(np.moveaxis(part, -1, 0).reshape(len(exponents), -1))
            fits = (magnitudes == 0) | ((magnitudes >= _LIMITS.tiny) & (magnitudes <= _LIMITS.max))
            found &= fits.all(axis=1)
        return found

    def _by_channel(self, weights: Numbers) -> Numbers:
        """Return the second layer's weights with the channels that it reads on the last axis, its own on the first."""
        parts = weights.reshape(weights.shape[0], -1, self.own.channels, self.repeats)
        return np.swapaxes(parts, 2, 3)

    def _chosen(self, sizes: Numbers, read: Numbers) -> _Exponents:
        """Return the exponents of which the least noise is expected, for channels of these sizes.

        `read` are the sizes of what the second layer reads: an average of few large values is small, and has their
        scale. The exponents that are tried make the sizes of channels more or less equal, or their sizes and those of
        their weights.
        """
        reading = np.abs(self._by_channel(self.reading.weights))
        live = (sizes > 0) & (reading.max(axis=(0, 1, 2)) > 0)
        tried = [np.zeros(len(sizes), np.int64)]
        if not live.any():
            return tried[0]
        separate = isinstance(self.second.descriptor, DepthwiseConv2dDescriptor)
        weights = None if separate else reading.max(axis=(1, 2))
        reach, use = np.log2(np.where(live, sizes, 1.0)), np.zeros(len(sizes))
        if weights is not None:
            shares = weights / np.maximum(weights.max(axis=1, keepdims=True), _LIMITS.tiny)
            use = np.log2(np.where(live, np.maximum(shares.max(axis=0), _LIMITS.tiny), 1.0))
        for wanted in (*(-strength * reach for strength in _STRENGTHS), (use - reach) / 2):
            shifted = wanted + reach[live].max() - (wanted + reach)[live].max()  # the largest channel keeps its size
            tried.append(np.where(live, np.clip(np.floor(shifted), -_FARTHEST, _FARTHEST), 0).astype(np.int64))
        power = np.sum(reading**2, axis=(0, 1, 2))
        expected = _Expected(sizes=sizes, read=read, power=power, weights=weights, terms=reading.shape[1])
        return min(tried, key=expected.noise)


@frozen
class _Expected:
    """What decides the noise of a second layer's sums, each by the channel that it reads."""

    sizes: Numbers
    """The largest magnitude of a value that shares the scale."""
    read: Numbers
    """The largest magnitude of a value that is summed."""
    power: Numbers
    """The sum of the squares of its weights."""
    weights: Numbers | None
    """The largest magnitude of its weights in each sum, a row for each; None if each channel has its own sums."""
    terms: int
    """Its products in a sum."""

    def noise(self, exponents: _Exponents) -> float:
        """Return the mean square of the noise, summed over the sums, by the rounding to the steps of both scales.

        A rounding has the mean square step^2 / 12 (Bennett, "Spectra of quantized signals", 1948).
        """
        factors = np.ldexp(1.0, exponents)
        step = float(np.max(self.sizes * factors)) / _STEPS
        total = step**2 / 12 * float(np.sum(self.power / factors**2))
        if self.weights is not None:
            steps = np.max(self.weights / factors, axis=1) / _WEIGHT_STEPS
            squares = float(np.sum((self.read * factors / _CREST) ** 2))
            total += float(np.sum(steps**2)) / 12 * self.terms * squares
        return total


def _alone(editor: GraphEditor, layer: Layer) -> Weights | None:
    """Return the constants of a layer that sums products; None if another layer reads them, too."""
    own = Weights.of(editor, layer)
    shared = own is not None and any(len(editor.consumers(name)) > 1 for name in layer.present_inputs[1:])
    return None if shared else own


def _keeps_factors(editor: GraphEditor, layer: Layer) -> bool:
    """Return whether the activation of a layer, or its mean, keeps the factors of channels."""
    if isinstance(layer.descriptor, ReduceDescriptor):
        return len(editor.info(layer.present_inputs[0]).shape) - 1 not in layer.descriptor.axes
    return fused_activation(layer.descriptor) in {None, Activation.NONE, Activation.RELU}
