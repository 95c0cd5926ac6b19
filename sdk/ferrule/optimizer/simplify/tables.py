# SPDX-License-Identifier: Apache-2.0
"""Replaces layers in float32 between DEQUANTIZE and QUANTIZE, as which GELU comes from ONNX, by a table of int8."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule.graph import Array, DataType, GraphEditor, Layer, LayerType, Rounding, TensorInfo
from ferrule.graph.real_values import overflowing_floats
from ferrule.operators.elementwise.lookup import LookupDescriptor
from ferrule.operators.operator import EVERY_INT8, Operands
from ferrule.operators.table import OPERATORS, having, type_of

_MOST_LAYERS = 64
"""Between DEQUANTIZE and QUANTIZE."""


def find_tables(editor: GraphEditor, layer: Layer) -> None:
    """Replace a QUANTIZE by a LOOKUP of the int8 tensor of which elementwise layers in float32 compute its input.

    All other operands of these layers must be constants of one element. The entries are the results of the layers' own
    reference kernels, so that the 256 possible results, and thereby those of the network, keep every bit.
    """
    if layer.type is not LayerType.QUANTIZE or editor.info(layer.outputs[0]).dtype is not DataType.INT8:
        return
    chain = _Chain(editor)
    try:
        found = chain.results(layer)
    except _NoTableError:
        return
    if chain.source is None or chain.layers < 1:
        return
    table = LookupDescriptor(table=tuple(int(value) for value in found))
    editor.replace_layer(
        replace(layer, type=type_of(table), descriptor=table, inputs=(chain.source,), rounding=Rounding.TFLM)
    )


class _NoTableError(Exception):
    """The input of the QUANTIZE depends on more than one int8."""


class _Chain:
    """The layers of which a float is computed, for each value of the one int8 on which it depends."""

    def __init__(self, editor: GraphEditor) -> None:
        self._editor = editor
        self._known: dict[str, Array] = {}
        self.source: str | None = None
        self.layers = 0
        """The layers between DEQUANTIZE and QUANTIZE."""

    def results(self, layer: Layer) -> Array:
        """Return the output of a layer; _NoTableError if it does not depend on one int8 alone."""
        operator, shape = OPERATORS[layer.type], self._editor.info(layer.outputs[0]).shape
        arrays: list[Array | None] = []
        infos: list[TensorInfo | None] = []
        for name in layer.inputs:
            array = None if name is None else self._array(name, shape)
            arrays.append(array)
            infos.append(None if name is None or array is None else self._flat(name, array.size))
        output = self._flat(layer.outputs[0], EVERY_INT8.size)
        operands = Operands(tuple(infos), (output,), rounding=layer.rounding)
        with overflowing_floats():
            (found,) = operator.kernel(layer.descriptor, operands, arrays)
        return found

    def _flat(self, name: str, size: int) -> TensorInfo:
        return replace(self._editor.info(name), shape=(size,))

    def _array(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return a tensor of the chain for each value of the int8, or a constant of one element."""
        if name not in self._known:
            tensor, layer = self._editor.tensor(name), self._editor.producer(name)
            if tensor.data is not None and tensor.data.size == 1:
                self._known[name] = tensor.data.reshape(1)
            elif layer is None or tensor.info.shape != shape or self.layers == _MOST_LAYERS:
                raise _NoTableError
            elif layer.type is LayerType.DEQUANTIZE:
                self._known[name] = self._dequantized(layer)
            elif layer.type in having(elementwise=True) and tensor.info.dtype is DataType.FLOAT32:
                self.layers += 1  # first, so that a long chain ends before it goes too deep
                self._known[name] = self.results(layer)
            else:
                raise _NoTableError
        return self._known[name]

    def _dequantized(self, layer: Layer) -> Array:
        (name,) = layer.inputs
        if name is None or self._editor.info(name).dtype is not DataType.INT8 or self.source not in {None, name}:
            raise _NoTableError
        self.source = name
        operands = Operands((self._flat(name, EVERY_INT8.size),), (self._flat(layer.outputs[0], EVERY_INT8.size),))
        (found,) = OPERATORS[layer.type].kernel(layer.descriptor, operands, [EVERY_INT8])
        return np.asarray(found)
