# SPDX-License-Identifier: Apache-2.0
"""Rows of LSTM and GRU in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import positional
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call, Value, joined
from ferrule.formats.onnx.layout import Layout
from ferrule.formats.onnx.rows import Row
from ferrule.graph import Array, LayerType, Shape
from ferrule.operators.movement.join import ConcatenationDescriptor, SplitDescriptor, SplitVDescriptor
from ferrule.operators.movement.mirror import ReverseV2Descriptor
from ferrule.operators.movement.slice import SliceDescriptor
from ferrule.operators.movement.stack import PackDescriptor, UnpackDescriptor
from ferrule.operators.recurrent import MAX_STEPS
from ferrule.operators.recurrent.lstm import BIASES, CELL, HIDDEN, INPUT_WEIGHTS, RECURRENT_WEIGHTS, LstmDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor

_WEIGHTS, _RECURRENT, _BIAS, _LENGTHS, _PEEPHOLES = 1, 2, 3, 4, 7
_LSTM_GATES = (0, 2, 3, 1)
"""The positions of the gates input, forget, cell and output in the format, which has input, output, forget, cell."""


@positional
class _Direction:
    """The constants of one direction of a node; gates lie one after another in the first axis."""

    is_reverse: bool
    weights: Array
    recurrent: Array
    input_bias: Array
    recurrent_bias: Array


@positional
class _Result:
    """The results of one direction: the hidden states of all steps, if they are read, and the last states."""

    sequence: Value | None
    states: Sequence[Value]


class _Sequence:
    """The data of a node, and its directions."""

    def __init__(self, call: Call, activations: tuple[str, ...], gates: int) -> None:
        self.call = call
        self.batch_axis = 1 - _flag(call, "layout")
        source = call.ordered()
        if len(source.order) != 3:
            raise ModelError(f"its data has {len(source.order)} axes, expected steps, batches and inputs")
        self.source = source if source.order[2] == 2 else call.tensor(0)
        shape = call.shape()
        self.steps, self.batches, self.inputs = shape[1 - self.batch_axis], shape[self.batch_axis], shape[2]
        if call.dtype() != "float32":
            raise UnsupportedError(f"its data is {call.dtype()}, expected float32", hint="export the model in float32")
        direction = call.node.choice("direction", "forward", ("forward", "reverse", "bidirectional"))
        reverse = {"forward": (False,), "reverse": (True,)}.get(direction, (False, True))
        self._check_options(activations * len(reverse))
        self.directions = self._divided(reverse, gates)
        self.units = self.directions[0].recurrent.shape[1]

    @property
    def time_axis(self) -> int:
        """The axis of the steps in the network's tensors."""
        return self.source.order.index(1 - self.batch_axis)

    def _check_options(self, activations: tuple[str, ...]) -> None:
        node = self.call.node
        if "clip" in node.attributes:
            raise UnsupportedError("its attribute 'clip' is not supported", hint="export the model without it")
        found: object = node.attributes.get("activations", activations)
        names = ", ".join(map(str, found if isinstance(found, tuple) else [found]))
        if names.lower() != ", ".join(activations).lower():
            raise UnsupportedError(
                f"its attribute 'activations' is {names}, expected {', '.join(activations)}",
                hint="train the model with the default activations",
            )
        lengths = self.call.integers(_LENGTHS, "sequence_lens")
        if lengths is not None and set(lengths) != {self.steps}:
            raise UnsupportedError(
                f"its sequence_lens are {list(lengths)}, expected {self.steps} for each sequence",
                hint="export the model for sequences of one length",
            )

    def _divided(self, reverse: Sequence[bool], gates: int) -> tuple[_Direction, ...]:
        """Return the constants of each direction."""
        call, count = self.call, len(reverse)
        weights, recurrent = call.parameter(_WEIGHTS, "weights W"), call.parameter(_RECURRENT, "weights R")
        if weights is None or recurrent is None:
            raise ModelError("its weights are absent, expected W and R")
        units = recurrent.shape[-1] if recurrent.ndim else 0
        rows = gates * units
        bias = call.parameter(_BIAS, "bias B")
        bias = np.zeros((count, 2 * rows), np.float32) if bias is None else bias
        wanted = {"W": (count, rows, self.inputs), "R": (count, rows, units), "B": (count, 2 * rows)}
        for (name, shape), data in zip(wanted.items(), (weights, recurrent, bias), strict=True):
            if data.shape != shape or data.dtype != np.float32:
                raise ModelError(f"its {name} is {data.dtype}{list(data.shape)}, expected float32{list(shape)}")
        if units != call.node.integer("hidden_size", units):
            raise ModelError(f"its hidden_size is {call.node.integer('hidden_size')}, expected {units} as R has")
        parts = zip(reverse, weights, recurrent, bias[:, :rows], bias[:, rows:], strict=True)
        return tuple(_Direction(*each) for each in parts)

    def initial(self, position: int, index: int) -> Value | Array:
        """Return an initial state [batches, units] of one direction: its data, or a tensor of the network."""
        call, shape = self.call, (self.batches, self.units)
        if not call.node.has_input(position):
            return np.zeros(shape, np.float32)
        axis = 1 - self.batch_axis
        wanted = self._with_directions(len(self.directions))
        if call.shape(position) != wanted or call.dtype(position) != "float32":
            found = f"{call.dtype(position)}{list(call.shape(position))}"
            raise ModelError(f"its initial state, input {position}, is {found}, expected float32{list(wanted)}")
        data = call.constant(position)
        if data is not None:
            return np.ascontiguousarray(data.take(index, axis))
        if len(self.directions) == 1:
            return call.tensor(position, None, shape)
        begin = tuple(index if each == axis else 0 for each in range(3))
        size = tuple(1 if each == axis else extent for each, extent in enumerate(wanted))
        return call.tensor(position).then(SliceDescriptor(begin=begin, size=size)).reshaped(shape)

    def _with_directions(self, count: int) -> Shape:
        """Return the shape of a state of several directions."""
        return (self.batches, count, self.units) if self.batch_axis == 0 else (count, self.batches, self.units)

    def declare(self, add: Callable[[_Sequence, int], _Result]) -> None:
        """Add the layers of each direction, given by its number, and declare the outputs of the node."""
        results = [add(self, index) for index in range(len(self.directions))]
        outputs = self.call.node.outputs
        for number in range(1, len(outputs)):
            if outputs[number]:
                self._declare_state([each.states[number - 1] for each in results], number)
        sequences = [each.sequence for each in results if each.sequence is not None]
        if sequences:
            self._declare_sequence(sequences)

    def _declare_state(self, states: Sequence[Value], number: int) -> None:
        call, shape = self.call, self._with_directions(1)
        if len(states) == 1:
            layout = replace(Layout.of((self.batches, self.units)), shape=shape)
            call.declare(states[0].ordered(layout), number)
            return
        parts = [state.reshaped(shape) for state in states]
        call.declare(joined(ConcatenationDescriptor(axis=1 - self.batch_axis), parts), number)

    def _declare_sequence(self, sequences: Sequence[Value]) -> None:
        call, count = self.call, len(self.directions)
        if count == 1:
            first, second = call.shape()[:2]
            shape = (first, 1, second, self.units) if self.batch_axis else (first, second, 1, self.units)
            call.declare(sequences[0].ordered(replace(sequences[0].layout, shape=shape)))
            return
        both = joined(ConcatenationDescriptor(axis=2), sequences)
        steps, batches, directions = (0, 2, 1) if self.batch_axis else (1, 0, 2)
        order = (batches, steps) if self.time_axis else (steps, batches)
        shape = (*both.shape[:2], count, self.units)
        call.declare(both.reshaped(shape, (*order, directions, 3)))


