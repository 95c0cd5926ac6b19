# SPDX-License-Identifier: Apache-2.0
"""Writes layers that have no kernel for their integers as several layers that have one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import DataType, GraphEditor, LayerType
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Range
from ferrule.quantization.replacement import Replacement


@frozen
class Rewritten:
    """A float network with the same tensors and more, whose layers have kernels."""

    network: Network
    ranges: Mapping[str, Range]
    precisions: Mapping[str, Precision]
    """Of the layers by name."""


def with_kernels(
    network: Network, ranges: Mapping[str, Range], precisions: Mapping[str, Precision], *, without: frozenset[str]
) -> Rewritten:
    """Return a float network in which the layers `without` kernels are written as others, if that is possible.

    The new layers write the same tensors, and have the precision of those that they replace.
    """
    editor, found, given = GraphEditor(network), dict(ranges), dict(precisions)
    for layer in editor.layers():
        form = FORMS.get(layer.type) if layer.name in without else None
        if form is None or editor.info(layer.outputs[0]).dtype is not DataType.FLOAT32:
            continue
        parts = _Parts(made=Replacement(editor, layer), ranges=found)
        form(parts)
        parts.made.place()
        given |= dict.fromkeys((each.name for each in parts.made.layers), given[layer.name])
    return Rewritten(network=network_of(editor.finish()), ranges=found, precisions=given)


@frozen
class _Parts:
    """The layers that replace one, with the ranges of what they compute."""

    made: Replacement
    ranges: dict[str, Range]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs of the layer that is replaced."""
        return self.made.layer.present_inputs

    def number(self, value: float) -> str:
        """Add a constant of one element."""
        return self.made.constant("constant", np.array([value], np.float32))

    def range_of(self, name: str) -> Range:
        """Return the range of an input."""
        data = self.made.editor.tensor(name).data
        return self.ranges[name] if data is None else Range.spanning(float(data.min()), float(data.max()))

    def step(
        self, type_: LayerType, inputs: Sequence[str], range_: Range, activation: Activation = Activation.NONE
    ) -> str:
        """Add a layer before the last one; its results have the shape of the output and are within a range."""
        name = self.made.tensor(self.made.editor.info(self.made.layer.outputs[0]).shape)
        self.ranges[name] = range_
        self.made.add(type_, inputs, [name], BinaryDescriptor(activation=activation))
        return name

    def last(self, type_: LayerType, inputs: Sequence[str]) -> None:
        """Add the layer that writes the output."""
        self.made.add(type_, inputs, [self.made.layer.outputs[0]])


def _hard_swish(parts: _Parts) -> None:
    """Write x * (relu6(x + 3) / 6)."""
    (x,) = parts.inputs
    clamped = parts.step(LayerType.ADD, [x, parts.number(3)], Range(low=0, high=6), Activation.RELU6)
    share = parts.step(LayerType.MUL, [clamped, parts.number(1 / 6)], Range(low=0, high=1))
    parts.last(LayerType.MUL, [x, share])


def _square(parts: _Parts) -> None:
    (x,) = parts.inputs
    parts.last(LayerType.MUL, [x, x])


def _negative(parts: _Parts) -> None:
    (x,) = parts.inputs
    parts.last(LayerType.MUL, [x, parts.number(-1)])


def _sum(parts: _Parts) -> None:
    """Write an ADD for each further input."""
    first, *others, last = parts.inputs
    for name in others:
        before, more = parts.range_of(first), parts.range_of(name)
        first = parts.step(LayerType.ADD, [first, name], Range(low=before.low + more.low, high=before.high + more.high))
    parts.last(LayerType.ADD, [first, last])


FORMS: Mapping[LayerType, Callable[[_Parts], None]] = {
    LayerType.ADD_N: _sum,
    LayerType.HARD_SWISH: _hard_swish,
    LayerType.NEG: _negative,
    LayerType.SQUARE: _square,
}
"""How a layer is written that has no kernel for its integers."""
