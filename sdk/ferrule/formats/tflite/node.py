# SPDX-License-Identifier: Apache-2.0
"""Access to an operator of the file for the functions of its row: tensors by position, options by kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ferrule.errors import ModelError, UnsupportedError, place
from ferrule.formats.limits import check_count, front_axis
from ferrule.formats.tflite.emitter import ACTIVATION_NUMBERS
from ferrule.formats.tflite.flatbuffer import empty
from ferrule.formats.tflite.flexbuffer import FlexValue, read_map
from ferrule.formats.tflite.records import OperatorRecord, QuantizationRecord
from ferrule.formats.tflite.schema import OPTIONS
from ferrule.formats.tflite.tensors import Tensors
from ferrule.graph import Array, Graph, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.control_flow import DEFAULT_ITERATIONS

_ACTIVATIONS = {number: Activation(name) for name, number in ACTIVATION_NUMBERS.items()}
_REFUSED_ACTIVATIONS: Mapping[int, str] = {4: "TANH", 5: "SIGN_BIT"}


_KINDS: Mapping[type, str] = {
    bool: "a truth value",
    int: "an integer",
    float: "a floating-point number",
    str: "a string",
}


class Node:
    """One operator and the tensors of its file."""

    def __init__(
        self,
        record: OperatorRecord,
        tensors: Tensors,
        subgraph: Callable[[int], Graph] | None = None,
        max_iterations: int = DEFAULT_ITERATIONS,
    ) -> None:
        """`subgraph` reads a subgraph by its number; None if the operator may not call any."""
        self.record = record
        self._tensors = tensors
        self._subgraph = subgraph
        self.max_iterations = max_iterations
        """The limit of loops."""

    def subgraph(self, index: int, role: str) -> Graph:
        """Return a subgraph that the operator calls; its states are the variables that it uses.

        Raises:
            ModelError, UnsupportedError: the subgraph does not exist, calls itself or cannot be read.
        """
        assert self._subgraph is not None, "the reader gives it to all operators that become layers"
        with place(role):
            return self._subgraph(index)

    def check_arity(self, inputs: range, outputs: range) -> None:
        """Refuse a number of inputs or outputs outside its range."""
        check_count("inputs", self.record.inputs, inputs)
        check_count("outputs", self.record.outputs, outputs)

    def has_input(self, position: int) -> bool:
        """Whether an optional input is present."""
        return position < len(self.record.inputs) and self.record.inputs[position] != -1

    def input(self, position: int) -> TensorInfo:
        """Return the tensor info of an input; ModelError if the input is absent."""
        return self._tensors.info(self._index(position))

    @property
    def source(self) -> TensorInfo:
        """The tensor info of the first input; ModelError if it is absent."""
        return self.input(0)

    def output(self, position: int = 0) -> TensorInfo:
        """Return the tensor info of an output."""
        return self._tensors.info(self.record.outputs[position])

    def output_quantization(self, position: int) -> QuantizationRecord:
        """Return the quantisation of an output as the file has it, whatever its type."""
        return self._tensors.record(self.record.outputs[position]).quantization

    def integers(self, position: int, role: str) -> tuple[int, ...]:
        """Return the elements of a parameter tensor, which must be a constant, in memory order."""
        return tuple(int(value) for value in self.integer_array(position, role).ravel())

    def integer(self, position: int, role: str) -> int:
        """Return the single element of a parameter tensor, which must be a constant."""
        values = self.integers(position, role)
        if len(values) != 1:
            raise ModelError(f"its {role} has {len(values)} elements, expected 1")
        return values[0]

    def integer_array(self, position: int, role: str) -> Array:
        """Return an int32 or int64 parameter tensor, which must be a constant."""
        with place(f"its {role}"):
            return self._tensors.integers(self._index(position))

    def is_constant(self, position: int) -> bool:
        """Whether an input is present and its data is known."""
        return self.has_input(position) and self._tensors.is_constant(self.record.inputs[position])

    def is_known_vector(self, position: int) -> bool:
        """Whether `integers` can give the elements of a parameter tensor."""
        return self.has_input(position) and self._tensors.has_integers(self.record.inputs[position])

    def has_dynamic_output(self) -> bool:
        """Whether the file says that the shape of the first output is decided at run time."""
        return -1 in self._tensors.record(self.record.outputs[0]).shape_signature

    def stored_bytes(self, position: int) -> Array:
        """Return the bytes of an input that is a constant of the file, whatever its type."""
        return self._tensors.stored_bytes(self._index(position))

    def constant(self, position: int) -> Array:
        """Return the data of an input, which must be a constant."""
        return self._tensors.data(self._index(position))

    def scalar(self, position: int, role: str) -> tuple[TensorInfo, Array]:
        """Return a parameter tensor with one element of any type, which must be a constant."""
        index = self._index(position)
        with place(f"its {role}"):
            info = self._tensors.info(index)
            if not self._tensors.is_constant(index):
                raise UnsupportedError(f"tensor '{info.name}' is computed at run time, expected a constant")
            data = self._tensors.data(index)
            if data.size != 1:
                raise ModelError(f"tensor '{info.name}' has {data.size} elements, expected 1")
        return info, data

    def optional_options(self, table: str) -> Any:  # noqa: ANN401
        """Return the options, by field, with the schema's defaults if there are none; ModelError for another kind."""
        kind, (wanted, fields) = self.record.options_kind, OPTIONS[table]
        if kind == 0:
            return empty(fields)
        if kind != wanted:
            raise ModelError(f"its options are number {kind} of the schema's union, expected {wanted} ({table})")
        if self.record.options is None:
            raise ModelError(f"its options name {table} but are not there")
        return self.record.options

    def options(self, table: str) -> Any:  # noqa: ANN401
        """Return the options, by field; ModelError if they are absent or of another kind."""
        if self.record.options_kind == 0:
            raise ModelError(f"it has no options, expected {table}")
        return self.optional_options(table)

    def custom_options(self) -> dict[str, FlexValue]:
        """Return the options of a custom operator by key; empty if there are none."""
        with place("its custom options"):
            return read_map(self.record.custom_options)

    def custom_values(self, **kinds: type[FlexValue]) -> dict[str, Any]:
        """Return the options of a custom operator, which must have exactly these keys and kinds.

        TensorFlow Lite Micro reads many of these maps by position, and thus misreads a map with further keys.
        """
        found = self.custom_options()
        if found.keys() != kinds.keys():
            wanted = ", ".join(sorted(kinds)) or "none"
            raise ModelError(f"its custom options are {', '.join(sorted(found)) or 'none'}; expected {wanted}")
        for key, kind in kinds.items():
            if type(found[key]) is not kind:
                raise ModelError(f"its option '{key}' is {found[key]!r}, expected {_KINDS[kind]}")
        return found

    def _index(self, position: int) -> int:
        if not self.has_input(position):
            raise ModelError(f"input {position} is absent, expected a tensor")
        return self.record.inputs[position]


def activation(number: int) -> Activation:
    """Return the fused activation with this number in the schema; UnsupportedError if networks do not support it."""
    if number in _ACTIVATIONS:
        return _ACTIVATIONS[number]
    name = _REFUSED_ACTIVATIONS.get(number)
    if name is None:
        raise ModelError(f"its fused activation is number {number}, which the schema does not have")
    raise UnsupportedError(
        f"its fused activation is {name}, expected {', '.join(_ACTIVATIONS.values())}",
        hint="make the activation a separate operator",
    )


def finite(value: float, role: str) -> float:
    """Return a number from the options as a float; ModelError unless it is finite."""
    if not math.isfinite(value):
        raise ModelError(f"its {role} is {value}, expected a finite number")
    return float(value)


def axis(value: int, rank: int) -> int:
    """Return an axis counted from the front; ModelError unless it is within `rank` axes."""
    if rank == 0:
        raise ModelError(f"its axis is {value}, but its input is a scalar, which has none")
    return front_axis(value, rank)