def _flag(call: Call, name: str) -> int:
    value = call.node.integer(name, 0)
    if value not in {0, 1}:
        raise ModelError(f"its attribute '{name}' is {value}, expected 0 or 1")
    return value


def _lstm(call: Call) -> None:
    if _flag(call, "input_forget"):
        raise UnsupportedError("its attribute 'input_forget' is 1, expected 0", hint="train the model with all gates")
    peepholes = call.parameter(_PEEPHOLES, "peephole weights P")
    if peepholes is not None and np.any(peepholes):
        raise UnsupportedError("it has peephole weights P, expected none", hint="train the model without peepholes")
    _Sequence(call, ("Sigmoid", "Tanh", "Tanh"), 4).declare(_lstm_direction)


def _lstm_direction(sequence: _Sequence, index: int) -> _Result:
    """Add the UNIDIRECTIONAL_SEQUENCE_LSTM of one direction."""
    call, direction = sequence.call, sequence.directions[index]
    turn = ReverseV2Descriptor(axes=(sequence.time_axis,))
    source = sequence.source.then(turn) if direction.is_reverse else sequence.source
    inputs: list[Value | None] = [source, *[None] * CELL]
    for positions, role, data in (
        (INPUT_WEIGHTS, "weights", direction.weights),
        (RECURRENT_WEIGHTS, "recurrent", direction.recurrent),
        (BIASES, "bias", direction.input_bias + direction.recurrent_bias),
    ):
        parts = np.split(data, 4)
        for position, gate in zip(positions, _LSTM_GATES, strict=True):
            inputs[position] = call.array(parts[gate], role)
    for position, given in ((HIDDEN, 5), (CELL, 6)):
        state = sequence.initial(given, index)
        inputs[position] = state if isinstance(state, Value) else call.array(state, "initial")
    descriptor = LstmDescriptor(time_major=sequence.time_axis == 0)
    wanted = [f"{call.name}_{role}" for role in ("sequence", "hidden", "cell")]
    result, *states = source.many(descriptor, *inputs[1:], wanted=wanted, layer=call.layer_name)
    if not call.node.output:
        return _Result(None, states)
    return _Result(result.then(turn) if direction.is_reverse else result, states)


