# SPDX-License-Identifier: Apache-2.0
"""The network while the nodes of a graph become its layers, and the tensors of the model in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.budget import Resource, Tally, hold
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.limits import MAX_TENSOR_BYTES
from ferrule.formats.onnx.layout import NHWC, Layout, identity, moves_nothing
from ferrule.formats.onnx.node import TensorType, elements
from ferrule.graph import Array, DataType, Descriptor, Layer, LayerType, Quantization, Rounding, Shape, TensorInfo
from ferrule.graph.names import UniqueNames
from ferrule.graph.tensor import read_only
from ferrule.network import Network, check_kernel
from ferrule.operators.interpreter import operator_of
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.operators.table import type_of

_LAYER_BYTES = 2048
"""What a layer takes in memory, with its tensors and their names."""
_MAX_AXES = 5
"""The most axes of a TRANSPOSE that is added here: TensorFlow Lite Micro has no kernel for 6."""


@frozen
class Made:
    """A layer before it is added."""

    type: LayerType
    descriptor: Descriptor
    inputs: Sequence[str | None]
    dtype: DataType | None = None
    """The type of an output that is not quantised; None for that of the first input, with its quantisation."""
    rounding: Rounding | None = None
    """The rule; None for that of the output."""


class Emission:
    """A network under construction, and where it has the tensors of the model."""

    def __init__(self, name: str, constants: Mapping[str, Array], types: Mapping[str, TensorType]) -> None:
        self.network = Network(name)
        self._checked = Tally()
        self._constants = dict(constants)
        self._types = dict(types)
        """The stored types of quantised tensors of the model, by name; other tensors have their own."""
        self._found: dict[str, tuple[str, Layout]] = {}
        """By tensor of the model: that of the network, and how its elements are ordered."""
        self._copies: dict[tuple[str, tuple[int, ...], Shape], str] = {}
        """Tensors with other orders and shapes, by the tensor and what is done with it."""
        self._variants: dict[tuple[str, tuple[object, ...]], str] = {}
        """Constants with other orders, shapes and data than those of the model, by name and key."""
        self.ranges: dict[str, tuple[int, int]] = {}
        """The lowest and highest value of int64 tensors of the network, as far as they are known."""
        self._layer_names = UniqueNames()
        self.final: frozenset[str] = frozenset()
        """The outputs of the graph, whose names are kept for tensors with the model's order of axes."""

    def constant(self, name: str) -> Array | None:
        """Return the data of a tensor of the model; None if it is computed at run time."""
        return self._constants.get(name)

    def add_constant(self, name: str, data: Array) -> None:
        """Declare a tensor of the model to be a constant."""
        self._check_new(name)
        if data.flags.writeable:
            data = read_only(data.copy())
        self._constants[name] = data

    def has(self, name: str) -> bool:
        """Return whether a tensor of the model is known."""
        return name in self._constants or name in self._found

    def place(self, name: str) -> tuple[str, Layout]:
        """Return the network's tensor for a tensor of the model that is computed at run time, and its layout."""
        if name not in self._found:
            raise ModelError(f"tensor '{name}' is read before anything writes it")
        return self._found[name]

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor of the model."""
        data = self._constants.get(name)
        return data.shape if data is not None else self.place(name)[1].shape

    def dtype(self, name: str) -> DataType:
        """Return the type with which the network stores a tensor of the model."""
        data = self._constants.get(name)
        return data_type(name, data) if data is not None else self.network.info(self.place(name)[0]).dtype

    def stored_type(self, name: str) -> TensorType | None:
        """Return the stored type of a quantised tensor of the model; None for others."""
        return self._types.get(name)

    def add_types(self, types: Mapping[str, TensorType]) -> None:
        """Declare the stored types of further quantised tensors of the model."""
        self._types.update(types)

    def set(self, name: str, tensor: str, layout: Layout) -> None:
        """Declare where the network has a tensor of the model."""
        self._check_new(name)
        self._found[name] = (tensor, layout)

    def _check_new(self, name: str) -> None:
        if self.has(name):
            raise ModelError(f"tensor '{name}' is written twice")

    def tensor(self, name: str, order: Sequence[int] | None = None, shape: Shape | None = None) -> str:
        """Return a tensor of the network with the elements of a tensor of the model; its axis i is axis order[i].

        `order` is by default that of the model; `shape` is by default that of the model's tensor, which is reshaped
        otherwise. A constant is permuted; of others, a TRANSPOSE is added once, or a RESHAPE if it moves only axes with
        an extent of 1.
        """
        shape = self.shape(name) if shape is None else shape
        order = identity(len(shape)) if order is None else tuple(order)
        data = self._constants.get(name)
        if data is not None:
            return self._constant_tensor(name, data.reshape(shape), order)
        wanted = Layout.ordered(order, shape)
        tensor, layout = self.place(name)
        divided = wanted.reshaped(layout.split)
        if layout.reshaped(shape).is_pending and not divided.is_pending:
            moved = self._copy(f"{name}_split", tensor, layout, divided.order)
            return self.reshaped(moved, wanted.stored, self._wanted(name, order))
        tensor, layout = self.settled(name, shape)
        return self._copy(name, tensor, layout, order)

    def settled(self, name: str, shape: Shape | None = None) -> tuple[str, Layout]:
        """Return a tensor with the elements of one of the model, reshaped to `shape`, and its layout, not pending."""
        tensor, layout = self.place(name)
        new = layout.reshaped(layout.shape if shape is None else shape)
        if new.is_pending:
            tensor = self._copy(f"{name}_split", tensor, layout, identity(len(layout.split)))
            new = Layout.of(new.shape)
        wanted = self._wanted(name, new.order) if new.shape == self.shape(name) else f"{tensor}_reshaped"
        return self.reshaped(tensor, new.stored, wanted), new

    def _wanted(self, name: str, order: tuple[int, ...]) -> str:
        """Return the name of a tensor of the network with an order of the axes of the model's tensor."""
        if order == identity(len(order)):
            return name if name in self.final else f"{name}_{'nchw' if len(order) == 4 else 'in_order'}"
        return f"{name}_{'nhwc' if order == NHWC else 'permuted'}"

    def _copy(self, name: str, tensor: str, layout: Layout, order: tuple[int, ...]) -> str:
        """Return a tensor whose axis i is axis order[i] of `layout.split`, given one with a layout."""
        if layout.order == order:
            return tensor
        permutation = tuple(map(layout.order.index, order))  # a tensor and its transpose differ in their orders
        key = (tensor, permutation, layout.split)
        if key not in self._copies:
            self._copies[key] = self._transposed(tensor, permutation, self._wanted(name, order))
        return self._copies[key]

    def _transposed(self, tensor: str, permutation: tuple[int, ...], wanted: str) -> str:
        old = self.network.info(tensor).shape
        shape = tuple(old[axis] for axis in permutation)
        if moves_nothing(old, permutation):
            return self.reshaped(tensor, shape, wanted)
        runs = _runs(permutation)
        if len(permutation) <= _MAX_AXES:
            return self._apply(TransposeDescriptor(permutation=permutation), tensor, wanted)
        if len(runs) > _MAX_AXES:
            raise UnsupportedError(
                f"the transposition {list(permutation)} of {list(old)} needs {len(runs)} axes, expected {_MAX_AXES}"
            )
        ordered = sorted(runs)
        joined = tuple(elements(tuple(old[axis] for axis in run)) for run in ordered)
        source = self.reshaped(tensor, joined, f"{wanted}_joined")
        descriptor = TransposeDescriptor(permutation=tuple(ordered.index(run) for run in runs))
        return self.reshaped(self._apply(descriptor, source, f"{wanted}_moved"), shape, wanted)

    def reshaped(self, tensor: str, shape: Shape, wanted: str) -> str:
        """Return a tensor of the network with the same elements in the same order, and another shape."""
        if self.network.info(tensor).shape == shape:
            return tensor
        key = (tensor, (), shape)
        if key not in self._copies:
            self._copies[key] = self._apply(ReshapeDescriptor(shape=shape), tensor, wanted)
        return self._copies[key]

    def _constant_tensor(self, name: str, data: Array, order: tuple[int, ...]) -> str:
        stored = self._types.get(name)
        quantization = None if stored is None else permuted(stored.quantization, order)
        return self.variant(name, data.transpose(order), (order, data.shape), quantization)

    def variant(self, name: str, data: Array, key: tuple[object, ...], quantization: Quantization | None = None) -> str:
        """Add other data of a constant once per key, and return its name."""
        if (name, key) not in self._variants:
            self._variants[name, key] = self.array(data, name, quantization)
        return self._variants[name, key]

    def array(self, data: Array, wanted: str, quantization: Quantization | None = None) -> str:
        """Add a constant to the network and return its name."""
        name = self.network.unique_name(wanted or "constant")
        hold(data.nbytes, f"constant '{name}'")
        info = TensorInfo(name, data.shape, data_type(wanted, data), quantization=quantization)
        return self.network.add_constant(info, np.ascontiguousarray(data).reshape(data.shape))

    def add(self, made: Made, wanted: str, stored: TensorType | None = None, layer: str | None = None) -> str:
        """Add a layer with one output and return the name of that; it has the type of the first input by default."""
        return self.add_many(made, [wanted], [stored], layer)[0]

    def _apply(self, descriptor: Descriptor, tensor: str, wanted: str) -> str:
        return self.add(Made(type=type_of(descriptor), descriptor=descriptor, inputs=[tensor]), wanted)

    def infer(self, made: Made) -> Sequence[Shape]:
        """Return the shapes of a layer's outputs."""
        return operator_of(made.type).infer(made.descriptor, self.network.infos(made.inputs))

    def add_many(
        self,
        made: Made,
        wanted: Sequence[str],
        stored: Sequence[TensorType | None] = (),
        layer: str | None = None,
    ) -> tuple[str, ...]:
        """Add a layer and return the names of its outputs, in order; see `add`."""
        sources = list(made.inputs)
        while sources and sources[-1] is None:
            sources.pop()
        tensors = [self.network.tensor(source) for source in sources if source is not None]
        read = sum(tensor.info.elements for tensor in tensors if tensor.is_constant)
        self._checked.spend(Resource.ELEMENTS, read, f"checking the constants up to {made.type}")
        hold(_LAYER_BYTES, f"the network up to {made.type}")
        made = replace(made, inputs=sources)
        shapes = self.infer(made)
        if len(shapes) != len(wanted):
            raise ModelError(f"it has {len(wanted)} outputs, expected {len(shapes)}")
        like = TensorType.of(tensors[0].info) if made.dtype is None else TensorType(dtype=made.dtype)
        kinds = [kind or like for kind in stored or [None] * len(wanted)]
        taken = UniqueNames()
        outputs = [
            kind.described(taken.take(self.network.unique_name(name)), shape)
            for name, shape, kind in zip(wanted, shapes, kinds, strict=True)
        ]
        for info in outputs:
            if info.size_bytes > MAX_TENSOR_BYTES:
                raise UnsupportedError(f"its output has {info.size_bytes} bytes, expected {MAX_TENSOR_BYTES}")
            _refuse_half(info)
        added = Layer(
            self._layer_names.take(layer or outputs[0].name),
            made.type,
            made.descriptor,
            inputs=tuple(sources),
            outputs=tuple(info.name for info in outputs),
            rounding=made.rounding or kinds[0].rounding,
        )
        self.network.add_layer(added, outputs)
        check_kernel(self.network, added)
        return added.outputs

    def add_input(self, name: str, shape: Shape, stored: TensorType) -> None:
        """Add an input of the network."""
        stored = self._types.get(name, stored)
        info = stored.described(name, shape)
        _refuse_half(info)
        self.set(name, self.network.add_input(info), Layout.of(shape))

    def output(self, name: str) -> str:
        """Return the network's tensor for an output of the graph, with the order of axes and the name of the model."""
        tensor = self.tensor(name)
        if tensor != name and not self.network.has_tensor(name):
            tensor = self._apply(ReshapeDescriptor(shape=self.network.info(tensor).shape), tensor, name)
        return tensor


