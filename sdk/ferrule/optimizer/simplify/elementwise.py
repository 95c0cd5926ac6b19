# SPDX-License-Identifier: Apache-2.0
"""Joins reshapes and transposes on both sides of elementwise layers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ferrule.graph import GraphEditor, Layer, LayerType, Shape, Tensor, TensorInfo, constant
from ferrule.operators.table import having
from ferrule.optimizer.simplify.acceptance import accepts
from ferrule.optimizer.simplify.movement import as_reshape, joined_transpose, permutation

_DEEPEST = 16
"""The most elementwise layers between two movements."""


def join_across_elementwise(editor: GraphEditor, layer: Layer) -> None:
    """Replace a transpose, elementwise layers and a transpose by the elementwise layers and one transpose.

    The elementwise layers then compute in the order of the first transpose's input, so that the two transposes become
    one, or none. The same holds for reshapes. Nothing else may read the tensors between them; the other operands of a
    layer with several are moved in the same way, or constants.
    """
    is_transpose = layer.type is LayerType.TRANSPOSE
    if (is_transpose or layer.type in having(view=True)) and layer.inputs[0] is not None:
        _Chain(editor, layer).join(layer.inputs[0])


@dataclass
class _Chain:
    """The elementwise layers between the movements at their inputs and one movement at their output."""

    _editor: GraphEditor
    _last: Layer
    _layers: list[Layer] = field(default_factory=list)
    """The elementwise layers as they will be, in order."""
    _tensors: dict[str, Tensor] = field(default_factory=dict)
    """The tensors that replace others, by the name of the other."""
    _first: Layer | None = None
    """One of the movements at the inputs; all move in the same way."""

    def join(self, name: str) -> None:
        """Let the elementwise layers read what the first movements read.

        The graph stays if something that `name` is computed from cannot be had in the movements' order, or if no
        layer is between the movements: other passes join neighbours.
        """
        if self._unmoved(name, 0) is None or not self._layers or self._first is None:
            return
        for tensor in self._tensors.values():
            self._editor.set_tensor(tensor)
        for layer in self._layers:
            self._editor.replace_layer(layer)
        is_transpose = self._last.type is LayerType.TRANSPOSE
        joined = joined_transpose(self._first, self._last) if is_transpose else as_reshape(self._editor, self._last)
        self._editor.replace_layer(replace(joined, inputs=self._layers[-1].outputs))

    def _unmoved(self, tensor: str, depth: int) -> TensorInfo | None:
        """Return the tensor as it is before the movement; None if there is no such movement."""
        layer = self._editor.producer(tensor)
        if layer is None or layer.inputs[0] is None:
            return None
        if self._is_movement(layer):
            return self._moved_like_others(layer)
        if depth == _DEEPEST or self._editor.only_consumer(tensor) is None:
            return None
        if layer.type not in having(elementwise=True):
            return None
        infos = [
            None if name is None or self._editor.tensor(name).is_constant else self._unmoved(name, depth + 1)
            for name in layer.inputs
        ]
        if self._first is None:
            return None
        found = [self._fixed(name) if info is None else info for name, info in zip(layer.inputs, infos, strict=True)]
        inputs = [info for info in found if info is not None]
        if len(inputs) != len(found):
            return None
        return self._elementwise(layer, inputs)

    def _elementwise(self, layer: Layer, inputs: list[TensorInfo]) -> TensorInfo | None:
        """Add the layer on other inputs and return its output; None if the operator does not accept it."""
        old = self._editor.info(layer.outputs[0])
        assert self._first is not None
        shape = self._editor.info(str(self._first.inputs[0])).shape
        if np.broadcast_shapes(*(info.shape for info in inputs)) != shape:
            return None
        info = replace(old, name=self._editor.fresh(f"{old.name}_unmoved"), shape=shape)
        changed = replace(layer, inputs=tuple(each.name for each in inputs), outputs=(info.name,))
        if not accepts(layer, inputs, [info]):
            return None
        self._layers.append(changed)
        self._tensors[old.name] = Tensor(info)
        return info

    def _is_movement(self, layer: Layer) -> bool:
        if self._last.type is LayerType.TRANSPOSE:
            return layer.type is LayerType.TRANSPOSE
        return layer.type in having(view=True)

    def _moved_like_others(self, layer: Layer) -> TensorInfo | None:
        """Return the input of a movement; None if another movement of the chain differs."""
        source = self._editor.info(str(layer.inputs[0]))
        if self._first is None:
            self._first = layer
        elif self._movement(layer) != self._movement(self._first):
            return None
        return source

    def _movement(self, layer: Layer) -> tuple[Shape, Shape]:
        """Return what identifies a movement: the shape before it, and the permutation or the shape behind it."""
        before = self._editor.info(str(layer.inputs[0])).shape
        behind = self._editor.info(layer.outputs[0]).shape
        return before, permutation(layer) if layer.type is LayerType.TRANSPOSE else behind

    def _fixed(self, name: str | None) -> TensorInfo | None:
        """Return a constant operand in the order before the movement; None if the tensor is none."""
        tensor = None if name is None else self._editor.tensor(name)
        if tensor is None or tensor.data is None or self._first is None:
            return None
        info, data = tensor.info, tensor.data
        if info.quantization is not None and info.quantization.per_channel:
            return None
        before = self._editor.info(str(self._first.inputs[0])).shape
        behind = self._editor.info(self._first.outputs[0]).shape
        if data.size == 1 and len(info.shape) <= len(before):
            return info
        if len(info.shape) > len(behind):
            return None
        if self._first.type is not LayerType.TRANSPOSE:
            if info.shape != behind:
                return None
            data = data.reshape(before)
        else:
            data = data.reshape((1,) * (len(behind) - len(info.shape)) + info.shape)
            data = np.ascontiguousarray(data.transpose(np.argsort(permutation(self._first))))
        moved = replace(info, name=self._editor.fresh(f"{info.name}_unmoved"), shape=data.shape)
        self._tensors[moved.name] = constant(moved, data)
        return moved
