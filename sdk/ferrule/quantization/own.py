# SPDX-License-Identifier: Apache-2.0
"""Quantises the layers that the library leaves in float32, and for which there are integer kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import (
    Array,
    DataType,
    Descriptor,
    Graph,
    GraphEditor,
    Layer,
    LayerType,
    Quantization,
    Tensor,
    TensorInfo,
)
from ferrule.graph.assembly import assemble
from ferrule.graph.lookup import Lookup
from ferrule.graph.names import UniqueNames
from ferrule.graph.tensor import constant, read_only, renamed
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.elementwise.functions_of_two import ExtremumDescriptor
from ferrule.operators.elementwise.quantize import CONVERSIONS, DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.interpreter import operator_of
from ferrule.operators.movement.pad import PadV2Descriptor
from ferrule.operators.operator import Operands
from ferrule.quantization import recurrent
from ferrule.quantization.precision import SCHEMES, Precision
from ferrule.quantization.ranges import Range
from ferrule.quantization.surgery import is_foreign

_NARROW = DataType.INT8
"""The type of constants of layers that have them in int8 beside int16, such as PRELU."""
_PROBE = Quantization.of(1 / 64)
"""A quantisation that each integer kernel takes which takes any."""
_FIXED: Mapping[LayerType, Quantization] = {LayerType.ZEROS_LIKE: Quantization.of(1.0)}
"""The output's quantisation of layers that write the integer 0, whatever the zero point."""
_CENTRED = frozenset({LayerType.ADD_N, LayerType.CUMSUM})
"""Layers whose zero point has to be 0: their sums start with minus the zero point in TensorFlow Lite Micro."""
_Prepared = tuple[list[Tensor | None], list[TensorInfo]]
"""The inputs and outputs of a layer of integers, by the names of those in float32."""


def with_own_integers(
    network: Network, ranges: Mapping[str, Range], precisions: Mapping[str, Precision], ends: Mapping[str, TensorInfo]
) -> tuple[Network, dict[str, str]]:
    """Return a network with more layers in integers, and why others stay in float32, by the tensor that they write.

    `ranges` and `precisions` are by the names of the tensors that the layers of the float network write. `ends` has the
    integers that inputs and outputs in float32 are to be, unless layers have others there already.
    """
    editor, reasons, made = GraphEditor(network), dict[str, str](), dict[str, str]()
    for layer in editor.layers():
        name = layer.outputs[0]
        precision = precisions.get(name, Precision.FLOAT)
        if layer.type in CONVERSIONS or not is_float(editor, layer):
            continue
        if precision is Precision.FLOAT:
            reasons[name] = "it is kept in float32"
            continue
        conversion = _Conversion(editor, ranges, precision)
        refusal = conversion.refusal(layer)
        if refusal is None:
            made |= conversion.convert(layer)
        else:
            reasons[name] = refusal
    _convert_inputs(editor, network, ends)
    _remove_conversions(editor)
    graph = _with_integer_outputs(editor.finish(), ends)
    floats = {tensor.info.name for tensor in graph.tensors}
    return network_of(with_names(graph, {old: new for old, new in made.items() if new not in floats})), reasons


def is_float(graph: Lookup, layer: Layer) -> bool:
    """Return whether a layer reads or writes float32."""
    names = (*layer.present_inputs, *layer.outputs)
    return any(graph.info(name).dtype is DataType.FLOAT32 for name in names)


def refused(network: Network, ranges: Mapping[str, Range], precisions: Mapping[str, Precision]) -> frozenset[str]:
    """Return the names of layers of a float network whose operators have no kernel for the integers wanted.

    Those that sum products are not among them: their constants have types of their own.
    """
    editor, found = GraphEditor(network), set[str]()
    for layer in network.layers:
        precision = precisions[layer.name]
        if precision is Precision.FLOAT or operator_of(layer.type).weighted:
            continue
        if _Conversion(editor, ranges, precision).refusal(layer) is not None:
            found.add(layer.name)
    return frozenset(found)


