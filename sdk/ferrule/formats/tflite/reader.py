# SPDX-License-Identifier: Apache-2.0
"""Reads the bytes of a .tflite file into a network."""

from __future__ import annotations

from ferrule.errors import FerruleError, ModelError, UnsupportedError, place, together
from ferrule.formats.tflite.decoder import ModelRecord, OperatorRecord, read_model
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.formats.tflite.tensors import Tensors, check_signature
from ferrule.graph import DataType, Layer, LayerType
from ferrule.network import Network, check_kernel

_CONTROL_FLOW = frozenset({"CALL", "CALL_ONCE", "IF", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE", "WHILE"})
_WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"})
_WEIGHTS = 1
"""The position of the weights among their inputs."""


def read_tflite(data: bytes, name: str, dequantize_weights: bool = False) -> Network:
    """Return the network of a TensorFlow Lite model.

    Tensor names are kept, except that empty and repeated ones are numbered; layers are named `<type>_<position>`. An
    unknown batch size is read as 1. A network that is returned is valid (`Network.validate`). `dequantize_weights`
    makes quantised weights of layers with float32 activations float32, instead of refusing such layers.

    Raises:
        ModelError: the file is malformed; the message names the place.
        UnsupportedError: the model uses features that networks do not support; the message names every operator that
            is refused, and the reason.
    """
    reader = _Reader(read_model(data), name)
    if dequantize_weights:
        reader.dequantize_weights()
    return reader.network()


class _Reader:
    """The state while one file is read."""

    def __init__(self, model: ModelRecord, name: str) -> None:
        self._model = model
        self._tensors = Tensors(model)
        self._network = Network(name)
        self._available: set[int] = set()
        self._lost: set[int] = set()
        """Outputs of refused operators that have no valid description; operators that read them are not checked."""

    def dequantize_weights(self) -> None:
        """Make the quantised weights of layers with float32 activations float32."""
        for record in self._model.operators:
            if record.type not in _WEIGHTED or len(record.inputs) <= _WEIGHTS or min(record.inputs[:2]) < 0:
                continue
            image, weights = record.inputs[:2]
            with place(self._where(record)):
                hybrid = self._tensors.info(image).dtype.is_float and self._tensors.info(weights).dtype is DataType.INT8
                if hybrid and self._tensors.is_constant(weights):
                    self._tensors.dequantize(weights)

    def network(self) -> Network:
        for index in self._model.inputs:
            self._add_input(index)
        problems = []
        for record in self._model.operators:
            if self._lost.intersection(record.inputs):
                self._lost.update(record.outputs)
                continue
            try:
                with place(self._where(record), _kind(record)):
                    self._add_layer(record)
            except FerruleError as error:
                problems.append(error)
                self._stand_in(record)
        if problems:
            raise together(problems, "operators")
        with place("graph outputs"):
            if not self._model.outputs:
                raise ModelError("there is none, expected at least one")
            names = [self._source(index) for index in self._model.outputs]
        self._network.set_outputs(names)
        return self._network

    def _add_input(self, index: int) -> None:
        with place("graph inputs"):
            info = self._tensors.info(index)
            check_signature(self._tensors.record(index))
            if self._tensors.is_constant(index):
                raise ModelError(f"tensor '{info.name}' has data, expected an input to have none")
            self._network.add_input(info)
            self._available.add(index)

    def _add_layer(self, record: OperatorRecord) -> None:
        row = None if record.type not in LayerType.__members__ else OPERATORS.get(LayerType[record.type])
        if row is None:
            raise UnsupportedError(_refusal(record), hint=f"supported: {', '.join(sorted(OPERATORS))}")
        node = Node(record, self._tensors)
        node.check_arity(row.inputs, row.outputs)
        sources = [
            None if position in row.optional and not node.has_input(position) else self._source(index)
            for position, index in enumerate(record.inputs)
            if position in row.data_inputs
        ]
        while sources and sources[-1] is None:  # a trailing absent input is the same as one not listed
            sources.pop()
        layer = Layer(
            name=f"{record.type.lower()}_{record.index}",
            type=LayerType[record.type],
            descriptor=row.read(node),
            inputs=tuple(sources),
            outputs=tuple(self._tensors.info(index).name for index in record.outputs),
        )
        for index in record.outputs:
            if self._tensors.is_constant(index):
                raise ModelError(f"output '{self._tensors.info(index).name}' has data, expected a computed tensor")
        self._network.add_layer(layer, [self._tensors.info(index) for index in record.outputs])
        self._available.update(record.outputs)
        check_kernel(self._network, layer)

    def _stand_in(self, record: OperatorRecord) -> None:
        """Make the outputs of a refused operator readable, so that the operators behind it are checked, too."""
        for index in record.outputs:
            try:
                info = self._tensors.info(index)
            except FerruleError:
                self._lost.add(index)
                continue
            if not self._network.has_tensor(info.name):
                self._network.add_input(info)
            self._available.add(index)

    def _source(self, index: int) -> str:
        """Return the name of a tensor that is read; a constant is added to the network when it is first read."""
        info = self._tensors.info(index)
        if index not in self._available:
            if not self._tensors.is_constant(index):
                raise ModelError(f"tensor '{info.name}' is read before anything writes it")
            self._network.add_constant(info, self._tensors.data(index))
            self._available.add(index)
        return info.name

    def _where(self, record: OperatorRecord) -> str:
        custom = f" '{record.custom_code}'" if record.custom_code else ""
        outputs = [index for index in record.outputs if 0 <= index < len(self._model.tensors)]
        result = f" -> tensor '{self._model.tensors[outputs[0]].name}'" if outputs else ""
        return f"operator {record.index} {record.type}{custom}{result}"


def _kind(record: OperatorRecord) -> str:
    return f"CUSTOM '{record.custom_code}'" if record.type == "CUSTOM" else record.type


def _refusal(record: OperatorRecord) -> str:
    if record.type == "CUSTOM":
        return "custom operators are not supported"
    if record.type in _CONTROL_FLOW:
        return "control flow is not supported"
    return "this operator is not supported"
