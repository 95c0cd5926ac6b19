# SPDX-License-Identifier: Apache-2.0
"""Collects the operators and the additional tensors of a file to be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule._frozen import positional
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite.encoder import OperatorContent, OptionValue
from ferrule.graph import Array, DataType, Graph, Layer, LayerType, Quantization, Tensor, TensorInfo
from ferrule.graph.names import UniqueNames
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor


@positional
class Written:
    """A layer that is written, on which the version of its operator depends."""

    descriptor: Any
    inputs: Sequence[TensorInfo]
    """Those that are present."""
    output: TensorInfo
    """The first one."""

    @property
    def dtype(self) -> DataType:
        """The type of the first input."""
        return self.inputs[0].dtype

    @property
    def rank(self) -> int:
        """The most dimensions of an input."""
        return max(len(info.shape) for info in self.inputs)


Version = Callable[[Written], int]
"""The version of the operator that supports a layer."""

ACTIVATION_NUMBERS: Mapping[str, int] = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
"""The values of the schema's enum ActivationFunctionType, by name."""


class Emitter:
    """Collects the operators of one file and the tensors that the network itself does not contain."""

    def __init__(
        self,
        graph: Graph,
        versions: Mapping[LayerType, Version],
        left_out: frozenset[str] = frozenset(),
        *,
        subgraph: Callable[[Graph], int],
    ) -> None:
        """`left_out` has the tensors of the graph that the file does not have.

        `subgraph` adds a graph to the file and returns its number.
        """
        self.subgraph = subgraph
        self._graph = graph
        self._left_out = left_out
        self._versions = versions
        self._names = UniqueNames(tensor.info.name for tensor in graph.tensors)
        self._parameters: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.tensors: list[Tensor] = []
        """Parameter tensors and outputs of added PADs, in addition to the tensors of the graph."""
        self.operators: list[OperatorContent] = []

    def emit(
        self,
        layer: Layer,
        table: str,
        fields: Mapping[str, OptionValue],
        *,
        custom: str,
        inputs: Sequence[str | None],
        least_inputs: int,
        intermediates: Sequence[str],
    ) -> None:
        """Append one operator, with the fields of its options or the map of a custom one.

        Absent inputs make up `least_inputs`.
        """
        sources = [name for name in inputs if name not in self._left_out]
        while sources and sources[-1] is None:  # LiteRT treats a listed bias as present
            sources.pop()
        sources += [None] * (least_inputs - len(sources))
        record = OperatorContent(
            type=layer.type,
            version=self._versions[layer.type](
                Written(layer.descriptor, self.input_infos(layer), self.output_info(layer))
            ),
            inputs=tuple(sources),
            outputs=tuple(name for name in layer.outputs if name not in self._left_out),
            table=table,
            custom=custom,
            fields=fields,
            intermediates=tuple(intermediates),
        )
        self.operators.append(record)

    def intermediate(self, layer: Layer, role: str, dtype: DataType, quantization: Quantization | None) -> str:
        """Return the name of a new tensor of `intermediates`; it is written without elements."""
        info = TensorInfo(self._names.take(f"{layer.name}/{role}"), (1,), dtype, quantization=quantization)
        self.tensors.append(Tensor(info))
        return info.name

    def parameter(self, layer: Layer, role: str, values: Array) -> str:
        """Return the name of a constant tensor with these values; tensors with equal values are shared."""
        key = (str(values.dtype), values.shape, values.tobytes())
        if key not in self._parameters:
            info = TensorInfo(self._names.take(f"{layer.name}/{role}"), values.shape, DataType(str(values.dtype)))
            self.tensors.append(Tensor(info, values))
            self._parameters[key] = info.name
        return self._parameters[key]

    def integers(self, layer: Layer, role: str, values: Sequence[int]) -> str:
        """Return the name of a constant int32 vector with these values."""
        return self.parameter(layer, role, np.array(values, np.int32))

    def padded(self, layer: Layer, info: TensorInfo, descriptor: PadDescriptor | PadV2Descriptor) -> str:
        """Append a PAD or a PADV2 of a tensor before a layer and return the name of its output."""
        shape = tuple(sum(extents) for extents in zip(info.shape, descriptor.before, descriptor.after, strict=True))
        output = replace(info, name=self._names.take(f"{layer.name}/padded"), shape=shape)
        self.tensors.append(Tensor(output))
        columns = np.array([descriptor.before, descriptor.after], np.int32)
        inputs = [info.name, self.parameter(layer, "paddings", columns.T.copy())]
        type_, table = LayerType.PAD, "PadOptions"
        if isinstance(descriptor, PadV2Descriptor):
            type_, table = LayerType.PADV2, "PadV2Options"
            inputs.append(self.fill(layer, output, descriptor.value))
        record = OperatorContent(
            type=type_,
            version=self._versions[type_](Written(descriptor, [info], output)),
            inputs=tuple(inputs),
            outputs=(output.name,),
            table=table,
        )
        self.operators.append(record)
        return output.name

    def fill(self, layer: Layer, output: TensorInfo, value: float) -> str:
        """Return the name of a PADV2's fill tensor, a scalar with the output's type and quantisation."""
        try:
            data = np.array(value, output.dtype.numpy)
        except OverflowError:
            raise ModelError(f"layer '{layer.name}': the fill {value} does not fit into {output.dtype}") from None
        name = self._names.take(f"{layer.name}/fill")
        info = TensorInfo(name, (), output.dtype, quantization=output.quantization)
        self.tensors.append(Tensor(info, data))
        return name

    def input_info(self, layer: Layer, index: int) -> TensorInfo:
        """Return the tensor info of a required input; UnsupportedError if the layer lacks it."""
        infos = self._graph.input_infos(layer)
        info = infos[index] if index < len(infos) else None
        if info is None:
            raise UnsupportedError(f"layer '{layer.name}': {layer.type} lacks input {index}")
        return info

    def output_info(self, layer: Layer) -> TensorInfo:
        """Return the tensor info of the first output."""
        return self._graph.output_infos(layer)[0]

    def input_infos(self, layer: Layer) -> list[TensorInfo]:
        """Return the tensor infos of the inputs that are present."""
        return [info for info in self._graph.input_infos(layer) if info is not None]
