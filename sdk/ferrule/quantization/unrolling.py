# SPDX-License-Identifier: Apache-2.0
"""Writes an LSTM that begins anew in each run as layers for each of its steps, as it is in a TensorFlow Lite file.

One of TensorFlow Lite keeps its state from one run to the next, and an ONNX file has none of that kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, Graph, GraphEditor, Layer, LayerType, Shape
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.movement.join import SplitDescriptor, SplitVDescriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.movement.stack import PackDescriptor, UnpackDescriptor
from ferrule.operators.recurrent import MAX_STEPS
from ferrule.operators.recurrent.lstm import BIASES, CELL, HIDDEN, INPUT_WEIGHTS, RECURRENT_WEIGHTS, LstmDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.quantization.replacement import Replacement

_GATES = (0, 1, 3, 2)
"""The order in which gates are computed: input, forget and output, all by the logistic function, before cell."""


def unrolled(network: Network) -> Network:
    """Return a float network in which the layers of steps take the place of each LSTM without a state of the network.

    Raises:
        UnsupportedError: such an LSTM has more than `MAX_STEPS` steps, or limits its cell state.
    """
    states = {state.source for state in network.states}
    found = [layer for layer in network.layers if _begins_anew(network, layer, states)]
    if not found:
        return network
    editor = GraphEditor(network)
    for layer in found:
        _Steps(editor, layer).place()
    return network_of(editor.finish())


def _begins_anew(graph: Graph, layer: Layer, states: set[str]) -> bool:
    return (
        isinstance(layer.descriptor, LstmDescriptor)
        and graph.info(layer.inputs[0] or "").dtype is DataType.FLOAT32
        and not {layer.inputs[HIDDEN], layer.inputs[CELL]} & states
    )


class _Steps:
    """The layers in place of one LSTM (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, with forget gates).

    For each step: i, f, o = logistic(W x + R h + b), g = tanh(W x + R h + b), c = f c + i g, h = o tanh(c).
    """

    def __init__(self, editor: GraphEditor, layer: Layer) -> None:
        assert isinstance(layer.descriptor, LstmDescriptor)
        self._editor, self._layer, self._made = editor, layer, Replacement(editor, layer)
        self._axis = 0 if layer.descriptor.time_major else 1
        shape = editor.info(self._input(0)).shape
        self._count, self._batches = shape[self._axis], shape[1 - self._axis]
        self._units = editor.info(self._input(HIDDEN)).shape[1]
        reason = ""
        if layer.descriptor.cell_clip > 0:
            reason = f"limits its cell state to {layer.descriptor.cell_clip:g}, expected no limit"
        if self._count > MAX_STEPS:
            reason = f"has {self._count} steps, each of which becomes layers of its own: expected at most {MAX_STEPS}"
        if reason:
            raise UnsupportedError(
                f"layer '{layer.name}' {layer.type} begins anew in each run, which TensorFlow Lite cannot express; it "
                f"{reason}",
                hint="train it so that it keeps its state (stateful, in Keras), or on shorter sequences",
            )

    def place(self) -> None:
        """Put the layers where the LSTM was; the last of them write its outputs."""
        hidden, cell = self._input(HIDDEN), self._input(CELL)
        recurrent = self._made.constant("recurrent", self._joined(RECURRENT_WEIGHTS))
        results = []
        for index, product in enumerate(self._products()):
            last = index == self._count - 1
            sums = product
            if not self._is_zero(hidden):
                more = self._add(LayerType.FULLY_CONNECTED, [hidden, recurrent], self._state_shape(4))
                sums = self._add(LayerType.ADD, [product, more], self._state_shape(4))
            gates, candidate = self._split(sums, (3 * self._units, self._units))
            opened = self._add(LayerType.LOGISTIC, [gates], self._state_shape(3))
            update, kept, shown = self._thirds(opened)
            new = self._add(LayerType.TANH, [candidate], self._state_shape(1))
            before, cell_name = cell, self._name(2) if last else ""
            if self._is_zero(before):
                cell = self._add(LayerType.MUL, [update, new], self._state_shape(1), cell_name)
            else:
                old = self._add(LayerType.MUL, [kept, before], self._state_shape(1))
                added = self._add(LayerType.MUL, [update, new], self._state_shape(1))
                cell = self._add(LayerType.ADD, [old, added], self._state_shape(1), cell_name)
            bent = self._add(LayerType.TANH, [cell], self._state_shape(1))
            hidden = self._add(LayerType.MUL, [shown, bent], self._state_shape(1), self._name(1) if last else "")
            results.append(hidden)
        output = self._editor.info(self._layer.outputs[0])
        self._made.add(LayerType.PACK, results, [output.name], PackDescriptor(axis=self._axis))
        self._made.place()

    def _products(self) -> Sequence[str]:
        """Return the products of the inputs with the weights of all gates plus the biases, by step."""
        weights = self._made.constant("weights", self._joined(INPUT_WEIGHTS))
        biases = self._made.constant("bias", self._joined(BIASES))
        outer = (self._batches, self._count) if self._axis else (self._count, self._batches)
        descriptor = FullyConnectedDescriptor(keep_num_dims=True)
        inputs = [self._input(0), weights, biases]
        whole = self._add(LayerType.FULLY_CONNECTED, inputs, (*outer, 4 * self._units), descriptor=descriptor)
        if self._count == 1:
            shape = self._state_shape(4)
            return [self._add(LayerType.RESHAPE, [whole], shape, descriptor=ReshapeDescriptor(shape=shape))]
        names = [self._made.tensor(self._state_shape(4)) for _ in range(self._count)]
        self._made.add(LayerType.UNPACK, [whole], names, UnpackDescriptor(axis=self._axis))
        return names

    def _split(self, source: str, sizes: tuple[int, int]) -> list[str]:
        names = [self._made.tensor((self._batches, size)) for size in sizes]
        self._made.add(LayerType.SPLIT_V, [source], names, SplitVDescriptor(axis=1, sizes=sizes))
        return names

    def _thirds(self, source: str) -> list[str]:
        names = [self._made.tensor(self._state_shape(1)) for _ in range(3)]
        self._made.add(LayerType.SPLIT, [source], names, SplitDescriptor(axis=1, splits=3))
        return names

    def _input(self, position: int) -> str:
        name = self._layer.inputs[position]
        assert name is not None
        return name

    def _name(self, output: int) -> str:
        """Return the tensor of an output; "" if the layer does not have it."""
        return self._layer.outputs[output] if output < len(self._layer.outputs) else ""

    def _is_zero(self, name: str) -> bool:
        data = self._editor.tensor(name).data
        return data is not None and not data.any()

    def _state_shape(self, parts: int) -> Shape:
        return self._batches, parts * self._units

    def _joined(self, positions: Sequence[int]) -> Array:
        """Return the constants of all gates, one after another."""
        arrays = [self._editor.tensor(self._input(positions[gate])).data for gate in _GATES]
        return np.concatenate([array for array in arrays if array is not None])

    def _add(
        self,
        type_: LayerType,
        inputs: Sequence[str],
        shape: Shape,
        name: str = "",
        descriptor: Descriptor | None = None,
    ) -> str:
        """Add a layer with one output, a tensor of the LSTM or a new one, and return its name."""
        output = name or self._made.tensor(shape)
        self._made.add(type_, inputs, [output], descriptor)
        return output
