# SPDX-License-Identifier: Apache-2.0
"""A row of the operator table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ferrule._frozen import positional
from ferrule.formats.tflite.emitter import ACTIVATION_NUMBERS, Emitter, Version, Written
from ferrule.formats.tflite.encoder import OperatorContent, OptionValue
from ferrule.formats.tflite.node import Node, activation, axis, finite
from ferrule.graph import DataType, Descriptor, Layer

MANY = 1 << 12
"""Limit on the number of inputs or outputs of an operator."""
TWO = range(2)

FIELDS = {
    "activation": "fused_activation_function",
    "axes": "squeeze_dims",
    "cycles": "cycles_max",
    "dilation_h": "dilation_h_factor",
    "dilation_w": "dilation_w_factor",
    "iou_threshold": "nms_iou_threshold",
    "pool_h": "filter_height",
    "pool_w": "filter_width",
    "regular": "use_regular_nms",
    "score_threshold": "nms_score_threshold",
    "shape": "new_shape",
    "splits": "num_splits",
}
"""The fields of options whose names in the schema are not those of the descriptor's attributes."""
_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "Activation": lambda value, _: activation(value),
    "float": finite,
}
"""How attributes of a type are read from options, given their names; others are as they are there."""

Given = OptionValue | Callable[[Emitter, Layer], OptionValue | None]
"""A value of the options that no attribute states; None for an absent one."""
Option = str | tuple[str, Given]
"""An attribute of the descriptor that options state, or a field with a value that is only written."""


@positional
class Vector:
    """A constant tensor of the file that states attributes of the descriptor."""

    attributes: Sequence[str]
    """Those of the columns of the tensor, if there are several."""
    read: Callable[[Node, int, str], Any] = Node.integers
    """(node, position, role) -> the value of the attribute, or of each attribute."""
    role: str = ""
    """The tensor's name in messages and in files that are written; by default that of the attribute."""
    write: Callable[[Emitter, Layer, Any], str | None] | None = None
    """(emitter, layer, descriptor) -> the name of the tensor in a file that is written, None for none; by default of
    one with the attributes."""

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.role or self.attributes[0]

    def values(self, node: Node, position: int) -> dict[str, Any]:
        """Return the attributes that the tensor at a position states."""
        found = self.read(node, position, self.name)
        return dict(zip(self.attributes, found if len(self.attributes) > 1 else [found], strict=True))

    def written(self, emitter: Emitter, layer: Layer) -> str | None:
        """Return the name of the tensor in a file that is written; None if the file does not need it."""
        if self.write is not None:
            return self.write(emitter, layer, layer.descriptor)
        values = [getattr(layer.descriptor, each) for each in self.attributes]
        columns = np.array(values[0] if len(values) == 1 else values, np.int32)
        return emitter.parameter(layer, self.name, columns.T.copy())


def axis_of(added: int = 0) -> Vector:
    """Return the tensor of an axis of the first data input, which has `added` axes more in the output."""

    def read(node: Node, position: int, role: str) -> int:
        return axis(node.integer(position, role), len(node.input(int(position == 0)).shape) + added)

    return Vector(["axis"], read)


def sorted_axes(node: Node, values: Sequence[int]) -> tuple[int, ...]:
    """Return axes of the first input, counted from the front, in order."""
    return tuple(sorted({axis(value, len(node.source.shape)) for value in values}))


def axes_of(write: Callable[[Emitter, Layer, Any], str] | None = None) -> Vector:
    """Return the tensor of axes of the first input."""
    return Vector(["axes"], lambda node, position, role: sorted_axes(node, node.integers(position, role)), "", write)


def first_version(written: Written) -> int:
    """Return 1, for operators that have only one version."""
    del written
    return 1