def _refuse_half(info: TensorInfo) -> None:
    """Refuse float16 tensors that are computed at run time, which no C kernel takes; constants may be float16."""
    if info.dtype is DataType.FLOAT16:
        raise UnsupportedError(
            f"tensor '{info.name}' is float16 and computed at run time, expected float32",
            hint="export the model with float32 (PyTorch: model.float()); weights alone may be float16, before Cast",
        )


def permuted(quantization: Quantization | None, order: Sequence[int]) -> Quantization | None:
    """Return the quantisation of a transposed tensor."""
    if quantization is None or not quantization.per_channel:
        return quantization
    return replace(quantization, axis=tuple(order).index(quantization.axis))


def data_type(name: str, data: Array) -> DataType:
    """Return the type of a constant; UnsupportedError if networks do not have it."""
    if str(data.dtype) not in set(DataType):
        raise UnsupportedError(
            f"constant '{name}' is {data.dtype}, expected one of {', '.join(DataType)}",
            hint="export the model in float32" if re.match("float", str(data.dtype)) else None,
        )
    return DataType(str(data.dtype))


def _runs(permutation: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the axes that stay neighbours in a transposition, as runs in the new order."""
    runs: list[list[int]] = []
    for axis in permutation:
        if runs and axis == runs[-1][-1] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return [tuple(run) for run in runs]