def _stored_form(descriptor: Descriptor, outputs: Sequence[TensorInfo]) -> Descriptor:
    """Return a descriptor whose real numbers are integers of the output."""
    if not isinstance(descriptor, PadV2Descriptor) or outputs[0].quantization is None:
        return descriptor
    return replace(descriptor, value=int(outputs[0].quantize(np.array(descriptor.value, np.float32))))


def _symmetric(data: Array) -> Quantization:
    """Return the quantisation of a constant to int8 without a zero point."""
    reach = float(np.max(np.abs(data))) or 1.0
    return Quantization.of(reach / 127)


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
            replace(
                state,
                source=given.get(state.source, state.source),
                result=given.get(state.result, state.result),
            )
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
        return self._place(layer, *self.prepared(layer))

    def refusal(self, layer: Layer) -> str | None:
        """Return why there is no integer form of a layer, in words for users; None if there is one."""
        kernels = [each for each in SCHEMES if self._has_kernel(layer, each)]
        if kernels and is_foreign(layer):
            return f"{layer.type} of integers takes samples without a scale"
        try:
            self.prepared(layer)
        except FerruleError as error:
            if self._precision in kernels:
                return str(error)
            if kernels:
                return f"{layer.type} has no kernel for {self._precision}, but one for {kernels[0]}"
            return f"{layer.type} has no integer kernel"
        return None

    def prepared(self, layer: Layer) -> _Prepared:
        """Return the inputs and outputs of a layer of integers; raises as `convert`.

        A layer may need one quantisation for all tensors, or int8 constants beside int16.
        """
        operator = operator_of(layer.type)
        if layer.type in recurrent.KEPT:
            return self._with_states(layer)
        keeps = operator.moves or operator.descriptor is ExtremumDescriptor or layer.type in _CENTRED
        common = self._common(layer)
        refused: FerruleError | None = None
        for quantization, constants in ((common, None), (None, None), (None, _NARROW))[0 if keeps else 1 :]:
            try:
                return self._accepted(layer, quantization, constants)
            except FerruleError as error:
                refused = refused or error
        if not keeps:
            try:
                return self._accepted(layer, common, None)
            except FerruleError:
                pass
        assert refused is not None
        raise refused

    def _with_states(self, layer: Layer) -> _Prepared:
        """Return the inputs and outputs of a layer that keeps states; raises as `convert`."""
        editor, kept = self._editor, recurrent.KEPT[layer.type]
        for position, output in kept.items():
            source, result = str(layer.inputs[position]), layer.outputs[output]
            if len(editor.consumers(source)) != 1 or editor.consumers(result):
                raise UnsupportedError(f"another layer reads the state '{source}', expected this layer alone")
        tensors = [None if name is None else editor.tensor(name) for name in layer.inputs]
        data = self._input(str(layer.inputs[0]), None, None)
        infos = (data.info, *(None if tensor is None else tensor.info for tensor in tensors[1:]))
        operands = Operands(infos, outputs=tuple(map(editor.info, layer.outputs)))
        constants = [None if tensor is None else tensor.data for tensor in tensors]
        ranges = [self._range(name) for name in layer.outputs]
        types = recurrent.integers_of(layer, operands, constants, ranges, self._precision)
        inputs: list[Tensor | None] = [data]
        for position, tensor in enumerate(tensors[1:], 1):
            if tensor is None:
                inputs.append(None)
                continue
            dtype, quantization = types[position]
            info = replace(tensor.info, dtype=dtype, quantization=quantization)
            integers = recurrent.stored(tensor, dtype, quantization)
            inputs.append(Tensor(info) if integers is None else constant(info, integers))
        of_output = {0: types[-1]} | {output: types[position] for position, output in kept.items()}
        outputs = [
            replace(editor.info(name), dtype=of_output[index][0], quantization=of_output[index][1])
            for index, name in enumerate(layer.outputs)
        ]
        self._check(layer, inputs, outputs)
        return inputs, outputs

    def _has_kernel(self, layer: Layer, precision: Precision) -> bool:
        """Return whether the operator of a layer has a kernel for integers, whatever their ranges."""
        if layer.type in recurrent.KEPT:
            return layer.type is not LayerType.SVDF or precision is Precision.INT8
        probe = _Conversion(self._editor, self._ranges, precision)
        for constants in (None, _NARROW):
            try:
                probe._accepted(layer, _PROBE, constants)
            except FerruleError:
                continue
            return True
        return False

    def _accepted(self, layer: Layer, common: Quantization | None, constants: DataType | None) -> _Prepared:
        """Return the inputs and outputs with a quantisation for all, or with their own; raises as `convert`."""
        operator = operator_of(layer.type)
        inputs = [None if name is None else self._input(name, common, constants) for name in layer.inputs]
        outputs = [
            replace(
                self._editor.info(name),
                dtype=self._precision.dtype,
                quantization=_FIXED.get(layer.type)
                or operator.prescribed.get(self._precision.dtype)
                or common
                or self._quantization(name),
            )
            if self._is_real(name)
            else self._editor.info(name)
            for name in layer.outputs
        ]
        self._check(layer, inputs, outputs)
        return inputs, outputs

    def _check(self, layer: Layer, inputs: Sequence[Tensor | None], outputs: Sequence[TensorInfo]) -> None:
        operator, infos = operator_of(layer.type), tuple(None if tensor is None else tensor.info for tensor in inputs)
        operands = Operands(infos, outputs=tuple(outputs), rounding=layer.rounding)
        descriptor = _stored_form(layer.descriptor, outputs)
        operator.accept(descriptor, operands)
        data = [None if tensor is None else tensor.data for tensor in inputs]
        operator.check_values(descriptor, operands, data)

    def _place(self, layer: Layer, inputs: Sequence[Tensor | None], outputs: Sequence[TensorInfo]) -> dict[str, str]:
        editor = self._editor
        for position, output in recurrent.KEPT.get(layer.type, {}).items():  # states keep their names
            state = inputs[position]
            assert state is not None
            editor.set_state(state, read_only(state.info.quantize(editor.initial(state.info.name))))
            editor.set_tensor(Tensor(outputs[output]))
        names = [self._read(*each, before=layer.name) for each in zip(layer.inputs, inputs, strict=True)]
        results = {
            info.name: editor.add_tensor(Tensor(replace(info, name=f"{info.name}_integer")))
            for info in outputs
            if self._is_real(info.name)
        }
        kept = tuple(results.get(name, name) for name in layer.outputs)
        descriptor = _stored_form(layer.descriptor, outputs)
        editor.replace_layer(replace(layer, descriptor=descriptor, inputs=tuple(names), outputs=kept))
        for name, stored in results.items():
            back = Layer(editor.fresh(f"{name}_back"), LayerType.DEQUANTIZE, DequantizeDescriptor(), (stored,), (name,))
            editor.add_layer(back, behind=layer.name)
        return {stored: name for name, stored in results.items()}

    def _read(self, name: str | None, wanted: Tensor | None, *, before: str) -> str | None:
        """Return the name of a tensor in the form that a layer is to read, which is added if it is not there yet."""
        editor = self._editor
        if name is None or wanted is None or wanted is editor.tensor(name):
            return name
        source = self._source(name)
        if source is not None and editor.info(source) == replace(wanted.info, name=source):
            return source
        stored = editor.add_tensor(renamed(wanted, f"{name}_integer"))
        if not wanted.is_constant:
            convert = Layer(
                editor.fresh(f"{stored}_from"), LayerType.QUANTIZE, QuantizeDescriptor(), (source or name,), (stored,)
            )
            editor.add_layer(convert, before=before)
        return stored

    def _source(self, name: str) -> str | None:
        """Return the integers that a float tensor is computed from; None if it is computed in float32."""
        writer = self._editor.producer(name)
        if writer is None or writer.type is not LayerType.DEQUANTIZE:
            return None
        return writer.inputs[0]

    def _common(self, layer: Layer) -> Quantization:
        """Return the quantisation of all tensors of a layer that keeps it: that of its data, if they have the same."""
        data = [name for name in (*layer.present_inputs, *layer.outputs) if self._is_real(name)]
        given = [name for name in data if name in layer.present_inputs]
        found = {self._stored(name) for name in given if not self._editor.tensor(name).is_constant}
        if layer.type in _CENTRED:
            range_ = self._range(*data).quantizable
            return Quantization.of(max(-range_.low, range_.high) / 127)
        keeps = operator_of(layer.type).moves and not isinstance(layer.descriptor, PadV2Descriptor)
        within = keeps or self._range(*given) == self._range(*data)
        if len(found) == 1 and None not in found and within:
            return found.pop()  # type: ignore[return-value] # it is not None
        return self._range(*data).quantization(self._precision)

    def _is_real(self, name: str) -> bool:
        return self._editor.info(name).dtype is DataType.FLOAT32

    def _stored(self, name: str) -> Quantization | None:
        """Return the quantisation of the integers behind a float tensor, if they are of the precision."""
        source = self._source(name)
        info = None if source is None else self._editor.info(source)
        return info.quantization if info is not None and info.dtype is self._precision.dtype else None

    def _input(self, name: str, common: Quantization | None, constants: DataType | None) -> Tensor:
        """Return an input as the layer is to read it, by its own name; constants may have a type of their own."""
        tensor = self._editor.tensor(name)
        if not self._is_real(name):
            return tensor
        dtype = self._precision.dtype
        quantization = common or self._stored(name) or self._quantization(name)
        if constants is not None and tensor.data is not None:
            dtype, quantization = constants, _symmetric(tensor.data)
        info = replace(tensor.info, dtype=dtype, quantization=quantization)
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
        return Range.spanning(*self._editor.info(source).limits)


