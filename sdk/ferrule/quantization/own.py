# SPDX-License-Identifier: Apache-2.0
"""Quantises the layers that the library leaves in float32, and for which there are integer kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import FerruleError
from ferrule.graph import DataType, Graph, GraphEditor, Layer, LayerType, Quantization, Tensor, TensorInfo
from ferrule.graph.assembly import assemble
from ferrule.graph.tensor import constant, renamed
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.elementwise.functions_of_two import ExtremumDescriptor
from ferrule.operators.elementwise.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.interpreter import operator_of
from ferrule.operators.operator import Operands
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Range

CONVERSIONS = frozenset({LayerType.QUANTIZE, LayerType.DEQUANTIZE})


def with_own_integers(
    network: Network, ranges: Mapping[str, Range], precisions: Mapping[str, Precision]
) -> tuple[Network, dict[str, str]]:
    """Return a network with more layers in integers, and why others stay in float32, by the tensor that they write.

    `ranges` and `precisions` are by the names of the tensors that the layers of the float network write.
    """
    editor, reasons, made = GraphEditor(network), dict[str, str](), dict[str, str]()
    for layer in editor.layers():
        name = layer.outputs[0]
        precision = precisions.get(name, Precision.FLOAT)
        if layer.type in CONVERSIONS or editor.info(name).dtype is not DataType.FLOAT32:
            continue
        if precision is Precision.FLOAT:
            reasons[name] = "it is kept in float32"
            continue
        try:
            made |= _Conversion(editor, ranges, precision).convert(layer)
        except FerruleError as error:
            reasons[name] = str(error)
    _remove_conversions(editor)
    graph = editor.finish()
    floats = {tensor.info.name for tensor in graph.tensors}
    return network_of(with_names(graph, {old: new for old, new in made.items() if new not in floats})), reasons


def with_names(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return a graph with other names of tensors, old to new; a tensor that has a new name already gets another."""
    taken = set(names.values()) - set(names)
    given = {name: f"{name}_before" for name in taken} | dict(names)

    def of(layer: Layer) -> Layer:
        inputs = tuple(None if name is None else given.get(name, name) for name in layer.inputs)
        return replace(layer, inputs=inputs, outputs=tuple(given.get(name, name) for name in layer.outputs))

    def name_of(info: TensorInfo) -> str:
        return given.get(info.name, info.name)

    return assemble(
        graph.name,
        inputs=[name_of(info) for info in graph.inputs],
        outputs=[name_of(info) for info in graph.outputs],
        layers=map(of, graph.layers),
        tensors={name_of(each.info): renamed(each, name_of(each.info)) for each in graph.tensors},
        states=[
            replace(state, source=given.get(state.source, state.source), result=given.get(state.result, state.result))
            for state in graph.states
        ],
    )


