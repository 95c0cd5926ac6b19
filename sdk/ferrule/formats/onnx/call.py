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
from ferrule.graph import Array, DataType, Descriptor, LayerType, Rounding, Shape, TensorInfo
from ferrule.network import Network
from ferrule.network.execution import operator_of


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

    # the inputs

    def shape(self, position: int) -> Shape:
        """Return the shape of an input, in the model's order of axes."""
        return self.emission.shape(self._name(position))

    def rank(self, position: int) -> int:
        """Return the number of axes of an input."""
        return len(self.shape(position))

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
        return self.emission.tensor(self._name(position), order, shape)

    def info(self, tensor: str) -> TensorInfo:
        """Return the description of a tensor of the network."""
        return self.emission.network.info(tensor)

    def _name(self, position: int) -> str:
        if not self.node.has_input(position):
            raise ModelError(f"its input {position} is absent, expected a tensor")
        return self.node.inputs[position]

    # layers before the last

    def add(self, type_: LayerType, descriptor: Descriptor, *inputs: str | None, dtype: DataType | None = None) -> str:
        """Add a layer whose result is no tensor of the model and return that; by default of the first input's type."""
        wanted = f"{self.name}_{type_.lower()}"
        stored = None if dtype is None else TensorType(dtype=dtype)
        return self.emission.add(type_, descriptor, inputs, wanted=wanted, stored=stored)

    def array(self, data: Array, role: str) -> str:
        """Add a constant and return its name; `role` becomes part of it."""
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
        return self.emission.reshaped(tensor, shape, f"{tensor}_reshaped")

    # the outputs

    def stored(self, like: str | None = None, index: int = 0, dtype: DataType | None = None) -> TensorType | None:
        """Return the stored type of an output: that of quantised tensors, else `dtype` or the type of `like`."""
        found = self.emission.stored_type(self.node.outputs[index])
        if found is None and dtype is not None:
            found = TensorType(dtype=dtype)
        if found is None and like is not None:
            info = self.info(like)
            found = TensorType(dtype=info.dtype, quantization=info.quantization)
        return found

    def finish(
        self,
        type_: LayerType,
        descriptor: Descriptor,
        *inputs: str | None,
        order: Sequence[int] | None = None,
        layout: Layout | None = None,
        dtype: DataType | None = None,
        rounding: Rounding | None = None,
    ) -> None:
        """Add the layer whose result is the node's first output.

        Its axis i is axis order[i] of the model's tensor, by default in the model's order; `layout` says more. The
        rule is that of the output, unless another one is given.
        """
        wanted, stored = self.wanted(0, order, layout), self.stored(dtype=dtype)
        if stored is not None and rounding is not None:
            stored = replace(stored, rounding=rounding)
        tensor = self.emission.add(type_, descriptor, inputs, wanted=wanted, stored=stored, layer=self.layer_name)
        self.declare(tensor, order=order, layout=layout)

    def finish_all(
        self,
        type_: LayerType,
        descriptor: Descriptor,
        *inputs: str | None,
        order: Sequence[int],
    ) -> None:
        """Add the layer whose results are the node's outputs, all with the same order of axes."""
        count = len(self.node.outputs)
        tensors = self.emission.add_many(
            type_,
            descriptor,
            inputs,
            wanted=[self.wanted(index, order) for index in range(count)],
            stored=[self.stored(index=index) for index in range(count)],
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
            layout = Layout(order=order, split=shape, shape=shape)
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