def _convert_inputs(editor: GraphEditor, graph: Graph, ends: Mapping[str, TensorInfo]) -> None:
    """Let inputs be integers, with conversions to float32 behind them."""
    for info in graph.inputs:
        if info.name in ends:
            wanted = _with_known(
                ends[info.name], [editor.info(each.outputs[0]) for each in editor.consumers(info.name)]
            )
            real = editor.fresh(f"{info.name}_real")
            editor.set_tensor(Tensor(replace(info, name=real)))
            editor.redirect({info.name: real})
            editor.set_tensor(Tensor(replace(wanted, name=info.name)))
            first = next(editor.layers(), None)
            convert = Layer(
                editor.fresh(f"{real}_layer"), LayerType.DEQUANTIZE, DequantizeDescriptor(), (info.name,), (real,)
            )
            editor.add_layer(convert, before=None if first is None else first.name)


def _with_integer_outputs(graph: Graph, ends: Mapping[str, TensorInfo]) -> Graph:
    """Return a graph with integers as outputs: those of which outputs are made, or what further layers make of them."""
    tensors = {tensor.info.name: tensor for tensor in graph.tensors}
    layers, names = list(graph.layers), UniqueNames([*tensors, *(layer.name for layer in graph.layers)])
    outputs = [info.name for info in graph.outputs]
    for place, info in enumerate(graph.outputs):
        writer = graph.producer(info.name)
        if info.name not in ends or writer is None:
            continue
        wanted, source = ends[info.name], writer.present_inputs[0]
        known = graph.info(source)
        if writer.type is not LayerType.DEQUANTIZE or known.dtype is not wanted.dtype:
            source = info.name
        elif source not in outputs and graph.producer(source) is not None:
            outputs[place] = source
            continue
        else:
            wanted = known
        outputs[place] = stored = names.take(f"{info.name}_integer")
        tensors[stored] = Tensor(replace(wanted, name=stored))
        name = names.take(f"{stored}_layer")
        layers.append(Layer(name, LayerType.QUANTIZE, QuantizeDescriptor(), (source,), (stored,)))
    read = {name for layer in layers for name in layer.present_inputs} | {state.result for state in graph.states}
    read.update(outputs)
    kept = [layer for layer in layers if layer.type is not LayerType.DEQUANTIZE or layer.outputs[0] in read]
    return assemble(
        graph.name,
        inputs=[info.name for info in graph.inputs],
        outputs=outputs,
        layers=kept,
        tensors=tensors,
        states=graph.states,
    )


def _with_known(wanted: TensorInfo, known: Sequence[TensorInfo]) -> TensorInfo:
    """Return integers of a type with the quantisation that neighbours have in that type, if they have the same one."""
    found = {info.quantization for info in known if info.dtype is wanted.dtype and info.quantization is not None}
    return replace(wanted, quantization=found.pop()) if len(found) == 1 else wanted


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