class _Conversion:
    """The conversion of one layer; the graph changes only if the operator accepts the integers."""

    def __init__(self, editor: GraphEditor, ranges: Mapping[str, Range], precision: Precision) -> None:
        self._editor = editor
        self._ranges = ranges
        self._precision = precision

    def convert(self, layer: Layer) -> dict[str, str]:
        """Replace a float layer by one of integers between conversions, and return its new outputs' names and the old.

        Raises:
            FerruleError: there is no such operator for integers; the message says why.
        """
        operator = operator_of(layer.type)
        keeps = operator.moves or operator.descriptor is ExtremumDescriptor
        common = self._common(layer) if keeps else None
        inputs = [None if name is None else self._input(name, common) for name in layer.inputs]
        outputs = [
            replace(
                self._editor.info(name),
                name=f"{name}_integer",
                dtype=self._precision.dtype,
                quantization=common or operator.prescribed.get(self._precision.dtype) or self._quantization(name),
            )
            for name in layer.outputs
        ]
        infos = tuple(None if tensor is None else tensor.info for tensor in inputs)
        operands = Operands(infos, outputs=tuple(outputs), rounding=layer.rounding)
        operator.accept(layer.descriptor, operands)
        operator.check_values(
            layer.descriptor, operands, [None if tensor is None else tensor.data for tensor in inputs]
        )
        return self._place(layer, inputs, outputs)

    def _place(self, layer: Layer, inputs: Sequence[Tensor | None], outputs: Sequence[TensorInfo]) -> dict[str, str]:
        editor = self._editor
        names = [self._read(*each, before=layer.name) for each in zip(layer.inputs, inputs, strict=True)]
        results = [self._added(Tensor(info)) for info in outputs]
        editor.replace_layer(replace(layer, inputs=tuple(names), outputs=tuple(results)))
        for stored, name in zip(results, layer.outputs, strict=True):
            back = Layer(editor.fresh(f"{name}_back"), LayerType.DEQUANTIZE, DequantizeDescriptor(), (stored,), (name,))
            editor.add_layer(back, behind=layer.name)
        return dict(zip(results, layer.outputs, strict=True))

    def _read(self, name: str | None, wanted: Tensor | None, *, before: str) -> str | None:
        """Return the name of a tensor in the form that a layer is to read, which is added if it is not there yet."""
        editor = self._editor
        if name is None or wanted is None or wanted is editor.tensor(name):
            return name
        source = self._source(name)
        if source is not None and editor.info(source) == replace(wanted.info, name=source):
            return source
        stored = self._added(wanted)
        if not wanted.is_constant:
            convert = Layer(
                editor.fresh(f"{stored}_from"), LayerType.QUANTIZE, QuantizeDescriptor(), (source or name,), (stored,)
            )
            editor.add_layer(convert, before=before)
        return stored

    def _added(self, tensor: Tensor) -> str:
        """Add a tensor, by its name or one like it."""
        name = self._editor.fresh(tensor.info.name)
        self._editor.set_tensor(renamed(tensor, name))
        return name

    def _source(self, name: str) -> str | None:
        """Return the integers that a float tensor is computed from; None if it is computed in float32."""
        writer = self._editor.producer(name)
        if writer is None or writer.type is not LayerType.DEQUANTIZE:
            return None
        return writer.inputs[0]

    def _common(self, layer: Layer) -> Quantization:
        """Return the quantisation of all tensors of a layer that keeps it: that of its data, if they have the same."""
        data = [name for name in layer.present_inputs if self._is_real(name)]
        found = {self._stored(name) for name in data if not self._editor.tensor(name).is_constant}
        if len(found) == 1 and None not in found:
            return found.pop()  # type: ignore[return-value] # it is not None
        return self._range(*data, *layer.outputs).quantization(self._precision)

    def _is_real(self, name: str) -> bool:
        return self._editor.info(name).dtype is DataType.FLOAT32

    def _stored(self, name: str) -> Quantization | None:
        """Return the quantisation of the integers behind a float tensor, if they are of the precision."""
        source = self._source(name)
        info = None if source is None else self._editor.info(source)
        return info.quantization if info is not None and info.dtype is self._precision.dtype else None

    def _input(self, name: str, common: Quantization | None) -> Tensor:
        """Return an input as the layer is to read it: the tensor itself, or one that may have to be added."""
        tensor = self._editor.tensor(name)
        if not self._is_real(name):
            return tensor
        quantization = common or self._stored(name) or self._quantization(name)
        info = replace(tensor.info, name=f"{name}_integer", dtype=self._precision.dtype, quantization=quantization)
        if tensor.data is None:
            return Tensor(info)
        return constant(info, info.quantize(tensor.data))

    def _quantization(self, name: str) -> Quantization:
        """Return the quantisation of a float tensor: that which a reader wants, or that of its range."""
        for reader in self._editor.consumers(name):
            info = self._editor.info(reader.outputs[0])
            if reader.type is LayerType.QUANTIZE and info.dtype is self._precision.dtype and info.quantization:
                return info.quantization
        return self._range(name).quantization(self._precision)

    def _range(self, *names: str) -> Range:
        """Return the range of the values of float tensors; FerruleError if none was observed."""
        found = [self._observed(name) for name in names]
        whole = found[0]
        for each in found[1:]:
            whole = whole.joined(each)
        return whole

    def _observed(self, name: str) -> Range:
        data = self._editor.tensor(name).data
        if data is not None:
            return Range.spanning(float(np.min(data)), float(np.max(data)))
        if name in self._ranges:
            return self._ranges[name]
        source = self._source(name)
        if source is None:
            raise FerruleError(f"the range of tensor '{name}' was not observed")
        info = self._editor.info(source)
        limits = np.iinfo(info.dtype.numpy)
        low, high = (info.scale * (limit - info.zero_point) for limit in (limits.min, limits.max))
        return Range.spanning(low, high)


def _remove_conversions(editor: GraphEditor) -> None:
    """Remove conversions to float32 and back."""
    for layer in editor.layers():
        source = layer.inputs[0]
        writer = None if source is None else editor.producer(source)
        if layer.type is not LayerType.QUANTIZE or writer is None or writer.type is not LayerType.DEQUANTIZE:
            continue
        stored = writer.inputs[0]
        assert stored is not None
        before, behind = editor.info(stored), editor.info(layer.outputs[0])
        same = replace(before, name=behind.name) == behind
        if not (same and editor.bypass(layer, stored)):
            editor.replace_layer(replace(layer, inputs=(stored,)))
    for layer in list(editor.layers()):
        result = layer.outputs[0]
        if layer.type is LayerType.DEQUANTIZE and not editor.consumers(result) and not editor.is_output(result):
            editor.remove_layer(layer.name)
