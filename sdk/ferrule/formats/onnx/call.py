# SPDX-License-Identifier: Apache-2.0
"""One node while its layers are added: the interface that the rows of the operator table use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.emission import Emission
from ferrule.formats.onnx.layout import NHWC, Layout, identity
from ferrule.formats.onnx.node import GraphRecord, Node, TensorType, elements
from ferrule.formats.onnx.shapes import front_axis
from ferrule.graph import Array, DataType, Descriptor, LayerType, Rounding, Shape, TensorInfo
from ferrule.network import Network
from ferrule.network.execution import operator_of


class Value:
    """A tensor of the network in an expression, whose operators are layers; numbers have the type of the tensor."""

    def __init__(
        self, call: Call, source: str | LayerType, given: Sequence[Given] = (), dtype: DataType | None = None
    ) -> None:
        """`source` is the tensor, or the type of the layer that makes it."""
        self._call, self.given, self.result = call, given, dtype
        self.type = source if isinstance(source, LayerType) else None
        self._tensor = "" if isinstance(source, LayerType) else source

    @property
    def tensor(self) -> str:
        """The tensor of the network, whose layer is added now if it was not yet."""
        if self.type is not None and not self._tensor:
            self._tensor = self._call.added(self, self.type)
        return self._tensor

    @property
    def dtype(self) -> DataType:
        """The type of the tensor."""
        return self._call.info(self.tensor).dtype

    def number(self, value: float) -> str:
        """Return a constant of the type of the tensor."""
        return self._call.number(value, self.tensor)

    def then(self, type_: LayerType, *others: Given, dtype: DataType | None = None) -> Value:
        """Return the result of a layer with this tensor as first input; see `Call.layer`."""
        return self._call.layer(type_, self, *others, dtype=dtype)

    def __add__(self, other: Given) -> Value:
        return self.then(LayerType.ADD, other)

    def __sub__(self, other: Given) -> Value:
        return self.then(LayerType.SUB, other)

    def __rsub__(self, other: float) -> Value:
        return self._call.layer(LayerType.SUB, other, self)

    def __mul__(self, other: Given) -> Value:
        return self.then(LayerType.MUL, other)

    def __truediv__(self, other: Given) -> Value:
        return self.then(LayerType.DIV, other)

    def __rtruediv__(self, other: float) -> Value:
        return self._call.layer(LayerType.DIV, other, self)

    def __abs__(self) -> Value:
        return self.then(LayerType.ABS)


Given = Descriptor | Value | str | float | None
"""What is given for a layer: its descriptor, or one of its inputs."""


class Call:
    """A node, its inputs by position, and methods that add layers and declare the outputs."""

    def __init__(
        self, node: Node, emission: Emission, inner: Callable[[GraphRecord], Network], max_iterations: int
    ) -> None:
        self.node = node
        self.emission = emission
        self.inner = inner
        """Returns the network of an inner graph, which has all that it reads as inputs or constants."""
        self.max_iterations = max_iterations
        """The limit of a loop whose trip count is not known."""
        self._pending: Value | None = None
        """The last layer of an expression, which is not added yet."""

    # the inputs

    def shape(self, position: int) -> Shape:
        """Return the shape of an input, in the model's order of axes."""
        return self.emission.shape(self._name(position))

    def rank(self, position: int) -> int:
        """Return the number of axes of an input."""
        return len(self.shape(position))

    def axis(self, default: int | None = 0) -> int:
        """Return the axis of the first input that the attribute `axis` names, counted from the front."""
        return front_axis(self.node.integer("axis", default), self.rank(0))

    def dtype(self, position: int) -> DataType:
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

    def single(self, position: int, role: str, default: int) -> int:
        """Return the single integer of an input that must be a constant, or the default if it is absent."""
        values = self.integers(position, role)
        if values is not None and len(values) != 1:
            raise ModelError(f"its {role} is {list(values)}, expected one integer")
        return default if values is None else values[0]

    def place(self, position: int) -> tuple[str, Layout]:
        """Return the network's tensor for an input and its layout, which may be pending; constants are plain."""
        name = self._name(position)
        if self.constant(position) is not None:
            return self.emission.tensor(name), Layout.plain(self.shape(position))
        return self.emission.place(name)

    def ordered(self, position: int) -> tuple[str, tuple[int, ...]]:
        """Return the network's tensor for an input and the order of its axes, without a pending reshape."""
        if self.constant(position) is not None:
            return self.tensor(position), identity(self.rank(position))
        tensor, layout = self.emission.settled(self._name(position))
        return tensor, layout.order

    def tensor(self, position: int, order: Sequence[int] | None = None, shape: Shape | None = None) -> str:
        """Return the network's tensor for an input, reshaped, with an order of axes; by default the model's."""
        self._settle()
        return self.emission.tensor(self._name(position), order, shape)

    def info(self, tensor: str) -> TensorInfo:
        """Return the description of a tensor of the network."""
        return self.emission.network.info(tensor)

    def _name(self, position: int) -> str:
        if not self.node.has_input(position):
            raise ModelError(f"its input {position} is absent, expected a tensor")
        return self.node.inputs[position]

    # layers before the last

    def layer(self, type_: LayerType, *given: Given, dtype: DataType | None = None) -> Value:
        """Return the result of a layer, which is added when the next one begins: `finish_with` may make it the last.

        The inputs are tensors of the network, or numbers of the type of the first tensor; a descriptor among them is
        that of the layer, which has no parameters otherwise. The result has the type of the first input by default.
        """
        self._settle()
        self._pending = Value(self, type_, given, dtype)
        return self._pending

    def value(self, position: int) -> tuple[Value, Layout]:
        """Return an input as the begin of an expression, and its layout; see `place`."""
        tensor, layout = self.place(position)
        return Value(self, tensor), layout

    def add(self, type_: LayerType, *given: Given, dtype: DataType | None = None) -> str:
        """Add a layer whose result is no tensor of the model and return that; see `layer`."""
        return self.layer(type_, *given, dtype=dtype).tensor

    def add_many(
        self, type_: LayerType, *given: Given, outputs: Sequence[str], layer: str | None = None
    ) -> tuple[str, ...]:
        """Add a layer with several results, whose roles become parts of their names, and return them; see `layer`."""
        self._settle()
        descriptor, inputs = self._read(type_, given)
        wanted = [f"{self.name}_{role}" for role in outputs]
        return self.emission.add_many(
            type_, descriptor, inputs, wanted=wanted, stored=[None] * len(wanted), layer=layer
        )

    def _settle(self) -> None:
        if self._pending is not None:
            self._pending.tensor  # noqa: B018 adds the layer

    def added(self, value: Value, type_: LayerType) -> str:
        """Add the layer of a value and return its result."""
        self._pending = None
        descriptor, inputs = self._read(type_, value.given)
        stored = None if value.result is None else TensorType(dtype=value.result)
        return self.emission.add(type_, descriptor, inputs, wanted=f"{self.name}_{type_.lower()}", stored=stored)

    def _read(self, type_: LayerType, given: Sequence[Given]) -> tuple[Descriptor, list[str | None]]:
        """Return the descriptor of a layer and the tensors that are its inputs."""
        found = [each.tensor if isinstance(each, Value) else each for each in given if not isinstance(each, Descriptor)]
        like = next((each for each in found if isinstance(each, str)), "")
        descriptors = [each for each in given if isinstance(each, Descriptor)]
        return (descriptors or [operator_of(type_).descriptor()])[0], [
            each if each is None or isinstance(each, str) else self.number(each, like) for each in found
        ]

    def array(self, data: Array, role: str) -> str:
        """Add a constant and return its name; `role` becomes part of it."""
        self._settle()
        return self.emission.array(data, f"{self.name}_{role}")

    def number(self, value: float, like: str) -> str:
        """Add a scalar constant of the type of a tensor of the network and return its name."""
        dtype = self.info(like).dtype
        try:
            data = np.array(value if dtype.is_float else int(value), dtype.numpy)
        except (OverflowError, ValueError) as error:
            raise ModelError(f"the number {value} is not one of {dtype}") from error
        return self.array(data, "constant")

    def variant(self, position: int, data: Array, key: tuple[object, ...], *, axis: int) -> str:
        """Add other data of a constant input once per key, and return its name; the scales of `axis` go to axis 0."""
        name = self._name(position)
        stored = self.emission.stored_type(name)
        quantization = None if stored is None else stored.quantization
        if quantization is not None and quantization.per_channel and quantization.axis == axis:
            quantization = replace(quantization, axis=0)
        return self.emission.variant(name, data, key, quantization)

    def infer(self, type_: LayerType, descriptor: Descriptor, *inputs: str | None) -> Shape:
        """Return the shape of a layer's first output."""
        infos = [None if source is None else self.info(source) for source in inputs]
        return operator_of(type_).infer(descriptor, infos)[0]

    def reshaped(self, tensor: str, shape: Shape) -> str:
        """Return a tensor of the network with the same elements and another shape."""
        self._settle()
        return self.emission.reshaped(tensor, shape, f"{tensor}_reshaped")

    # the outputs

    def stored(self, index: int = 0, dtype: DataType | None = None) -> TensorType | None:
        """Return the stored type of an output: that of a quantised tensor, else `dtype` if it is given."""
        found = self.emission.stored_type(self.node.outputs[index])
        return TensorType(dtype=dtype) if found is None and dtype is not None else found

    def finish(
        self,
        type_: LayerType,
        *given: Given,
        order: Sequence[int] | None = None,
        layout: Layout | None = None,
        dtype: DataType | None = None,
        rounding: Rounding | None = None,
    ) -> None:
        """Add the layer whose result is the node's first output; see `layer`.

        Its axis i is axis order[i] of the model's tensor, by default in the model's order; `layout` says more. The
        rule is that of the output, unless another one is given.
        """
        self._settle()
        descriptor, inputs = self._read(type_, given)
        wanted, stored = self.wanted(0, order, layout), self.stored(dtype=dtype)
        if stored is not None and rounding is not None:
            stored = replace(stored, rounding=rounding)
        tensor = self.emission.add(type_, descriptor, inputs, wanted=wanted, stored=stored, layer=self.layer_name)
        self.declare(tensor, order=order, layout=layout)

    def finish_with(self, value: Value, *, order: Sequence[int] | None = None, layout: Layout | None = None) -> None:
        """Let the last layer of an expression be the one whose result is the node's first output; see `finish`."""
        if value.type is None or value is not self._pending:
            self.declare(value.tensor, order=order, layout=layout)
            return
        self._pending = None
        self.finish(value.type, *value.given, order=order, layout=layout, dtype=value.result)

    def finish_all(self, type_: LayerType, descriptor: Descriptor, source: str, order: Sequence[int]) -> None:
        """Add the layer whose results are the node's outputs, all with the same order of axes."""
        count = range(len(self.node.outputs))
        tensors = self.emission.add_many(
            type_,
            descriptor,
            [source],
            wanted=[self.wanted(index, order) for index in count],
            stored=[self.stored(index=index) for index in count],
            layer=self.layer_name,
        )
        for index, tensor in enumerate(tensors):
            if self.node.outputs[index]:
                self.declare(tensor, order=order, index=index)

    def declare(
        self, tensor: str, *, order: Sequence[int] | None = None, layout: Layout | None = None, index: int = 0
    ) -> None:
        """Declare that a tensor of the network is an output of the node; see `finish`."""
        if layout is None:
            stored = self.info(tensor).shape
            order = identity(len(stored)) if order is None else tuple(order)
            shape = tuple(stored[order.index(axis)] for axis in range(len(order)))
            layout = Layout.ordered(order, shape)
        if elements(layout.stored) != elements(layout.shape) or layout.stored != self.info(tensor).shape:
            raise ModelError(f"its output has shape {list(self.info(tensor).shape)}, expected {list(layout.stored)}")
        self.emission.set(self.node.outputs[index], tensor, layout)

    def alias(self, position: int, layout: Layout | None = None) -> None:
        """Declare that the node's first output has the elements of an input, by default in the same layout."""
        tensor, found = self.place(position)
        self.declare(tensor, layout=found if layout is None else layout)

    @property
    def layer_name(self) -> str:
        """The name of the node's last layer."""
        return self.node.name or f"{self.node.op.lower()}_{self.node.index}"

    @property
    def name(self) -> str:
        """The first part of the names of further tensors."""
        return next(filter(None, self.node.outputs), self.layer_name)

    def wanted(self, index: int, order: Sequence[int] | None, layout: Layout | None = None) -> str:
        """Return the name of an output's tensor: the model's, unless a copy in the model's order will need that."""
        name = self.node.outputs[index] or f"{self.layer_name}_output_{index}"
        order = layout.order if layout is not None else order
        moved = order is not None and tuple(order) != identity(len(order))
        if name not in self.emission.final or not (moved or (layout is not None and layout.is_pending)):
            return name
        return f"{name}_{'nhwc' if order is not None and tuple(order) == NHWC else 'permuted'}"

    def refuse_outputs(self, count: int) -> None:
        """Refuse a node with more than `count` outputs that are used."""
        for name in self.node.outputs[count:]:
            if name:
                raise UnsupportedError(f"its output '{name}' is not supported, expected {count} outputs")
