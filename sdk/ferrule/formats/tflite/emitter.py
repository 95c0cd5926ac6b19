# SPDX-License-Identifier: Apache-2.0
"""Collects the operators and the additional tensors of a file to be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ferrule._frozen import positional
from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.encoder import OperatorContent
from ferrule.graph import Array, DataType, Graph, Layer, Quantization, Tensor, TensorInfo
from ferrule.graph.names import UniqueNames


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

    def __init__(self, graph: Graph, left_out: frozenset[str], *, subgraph: Callable[[Graph], int]) -> None:
        """`subgraph` adds a graph to the file and returns its number."""
        self.subgraph = subgraph
        self.left_out = left_out
        """The tensors of the graph that the file does not have."""
        self._graph = graph
        self._names = UniqueNames(tensor.info.name for tensor in graph.tensors)
        self._parameters: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.tensors: dict[str, Tensor] = {}
        """Parameter tensors and outputs of added PADs, by name, in addition to the tensors of the graph."""
        self.operators: list[OperatorContent] = []

    def add(self, info: TensorInfo, data: Array | None = None) -> str:
        """Add a tensor, under another name if there is one of its name, and return that."""
        info = replace(info, name=self._names.take(info.name))
        self.tensors[info.name] = Tensor(info, data)
        return info.name

    def intermediate(self, layer: Layer, role: str, dtype: DataType, quantization: Quantization | None) -> str:
        """Return the name of a new tensor of `intermediates`; it is written without elements."""
        return self.add(TensorInfo(f"{layer.name}/{role}", (1,), dtype, quantization=quantization))

    def parameter(self, layer: Layer, role: str, values: Array) -> str:
        """Return the name of a constant tensor with these values; tensors with equal values are shared."""
        key = (str(values.dtype), values.shape, values.tobytes())
        if key not in self._parameters:
            info = TensorInfo(f"{layer.name}/{role}", values.shape, DataType(str(values.dtype)))
            self._parameters[key] = self.add(info, values)
        return self._parameters[key]

    def integers(self, layer: Layer, role: str, values: Sequence[int]) -> str:
        """Return the name of a constant int32 vector with these values."""
        return self.parameter(layer, role, np.array(values, np.int32))

    def input_info(self, layer: Layer, index: int) -> TensorInfo:
        """Return the tensor info of a required input; UnsupportedError if the layer lacks it."""
        infos = self._graph.input_infos(layer)
        info = infos[index] if index < len(infos) else None
        if info is None:
            raise UnsupportedError(f"layer '{layer.name}': {layer.type} lacks input {index}")
        return info

    def output_info(self, layer: Layer) -> TensorInfo:
        """Return the tensor info of the first output."""
        added = self.tensors.get(layer.outputs[0])
        return self._graph.info(layer.outputs[0]) if added is None else added.info

    def input_infos(self, layer: Layer) -> list[TensorInfo]:
        """Return the tensor infos of the inputs that are present."""
        return [info for info in self._graph.input_infos(layer) if info is not None]
