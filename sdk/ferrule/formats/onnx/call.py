# SPDX-License-Identifier: Apache-2.0
"""One node while its layers are added: the interface that the rows of the operator table use."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.limits import front_axis
from ferrule.formats.onnx.emission import Emission, Made
from ferrule.formats.onnx.layout import NHWC, Layout
from ferrule.formats.onnx.node import GraphRecord, Node, TensorType, elements
from ferrule.graph import Array, DataType, Descriptor, LayerType, Rounding, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.elementwise.comparison import COMPARISONS
from ferrule.operators.interpreter import operator_of
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.table import type_of

_Of = TypeVar("_Of")
_RESULTS: Mapping[LayerType, DataType] = {
    **{row.type: DataType.BOOL for row in COMPARISONS},
    LayerType.ARG_MAX: DataType.INT32,
    LayerType.ARG_MIN: DataType.INT32,
    LayerType.DEQUANTIZE: DataType.FLOAT32,
}
"""The types of results that have another type than the first input."""


@dataclass(slots=True, eq=False)
class Value:
    """A tensor of the network in an expression, whose operators are layers; numbers have the type of the tensor.

    A layer is added when the next one begins: `Call.finish` may make it the last.
    """

    call: Call
    name: str = ""
    """The name of the tensor; empty until the layer that makes it is added."""
    axes: Order = None
    made: Made | None = None
    """The layer that makes the tensor, if it is one of the expression."""

    @property
    def tensor(self) -> str:
        """The tensor of the network, whose layer is added now if it was not yet."""
        if not self.name and self.made is not None:
            self.call.pending = None
            self.name = self.call.emission.add(self.made, f"{self.call.name}_{self.made.type.lower()}")
        return self.name

    @property
    def info(self) -> TensorInfo:
        """The description of the tensor."""
        return self.call.emission.network.info(self.tensor)

    @property
    def dtype(self) -> DataType:
        """The type of the tensor."""
        return self.info.dtype

    @property
    def shape(self) -> Shape:
        """The shape of the tensor, whose layer need not be added yet."""
        return self.info.shape if self.name or self.made is None else self.call.emission.infer(self.made)[0]

    @property
    def layout(self) -> Layout:
        """How the elements of the model's tensor are ordered."""
        return self.axes if isinstance(self.axes, Layout) else Layout.of(self.shape, self.axes)

    @property
    def order(self) -> tuple[int, ...]:
        """The order of the axes: axis i is axis order[i] of the model's tensor."""
        return self.layout.order

    def in_order(self, values: Sequence[_Of]) -> tuple[_Of, ...]:
        """Return values for the axes of the model's tensor in the order of the axes."""
        return tuple(values[axis] for axis in self.order)

    def places(self, axes: Container[int]) -> tuple[int, ...]:
        """Return the axes that are some axes of the model's tensor."""
        return tuple(place for place, axis in enumerate(self.order) if axis in axes)

    def over(self, axes: Container[int], *, keep: bool = True) -> ReduceDescriptor:
        """Return the reduction over some axes of the model's tensor, which stay by default, with an extent of 1."""
        return ReduceDescriptor(axes=self.places(axes), keep_dims=keep)

    def number(self, value: float) -> Value:
        """Return a scalar constant of the type of the tensor."""
        dtype = self.dtype
        try:
            data = np.array(value if dtype.is_float else int(value), dtype.numpy)
        except (OverflowError, ValueError) as error:
            raise ModelError(f"the number {value} is not one of {dtype}") from error
        return self.call.array(data, "constant")

    def reshaped(self, shape: Shape, order: Order = None) -> Value:
        """Return a tensor with the same elements and another shape."""
        self.call.settle()
        return Value(self.call, self.call.emission.reshaped(self.tensor, shape, f"{self.tensor}_reshaped"), order)

    def then(
        self,
        what: LayerType | Descriptor,
        *others: Given,
        dtype: DataType | None = None,
        rounding: Rounding | None = None,
    ) -> Value:
        """Return the result of a layer with this tensor as first input.

        `what` is the descriptor, or the type of the layer if several have the same one, which is among `others` then;
        without one, the layer has no parameters. The result has the order of axes of this tensor, and by default its
        type, unless layers like this one have another. `rounding` is the rule of the node's last layer, unless that is
        the output's.
        """
        self.call.settle()
        self.call.pending = Value(self.call, axes=self.axes, made=self._made(what, others, dtype, rounding))
        return self.call.pending

    def cast(self, dtype: DataType) -> Value:
        """Return the elements in another type."""
        return self if self.dtype is dtype else self.then(LayerType.CAST, dtype=dtype)

    def select(self, chosen: Value, other: Value) -> Value:
        """Return the elements of `chosen` where this tensor is true, and else those of `other`."""
        return self.then(LayerType.SELECT_V2, chosen, other, dtype=chosen.dtype)

    def many(
        self,
        what: LayerType | Descriptor,
        *others: Given,
        wanted: Sequence[str] | int,
        stored: Sequence[TensorType | None] = (),
        layer: str | None = None,
    ) -> list[Value]:
        """Return the results of a layer with several, which is added now; see `then`.

        `wanted` are names for them, or their number.
        """
        self.call.settle()
        made = self._made(what, others)
        if isinstance(wanted, int):
            wanted = [f"{self.call.name}_{made.type.lower()}_{index}" for index in range(wanted)]
        names = self.call.emission.add_many(made, wanted, stored, layer)
        return [Value(self.call, name, self.axes) for name in names]

    def _made(
        self,
        what: LayerType | Descriptor,
        others: Sequence[Given],
        dtype: DataType | None = None,
        rounding: Rounding | None = None,
    ) -> Made:
        type_ = type_of(what) if isinstance(what, Descriptor) else what
        descriptors = [each for each in (what, *others) if isinstance(each, Descriptor)]
        inputs = [
            each.tensor if isinstance(each, Value) else None if each is None else self.number(each).tensor
            for each in (self, *others)
            if not isinstance(each, Descriptor)
        ]
        return Made(
            type=type_,
            descriptor=descriptors[0] if descriptors else operator_of(type_).descriptor(),
            inputs=inputs,
            dtype=dtype or _RESULTS.get(type_),
            rounding=rounding,
        )

    def ordered(self, order: Order) -> Value:
        """Set the order of the model's axes, and return this tensor."""
        self.axes = order
        return self

    def __add__(self, other: Given) -> Value:
        return self.then(LayerType.ADD, other)

    def __sub__(self, other: Given) -> Value:
        return self.then(LayerType.SUB, other)

    def __rsub__(self, other: float) -> Value:
        return self.number(other).then(LayerType.SUB, self).ordered(self.axes)

    def __mul__(self, other: Given) -> Value:
        return self.then(LayerType.MUL, other)

    def __truediv__(self, other: Given) -> Value:
        return self.then(LayerType.DIV, other)

    def __rtruediv__(self, other: float) -> Value:
        return self.number(other).then(LayerType.DIV, self).ordered(self.axes)

    def __abs__(self) -> Value:
        return self.then(LayerType.ABS)


