# SPDX-License-Identifier: Apache-2.0
"""A row of the operator table, and the functions that make rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.formats.tflite.emitter import ACTIVATION_NUMBERS, Emitter, Version
from ferrule.formats.tflite.encoder import Options, OptionValue
from ferrule.formats.tflite.node import Node
from ferrule.graph import DataType, Descriptor, Layer, TensorInfo

MANY = 1 << 12
"""Limit on the number of inputs or outputs of an operator."""

Read = Callable[[Node], Descriptor]
Write = Callable[[Emitter, Layer, Any], None]


def first_version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    """Return 1, for operators that have only one version."""
    del descriptor, inputs, output
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one operator is read and written.

    Versions follow `tflite/tools/versioning/op_version.cc` of LiteRT, for the types that a network can have.
    Interpreters refuse unknown versions, and some select a kernel by version.
    """

    read: Read
    write: Write
    version: Version = first_version
    data_inputs: Sequence[int] = range(1)
    """Positions of the tensors that become inputs of the layer, in their order; the others are parameters."""
    inputs: range = range(1, 2)
    """The allowed numbers of inputs in a file."""
    outputs: range = range(1, 2)
    custom: str = ""
    """The custom code by which files name the operator; "" for built-in operators."""
    any_shape: bool = False
    """Whether the only output may have another shape in the file than the layer's, with as many elements: TensorFlow
    Lite Micro's kernel writes its elements in order, whatever the shape is. A RESHAPE follows the layer then."""
    parameters: frozenset[int] = frozenset()
    """Positions of data inputs that are parameters, and no inputs of the layer, if their data is known."""
    indices: frozenset[int] = frozenset()
    """Positions of data inputs that may be int64 in a file: the layer reads them as int32."""
    index_output: bool = False
    """Whether the output may be int64 in a file: it is then cast from the layer's, which is int32."""
    real_inputs: bool = False
    """Whether inputs of 8 bits stand for the real values, with which the layer computes."""
    infers_outputs: bool = False
    """Whether the outputs have the shapes that the operator infers, whatever a file states."""
    optional: frozenset[int] = frozenset()
    """Positions of data inputs that may be absent."""
    state_inputs: tuple[int, ...] = ()
    """Positions of data inputs that are variable tensors in a file. The layer reads the old values there, and has the
    new values as further outputs, in this order, behind the outputs of the file."""
    keeps_output: bool = False
    """Whether the outputs are variable tensors in a file, since an interpreter keeps its state there."""

    def positions(self, node: Node) -> list[int]:
        """Return the positions of the tensors of an operator that become inputs of the layer."""
        return [
            position
            for position in self.data_inputs
            if position < len(node.record.inputs) and not (position in self.parameters and node.is_constant(position))
        ]


def by_type(*, int8: int = 1, int16: int = 1, int32: int = 1, int64: int = 1, bool_: int = 1, wide: int = 1) -> Version:
    """Return a function from the first input's type to the version, at least `wide` for more than 4 dimensions."""
    versions = {
        DataType.INT8: int8,
        DataType.INT16: int16,
        DataType.INT32: int32,
        DataType.INT64: int64,
        DataType.BOOL: bool_,
    }

    def version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
        del descriptor, output
        found = versions.get(inputs[0].dtype, 1)
        return max(found, wide) if max(len(info.shape) for info in inputs) > 4 else found

    return version


def write_options(table: str = "", constants: Mapping[str, OptionValue] | None = None, **names: str) -> Write:
    """Return a writer of options copied from the descriptor; each keyword is schema name=attribute."""

    def write(emitter: Emitter, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
        fields: dict[str, OptionValue] = {}
        for schema_name, attribute in names.items():
            value = getattr(descriptor, attribute)
            fields[schema_name] = ACTIVATION_NUMBERS[value.value] if attribute == "activation" else value
        emitter.emit(layer, Options(table=table, fields=fields | dict(constants or {})))

    return write


def write_custom(code: str, constants: Mapping[str, OptionValue] | None = None, **names: str) -> Write:
    """Return a writer of a custom operator's options, copied from the descriptor; each keyword is key=attribute."""

    def write(emitter: Emitter, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
        fields: dict[str, OptionValue] = {key: getattr(descriptor, attribute) for key, attribute in names.items()}
        emitter.emit(layer, Options(custom=code, fields=fields | dict(constants or {})))

    return write


def plain(descriptor: type[Descriptor], table: str = "", *, version: Version = first_version, inputs: int = 1) -> Row:
    """Return the row of an operator without parameters; `table` names its options table, if the schema has one."""
    return Row(
        read=lambda _: descriptor(),
        write=write_options(table),
        version=version,
        data_inputs=range(inputs),
        inputs=range(inputs, inputs + 1),
    )