@positional
class Row:
    """How one operator is read and written.

    Versions follow `tflite/tools/versioning/op_version.cc` of LiteRT, for the types that a network can have.
    Interpreters refuse unknown versions, and some select a kernel by version.
    """

    table: str = ""
    """The name of the options' table in the schema; "" if files need none."""
    options: Sequence[Option] = ()
    """What options state, in order."""
    vectors: Sequence[Vector] = ()
    """The parameter tensors, in order; they have the positions that are not in `data_inputs`."""
    version: Version = first_version
    data_inputs: Sequence[int] = range(1)
    """Positions of the tensors that become inputs of the layer, in their order; the others are parameters."""
    inputs: range | None = None
    """The allowed numbers of inputs in a file; by default those of the tensors of the row."""
    outputs: range = range(1, 2)
    required: bool = True
    """Whether a file must have the options that state attributes."""
    check: Callable[[Node], None] | None = None
    """Refuses an operator of a file, beside what the attributes' types and tensors say."""
    reader: Callable[[Node], Descriptor] | None = None
    """Returns the descriptor, in place of what options and vectors say."""
    sources: Callable[[Emitter, Layer, Any], Sequence[str | None]] | None = None
    """(emitter, layer, descriptor) -> the inputs in a file, in place of those of the layer and of the vectors."""
    least_inputs: int = 0
    """The least number of inputs in a file that is written, of which the last may be absent."""
    intermediates: Callable[[Emitter, Layer], tuple[str, ...]] | None = None
    """Returns the tensors without elements that a file has for a layer."""
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

    def check_arity(self, node: Node) -> None:
        """Refuse a number of inputs or outputs that the operator does not have."""
        most = len(self.data_inputs) + len(self.vectors)
        node.check_arity(self.inputs or range(most - len(self.optional), most + 1), self.outputs)

    def read(self, node: Node, descriptor: type[Descriptor]) -> Descriptor:
        """Return the descriptor of an operator of a file."""
        if self.check is not None:
            self.check(node)
        if self.reader is not None:
            return self.reader(node)
        values: dict[str, Any] = {}
        stated = [each for each in self.options if isinstance(each, str)]
        if stated:
            options = node.options(self.table) if self.required else node.optional_options(self.table)
            types = {field.name: str(field.type) for field in fields(descriptor)}
            for name in stated:
                found = getattr(options, FIELDS.get(name, name))
                values[name] = _READ.get(types[name], _as_it_is)(found, name)
        first = len(self.data_inputs) if self.data_inputs[0] == 0 else 0
        for position, vector in enumerate(self.vectors, first):
            values |= vector.values(node, position)
        return descriptor(**values)

    def write(self, emitter: Emitter, layer: Layer) -> None:
        """Write a layer."""
        if self.sources is not None:
            inputs = self.sources(emitter, layer, layer.descriptor)
        else:
            vectors = [vector.written(emitter, layer) for vector in self.vectors]
            inputs = [*layer.inputs, *vectors] if self.data_inputs[0] == 0 else [*vectors, *layer.inputs]
        sources = [name for name in inputs if name not in emitter.left_out]
        while sources and sources[-1] is None:  # LiteRT treats a listed bias as present
            sources.pop()
        sources += [None] * (self.least_inputs - len(sources))
        written = Written(layer.descriptor, emitter.input_infos(layer), emitter.output_info(layer))
        operator = OperatorContent(
            type=layer.type,
            version=self.version(written),
            inputs=tuple(sources),
            outputs=tuple(name for name in layer.outputs if name not in emitter.left_out),
            table=self.table,
            custom=self.custom,
            fields=self.stated(emitter, layer),
            intermediates=() if self.intermediates is None else self.intermediates(emitter, layer),
        )
        emitter.operators.append(operator)

    def stated(self, emitter: Emitter, layer: Layer) -> dict[str, OptionValue]:
        """Return the options of a layer, by field."""
        found: dict[str, OptionValue | None] = {}
        for option in self.options:
            if isinstance(option, str):
                value = getattr(layer.descriptor, option)
                found[FIELDS.get(option, option)] = ACTIVATION_NUMBERS[value] if option == "activation" else value
            else:
                name, given = option
                found[name] = given(emitter, layer) if callable(given) else given
        return {name: value for name, value in found.items() if value is not None}

    def positions(self, node: Node) -> list[int]:
        """Return the positions of the tensors of an operator that become inputs of the layer."""
        return [
            position
            for position in self.data_inputs
            if position < len(node.record.inputs) and not (position in self.parameters and node.is_constant(position))
        ]


def _as_it_is(value: Any, _: str) -> Any:  # noqa: ANN401 of any type
    return value


def by_type(*, int8: int = 1, int16: int = 1, int32: int = 1, int64: int = 1, bool_: int = 1, wide: int = 1) -> Version:
    """Return a function from the first input's type to the version, at least `wide` for more than 4 dimensions."""
    versions = {
        DataType.INT8: int8,
        DataType.INT16: int16,
        DataType.INT32: int32,
        DataType.INT64: int64,
        DataType.BOOL: bool_,
    }

    def version(written: Written) -> int:
        found = versions.get(written.dtype, 1)
        return max(found, wide) if written.rank > 4 else found

    return version
