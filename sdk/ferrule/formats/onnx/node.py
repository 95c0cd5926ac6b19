# SPDX-License-Identifier: Apache-2.0
"""The nodes and graphs of a model, independent of the package `onnx`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeVar

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Quantization, Rounding, Shape, TensorInfo

MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own operators."""

MADE_OPSET = 21
"""The opset of the nodes that are made."""

Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array
"""The value of an attribute, except for inner graphs."""
_Value = TypeVar("_Value", int, str)


@frozen
class Node:
    """One operator of a model."""

    index: int
    """The position in the file."""
    name: str = ""
    """Empty if the file has none."""
    op: str
    domain: str = ""
    """"" for the operators of ONNX itself."""
    version: int = MADE_OPSET
    """The opset of the domain."""
    inputs: tuple[str, ...]
    """Names of tensors; "" stands for an absent optional input."""
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    graphs: Mapping[str, GraphRecord] = field(default_factory=dict)
    """The inner graphs, by attribute."""

    @property
    def key(self) -> str:
        """The operator with its domain, unless that is ONNX's own."""
        return f"{self.domain}::{self.op}" if self.domain else self.op

    @property
    def where(self) -> str:
        """The node as a place in messages."""
        name = f" '{self.name}'" if self.name else ""
        result = f" -> tensor '{self.output}'" if self.outputs else ""
        return f"node {self.index}{name} {self.key}{result}"

    @property
    def source(self) -> str:
        """The first input; empty if it is absent."""
        return self.inputs[0] if self.inputs else ""

    @property
    def output(self) -> str:
        """The first output; empty if it is absent."""
        return self.outputs[0] if self.outputs else ""

    def made(self, op: str, inputs: Sequence[str], output: str, **attributes: int) -> Node:
        """Return a node of ONNX's own that is made in this one's place, without absent inputs at its end."""
        names = list(inputs)
        while names and not names[-1]:
            names.pop()
        return Node(
            index=self.index, name=self.name, op=op, inputs=tuple(names), outputs=(output,), attributes=attributes
        )

    def reading(self, inputs: Iterable[str]) -> Node:
        """Return the node with other inputs."""
        return replace(self, inputs=tuple(inputs))

    def renamed(self, names: Mapping[str, str]) -> Node:
        """Return the node with other inputs in place of some."""
        return self.reading(names.get(name, name) for name in self.inputs)

    def has_input(self, position: int) -> bool:
        """Return whether an optional input is present."""
        return position < len(self.inputs) and self.inputs[position] != ""

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute; ModelError if it is absent and has no default, or is no integer."""
        return self._attribute(name, default, int, "an integer")

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether an integer attribute is not 0; raises like `integer`."""
        return self.integer(name, int(default)) != 0

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute as a finite float; raises like `integer`."""
        value = self.attributes.get(name, default)
        if not isinstance(value, float | int) or not math.isfinite(value):
            raise self._wrong(name, "a finite number", value)
        return float(value)

    def text(self, name: str, default: str | None = None) -> str:
        """Return an attribute; raises like `integer`."""
        return self._attribute(name, default, str, "a text")

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return an attribute; raises like `integer`."""
        value = self.attributes.get(name, default)
        if not isinstance(value, tuple | list) or not all(isinstance(each, int) for each in value):
            raise self._wrong(name, "integers", value)
        return tuple(int(each) for each in value)

    def _attribute(self, name: str, default: _Value | None, kind: type[_Value], expected: str) -> _Value:
        value = self.attributes.get(name, default)
        if not isinstance(value, kind):
            raise self._wrong(name, expected, value)
        return value

    def _wrong(self, name: str, expected: str, value: object) -> ModelError:
        found = "absent" if value is None else f"a value of type {type(value).__name__}"
        if isinstance(value, int | float | str):
            found = repr(value)
        return ModelError(f"its attribute '{name}' is {found}, expected {expected}")

    def choice(self, name: str, default: str, known: Sequence[str], hint: str | None = None) -> str:
        """Return a text attribute; UnsupportedError unless it is in `known`."""
        value = self.text(name, default)
        if value not in known:
            raise UnsupportedError(f"its attribute '{name}' is '{value}', expected {' or '.join(known)}", hint=hint)
        return value


@frozen
class ValueRecord:
    """The declared type and shape of a tensor."""

    name: str
    type: int = 0
    """A number of the enum TensorProto.DataType; 0 if the file states none, or if it is no tensor."""
    shape: tuple[int | str, ...] | None = None
    """Unknown extents are texts; None if the rank is unknown."""


@frozen
class GraphRecord:
    """A graph as stored in a file."""

    name: str
    inputs: tuple[ValueRecord, ...] = ()
    outputs: tuple[ValueRecord, ...]
    values: Mapping[str, ValueRecord] = field(default_factory=dict)
    """What the file states about further tensors."""
    constants: Mapping[str, Array]
    """The initialisers."""
    nodes: tuple[Node, ...]
    narrow: frozenset[str] = frozenset()
    """The constants of 2 and 4 bits and of bfloat16, which `constants` and Constant nodes have as wider types."""


@frozen
class TensorType:
    """The element type with which the network stores a tensor, and its quantisation."""

    dtype: DataType
    quantization: Quantization | None = None
    rounding: Rounding = Rounding.TFLM
    """The rule of the layer that makes the tensor."""

    @classmethod
    def of(cls, info: TensorInfo) -> TensorType:
        """Return the type of a tensor of a network."""
        return cls(dtype=info.dtype, quantization=info.quantization)

    def described(self, name: str, shape: Shape) -> TensorInfo:
        """Return a tensor of this type."""
        return TensorInfo(name, shape, self.dtype, quantization=self.quantization)


def elements(shape: Shape) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)


def single_readers(record: GraphRecord, nodes: Sequence[Node]) -> dict[str, Node]:
    """Return the only node that reads a tensor, by tensor; outputs of the graph are read by the caller, too."""
    readers: dict[str, list[Node]] = {}
    for node in nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
        for graph in node.graphs.values():
            for name in outer_names(graph):
                readers.setdefault(name, []).extend((node, node))
    kept = {value.name for value in record.outputs}
    return {name: found[0] for name, found in readers.items() if len(found) == 1 and name not in kept}


def outer_names(graph: GraphRecord) -> set[str]:
    """Return all names that a graph and its inner graphs read."""
    names = {name for node in graph.nodes for name in node.inputs} | {value.name for value in graph.outputs}
    for node in graph.nodes:
        for inner in node.graphs.values():
            names |= outer_names(inner)
    return names


def clip_bounds(inputs: Sequence[str], constant: Callable[[str], Array | None]) -> tuple[float, float] | None:
    """Return the limits of a Clip, given the data of constants by name; None if they are not constant numbers."""
    found = [-math.inf, math.inf]
    for index, name in enumerate(inputs[1:3]):
        if name:
            data = constant(name)
            if data is None or data.size != 1 or np.isnan(data).any():
                return None
            found[index] = float(data.item())
    low, high = found
    return low, high