def joined(descriptor: Descriptor, parts: Sequence[Value]) -> Value:
    """Return the result of a layer that joins tensors."""
    return parts[0].then(descriptor, *parts[1:])


Given = Descriptor | Value | float | None
"""What is given for a layer: its descriptor, or one of its inputs."""
Order = Layout | Sequence[int] | None
"""The order of a tensor's axes: axis i is axis order[i] of the model's tensor, by default in the model's order.

A layout says more, such as a pending reshape.
"""


@dataclass(slots=True, eq=False)
class Call:
    """A node, its inputs by position, and methods that add layers and declare the outputs."""

    node: Node
    emission: Emission
    inner: Callable[[GraphRecord], Network]
    """Returns the network of an inner graph, which has all that it reads as inputs or constants."""
    max_iterations: int
    """The limit of a loop whose trip count is not known."""
    pending: Value | None = None
    """The last layer of an expression, which is not added yet."""

    # the inputs, by default the first

    def shape(self, position: int = 0) -> Shape:
        """Return the shape of an input, in the model's order of axes."""
        return self.emission.shape(self._name(position))

    def rank(self, position: int = 0) -> int:
        """Return the number of axes of an input."""
        return len(self.shape(position))

    def axis(self, default: int | None = 0) -> int:
        """Return the axis of the first input that the attribute `axis` names, counted from the front."""
        return front_axis(self.node.integer("axis", default), self.rank())

    def dtype(self, position: int = 0) -> DataType:
        """Return the type of an input as stored."""
        return self.emission.dtype(self._name(position))

    def constant(self, position: int) -> Array | None:
        """Return the data of an input; None if it is absent or computed at run time."""
        return self.emission.constant(self._name(position)) if self.node.has_input(position) else None

    def parameter(self, position: int, role: str) -> Array | None:
        """Return the data of an input that must be a constant; None if it is absent."""
        if not self.node.has_input(position):
            return None
        data = self.constant(position)
        if data is None:
            raise UnsupportedError(
                f"its {role}, tensor '{self._name(position)}', is computed at run time, expected a constant",
                hint="export the model with inputs of fixed shapes, or simplify it first (pip install onnxsim)",
            )
        return data

    def integers(self, position: int, role: str) -> tuple[int, ...] | None:
        """Return the elements of an input that must be a constant; None if it is absent."""
        data = self.parameter(position, role)
        if data is None:
            return None
        if data.dtype.kind not in "iu" or data.ndim > 1:
            raise ModelError(f"its {role} is {data.dtype}{list(data.shape)}, expected a list of integers")
        return tuple(int(each) for each in data.reshape(-1))

    def scalar(self, position: int, role: str) -> float | None:
        """Return the single element of an input that must be a constant; None if it is absent."""
        data = self.parameter(position, role)
        if data is None:
            return None
        if data.size != 1:
            raise ModelError(f"its {role} has shape {list(data.shape)}, expected one number")
        return float(data.reshape(-1)[0])

    def single(self, role: str) -> int:
        """Return the single integer of the second input, which must be a constant, or 0 if it is absent."""
        values = self.integers(1, role)
        if values is not None and len(values) != 1:
            raise ModelError(f"its {role} is {list(values)}, expected one integer")
        return 0 if values is None else values[0]

    def value(self, position: int = 0) -> Value:
        """Return the network's tensor for an input; a reshape may be pending."""
        if self.constant(position) is not None:
            return self.tensor(position)
        return Value(self, *self.emission.place(self._name(position)))

    def ordered(self, position: int = 0) -> Value:
        """Return the network's tensor for an input without a pending reshape, in the order of axes that it has."""
        if self.constant(position) is not None:
            return self.tensor(position)
        tensor, layout = self.emission.settled(self._name(position))
        return Value(self, tensor, layout.order)

    def tensor(self, position: int, order: Sequence[int] | None = None, shape: Shape | None = None) -> Value:
        """Return the network's tensor for an input, reshaped, with an order of axes; by default the model's."""
        self.settle()
        return Value(self, self.emission.tensor(self._name(position), order, shape), order)

    def _name(self, position: int) -> str:
        if not self.node.has_input(position):
            raise ModelError(f"its input {position} is absent, expected a tensor")
        return self.node.inputs[position]

    # layers

    def settle(self) -> None:
        """Add the last layer of an expression, if it was not added yet."""
        if self.pending is not None:
            self.pending.tensor  # noqa: B018 adds the layer

    def array(self, data: Array, role: str) -> Value:
        """Add a constant and return it; `role` becomes part of its name."""
        self.settle()
        return Value(self, self.emission.array(data, f"{self.name}_{role}"))

    def variant(self, position: int, data: Array, key: tuple[object, ...], *, axis: int) -> Value:
        """Add other data of a constant input once per key, and return it; the scales of `axis` go to axis 0."""
        self.settle()
        name = self._name(position)
        stored = self.emission.stored_type(name)
        quantization = None if stored is None else stored.quantization
        if quantization is not None and quantization.per_channel and quantization.axis == axis:
            quantization = replace(quantization, axis=0)
        return Value(self, self.emission.variant(name, data, key, quantization))

    # the outputs

    def stored(self, index: int = 0) -> TensorType | None:
        """Return the stored type of an output; None if it is not quantised."""
        return self.emission.stored_type(self.node.outputs[index])

    def finish(self, value: Value) -> None:
        """Declare that a tensor is the node's first output; if its layer is not added yet, it gets that name."""
        if value.made is not None and value is self.pending:
            self.pending, wanted = None, self.wanted(0, value.layout)
            value.name = self.emission.add(value.made, wanted, self.stored(), self.layer_name)
        self.declare(value)

    def declare_all(self, values: Iterable[Value]) -> None:
        """Declare that tensors of the network are the outputs of the node."""
        for index, value in enumerate(values):
            if self.node.outputs[index]:
                self.declare(value, index)

    def declare(self, value: Value, index: int = 0) -> None:
        """Declare that a tensor of the network is an output of the node."""
        layout, shape = value.layout, value.info.shape
        if elements(layout.stored) != elements(layout.shape) or layout.stored != shape:
            raise ModelError(f"its output has shape {list(shape)}, expected {list(layout.stored)}")
        self.emission.set(self.node.outputs[index], value.tensor, layout)

    @property
    def layer_name(self) -> str:
        """The name of the node's last layer."""
        return self.node.name or f"{self.node.op.lower()}_{self.node.index}"

    @property
    def name(self) -> str:
        """The first part of the names of further tensors."""
        return next(filter(None, self.node.outputs), self.layer_name)

    def wanted(self, index: int, layout: Layout) -> str:
        """Return the name of an output's tensor: the model's, unless a copy in the model's order will need that."""
        name = self.node.outputs[index] or f"{self.layer_name}_output_{index}"
        if name not in self.emission.final or not (layout.is_moved or layout.is_pending):
            return name
        return f"{name}_{'nhwc' if layout.order == NHWC else 'permuted'}"

    def refuse_outputs(self) -> None:
        """Refuse a node with more than one output that is used."""
        for name in self.node.outputs[1:]:
            if name:
                raise UnsupportedError(f"its output '{name}' is not supported, expected one output")
