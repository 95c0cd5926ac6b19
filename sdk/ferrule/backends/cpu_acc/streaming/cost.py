# SPDX-License-Identifier: Apache-2.0
"""Estimates of instructions: those of a layer, and those that a chain adds."""

from __future__ import annotations

from ferrule.backends.cpu_acc.streaming.chain import Chain, window_of
from ferrule.backends.cpu_acc.streaming.timeline import Timeline
from ferrule.graph import Graph, Layer, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

_PER_MAC = {LayerType.DEPTHWISE_CONV_2D: 3.0}
_PER_BAND = 400
"""Instructions of a band beside those of its pixels: the choice of the band, the call, and the kernel's preparation."""
_PER_MOVED_BYTE = 0.5
_PER_CHANNEL = 110
"""The preparation for each channel, which a depthwise kernel repeats for each band."""
_PER_ELEMENT = 4
"""The conversion of an element to 16 bits, which a depthwise kernel repeats for the rows that bands have in common."""


def instructions_of(graph: Graph, layer: Layer) -> float:
    """Return the estimated instructions of a layer that runs as a whole."""
    operator = OPERATORS.get(layer.type)
    operands = Operands.of(graph, layer)
    macs = 0 if operator is None else operator.macs(layer.descriptor, operands)
    window = window_of(graph, layer)
    taps = 1 if window is None or macs else window.height * window.width
    return _PER_MAC.get(layer.type, 1.0) * macs + 8.0 * taps * sum(info.elements for info in operands.outputs)


def calls_of(times: Timeline) -> float:
    """Return the estimated instructions of a chain beside those of its layers' kernels."""
    return _PER_BAND * times.steps + _PER_MOVED_BYTE * times.moved_bytes


def overhead_of(chain: Chain, times: Timeline) -> float:
    """Return the estimated instructions that a chain adds to those of its layers."""
    total = calls_of(times)
    for stage in chain.stages:
        _, _, width, channels = chain.tensors[stage.output].shape
        if stage.layer.type is LayerType.DEPTHWISE_CONV_2D:
            (reach,) = stage.inputs
            common = max(reach.rows - reach.step, 0) * chain.tensors[reach.tensor].shape[2]
            total += (_PER_CHANNEL + _PER_ELEMENT * common) * channels * stage.bands
        pixels = width * stage.rows
        if stage.layer.type is LayerType.CONV_2D and pixels % 2:  # kernels compute two pixels at once
            total += 0.4 * instructions_of(chain.graph, stage.layer) / pixels
    return total