def _gru(call: Call) -> None:
    sequence = _Sequence(call, ("Sigmoid", "Tanh"), 3)
    if sequence.steps > MAX_STEPS:
        raise UnsupportedError(
            f"it has {sequence.steps} steps, and each becomes layers of its own: expected at most {MAX_STEPS}",
            hint="train with LSTM, which is one layer of any length; or export the model for shorter sequences, with "
            "the hidden state as an input and an output",
        )
    sequence.declare(_gru_direction)


def _gru_direction(sequence: _Sequence, index: int) -> _Result:
    """Add the layers of all steps of one direction."""
    call, units, direction = sequence.call, sequence.units, sequence.directions[index]
    state = sequence.initial(5, index)
    resets_late = _flag(call, "linear_before_reset")
    outer, inner = direction.input_bias.copy(), direction.recurrent_bias[2 * units :]
    added = slice(None, 2 * units if resets_late else None)
    outer[added] += direction.recurrent_bias[added]
    for_gates, for_new = np.split(direction.recurrent, [2 * units])
    gates, new = call.array(for_gates, "recurrent_gates"), call.array(for_new, "recurrent_new")
    offset = call.array(inner, "recurrent_bias") if resets_late else None
    states: list[Value] = []
    products = _products(sequence, direction.weights, outer)
    for product in reversed(products) if direction.is_reverse else products:
        gated, candidate = product.many(SplitVDescriptor(axis=1, sizes=(2 * units, units)), wanted=2)
        sums = gated + _product(call, state, for_gates, gates)
        update, reset = sums.then(LayerType.LOGISTIC).many(SplitDescriptor(axis=1, splits=2), wanted=2)
        old = state if isinstance(state, Value) else call.array(state, "initial")
        if resets_late:
            kept = reset * _product(call, state, for_new, new, inner, offset)
        else:
            kept = (reset * old).then(LayerType.FULLY_CONNECTED, new)
        wanted = (candidate + kept).then(LayerType.TANH)
        state = wanted + update * (old - wanted)
        states.append(state)
    last = states[-1:]
    if not call.node.output:
        return _Result(None, last)
    ordered = states[::-1] if direction.is_reverse else states
    return _Result(joined(PackDescriptor(axis=sequence.time_axis), ordered), last)


def _products(sequence: _Sequence, weights: Array, bias: Array) -> Sequence[Value]:
    """Return the products of the inputs with the weights of all gates, by step."""
    call, dense = sequence.call, FullyConnectedDescriptor(keep_num_dims=True)
    all_steps = sequence.source.then(dense, call.array(weights, "weights"), call.array(bias, "bias"))
    if sequence.steps == 1:
        return [all_steps.reshaped((sequence.batches, bias.size))]
    return all_steps.many(UnpackDescriptor(axis=sequence.time_axis), wanted=sequence.steps)


def _product(
    call: Call, state: Value | Array, matrix: Array, weights: Value, bias: Array | int = 0, offset: Value | None = None
) -> Value:
    """Return the product of a state and a matrix plus a bias, which is a constant for a constant state."""
    if isinstance(state, Value):
        return state.then(LayerType.FULLY_CONNECTED, weights, offset)
    data = state.astype(np.float64) @ matrix.T.astype(np.float64)
    return call.array((data + bias).astype(np.float32), "initial_product")


ROWS: Mapping[str, Row] = {
    "GRU": Row(_gru, 3, 6, outputs=2, first_is_optional=True),
    "LSTM": Row(_lstm, 3, 8, outputs=3, first_is_optional=True),
}
