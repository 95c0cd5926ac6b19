# SPDX-License-Identifier: Apache-2.0
"""Replaces layers that compute each element of one int8 tensor by itself, as which GELU comes from ONNX, by a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ferrule.graph import Array, DataType, GraphEditor, Layer, Rounding, TensorInfo
from ferrule.graph.real_values import overflowing_floats
from ferrule.operators.elementwise.lookup import LookupDescriptor
from ferrule.operators.elementwise.quantize import CONVERSIONS
from ferrule.operators.operator import EVERY_INT8, Operands
from ferrule.operators.table import OPERATORS, having, type_of

_MOST_LAYERS = 64
"""Of which one table is made."""


def find_tables(editor: GraphEditor, layer: Layer) -> None:
    """Replace a layer by a LOOKUP of the int8 tensor of which elementwise layers compute its int8 output.

    Among these layers is one in float32, a table, or one that rounds by another rule than TFLM's: other layers may be
    worth more on an accelerator. All other operands are constants of one element. The entries are the results of the
    layers' own reference kernels, so that the 256 possible results, and thereby those of the network, keep every bit.
    """
    if layer.type not in having(elementwise=True) or editor.info(layer.outputs[0]).dtype is not DataType.INT8:
        return
    group = _Group(editor, layer)
    source = group.source()
    if source is None:
        return
    table = LookupDescriptor(table=tuple(int(value) for value in group.results(source)))
    editor.replace_layer(
        replace(layer, type=type_of(table), descriptor=table, inputs=(source,), rounding=Rounding.TFLM)
    )


@dataclass(slots=True, eq=False)
class _Group:
    """The elementwise layers of which the output of the last one is computed."""

    editor: GraphEditor
    last: Layer
    _reached: list[Layer] = field(default_factory=list)
    """In an order in which they can run."""
    _seen: set[str] = field(default_factory=set)
    _count: int = 0
    """How many layers at the end of `_reached` make up the table."""

    def source(self) -> str | None:
        """Return the int8 tensor of which the most layers compute the output; None if there is none."""
        self._reach(self.last)
        leaves = {self.last.outputs[0]}
        found, passed, is_closed = None, dict[str, Layer](), True
        for layer in reversed(self._reached):
            (output,) = layer.outputs
            leaves = (leaves - {output}) | set(self._operands(layer))
            is_closed = is_closed and (layer is self.last or self._is_closed(output, passed))
            passed[layer.name] = layer
            if len(leaves) == 1 and (is_closed or self.last.rounding is not Rounding.TFLM):
                (leaf,) = leaves
                if self._is_whole(leaf) and self._is_worth(passed):
                    found, self._count = leaf, len(passed)
        return found

    def results(self, source: str) -> Array:
        """Return the output for each value of an int8 tensor."""
        known: dict[str, Array] = {source: EVERY_INT8}
        for layer in self._reached[-self._count :]:
            names = layer.present_inputs
            arrays = [known[name] if name in known else self._number(name) for name in names]
            infos = tuple(self._flat(name, known.get(name)) for name in names)
            (output,) = layer.outputs
            operands = Operands(infos, (self._flat(output, EVERY_INT8),), rounding=layer.rounding)
            with overflowing_floats():
                (known[output],) = OPERATORS[layer.type].kernel(layer.descriptor, operands, arrays)
        return known[self.last.outputs[0]]

    def _reach(self, layer: Layer) -> None:
        """Append the layers before one, and then itself."""
        self._seen.add(layer.name)
        for name in self._operands(layer):
            before = self.editor.producer(name)
            if before is None or before.name in self._seen or len(self._seen) >= _MOST_LAYERS:
                continue
            if before.type in having(elementwise=True) and self._has_shape(name) and None not in before.inputs:
                self._reach(before)
        self._reached.append(layer)

    def _operands(self, layer: Layer) -> list[str]:
        """Return the inputs of a layer but for constants of one element."""
        return [name for name in layer.present_inputs if self._number(name) is None]

    def _number(self, name: str) -> Array | None:
        data = self.editor.tensor(name).data
        return data.reshape(1) if data is not None and data.size == 1 else None

    def _flat(self, name: str, array: Array | None) -> TensorInfo:
        return replace(self.editor.info(name), shape=(1 if array is None else array.size,))

    def _has_shape(self, name: str) -> bool:
        return self.editor.info(name).shape == self.editor.info(self.last.outputs[0]).shape

    def _is_closed(self, name: str, passed: dict[str, Layer]) -> bool:
        """Whether integers vanish if all layers of the table do; float32 tensors cost more than a table in any case."""
        if self.editor.info(name).dtype is not DataType.INT8:
            return True
        return not self.editor.is_output(name) and all(each.name in passed for each in self.editor.consumers(name))

    def _is_whole(self, name: str) -> bool:
        tensor = self.editor.tensor(name)
        return tensor.data is None and tensor.info.dtype is DataType.INT8 and self._has_shape(name)

    def _is_worth(self, passed: dict[str, Layer]) -> bool:
        """Whether layers are more than one, more than conversions, and none of an accelerator's."""
        layers = passed.values()
        if len(layers) < 2 or all(each.type in CONVERSIONS for each in layers):
            return False
        return any(
            isinstance(each.descriptor, LookupDescriptor)
            or each.rounding is not Rounding.TFLM
            or self.editor.info(each.outputs[0]).dtype is DataType.FLOAT32
            for each in layers
        )
