# SPDX-License-Identifier: Apache-2.0
"""The tensors of a quantised graph while its nodes are rewritten: which integers stand for which real numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen, positional
from ferrule.errors import UnsupportedError, place
from ferrule.formats.onnx.encoding import EIGHT_BITS, QUANTIZE, Encoding, encoding_of
from ferrule.formats.onnx.folding import Folding
from ferrule.formats.onnx.node import GraphRecord, Node, TensorType, clip_bounds, single_readers
from ferrule.graph import Array, Rounding
from ferrule.graph.names import UniqueNames
from ferrule.graph.tensor import read_only


@positional
class Held:
    """Integers that stand for real numbers."""

    name: str
    """The tensor of the network; of constants, that of the model."""
    encoding: Encoding
    data: Array | None = None
    """The integers of the model, if they are constants."""


@frozen
class Target:
    """The QuantizeLinear behind an operator, with the clamps before and behind it."""

    output: str
    encoding: Encoding
    low: int
    high: int
    """The limits of the results, values of the model."""
    absorbed: frozenset[str]
    """The outputs of the nodes that make up the target."""

    @property
    def is_clamped(self) -> bool:
        """Whether the limits are narrower than those of the type."""
        return (self.low, self.high) != self.encoding.limits


class Integers:
    """The rewritten nodes so far, and what is known about their tensors."""

    def __init__(
        self,
        record: GraphRecord,
        nodes: Sequence[Node],
        constants: dict[str, Array],
        folding: Folding,
        fused: Mapping[str, str],
    ) -> None:
        self.constants = constants
        self.folding = folding
        self.given = nodes
        self.record = record
        self.fused = fused
        """The types of integers of operators that are fused with the conversions round them, by output."""
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {}
        self.reals: dict[str, Held] = {}
        """Tensors of real numbers of which the integers are known."""
        self.stored: dict[str, Held] = {}
        """Tensors of integers of the model, by name in the model."""
        self.absorbed: set[str] = set()
        """Outputs of nodes that another node takes over."""
        self.same: dict[str, str] = {}
        """Tensors that no node writes any more, and others of the same shape."""
        self.single = single_readers(record, nodes)
        self.final = {value.name for value in record.outputs}
        self._names = names_of(record, nodes, constants)
        self._encodings: dict[tuple[object, ...], Encoding] = {}
        self._made: set[str] = set()
        """Those of `reals` that also exist as float32."""
        self._copies: dict[tuple[str, Encoding], str] = {}
        """Conversions and constants, by tensor and encoding."""

    def add(self, op: str, inputs: Sequence[str], output: str, type_: TensorType | None = None) -> None:
        """Add a node that no node of the model is, and declare the stored type of its output."""
        if type_ is not None:
            self.types[output] = type_
        self.nodes.append(Node(index=len(self.nodes), op=op, inputs=tuple(inputs), outputs=(output,)))

    def new(self, wanted: str) -> str:
        """Return a name that no tensor has."""
        return self._names.take(wanted)

    def encoding(self, node: Node, data_type: str | None, shape: tuple[int, ...] = ()) -> Encoding:
        """Return the encoding that a conversion states; see `encoding_of`."""
        attributes = (node.attributes.get(name) for name in ("axis", "block_size", "output_dtype"))
        key = (node.inputs[1:], data_type, shape, *attributes)
        if key not in self._encodings:
            found = encoding_of(node, self.constants, data_type, shape)
            self.folding.spend((len(found.scales),))
            self._encodings[key] = found
        return self._encodings[key]

    def quantised_data(self, data: Array, encoding: Encoding) -> Array:
        """Return the integers of the model for a constant."""
        self.folding.spend(data.shape)
        return encoding.quantised(data)

    def _dequantised(self, held: Held) -> Array:
        assert held.data is not None
        self.folding.spend(held.data.shape)
        return held.encoding.dequantised(held.data)

    def hold_given(self, name: str, encoding: Encoding) -> Held:
        """Declare integers that another node or the caller makes, and return them; uint8 is converted."""
        expect_bytes(encoding)
        self.types[name] = encoding.unsigned()
        stored = name
        if encoding.offset:
            stored = self.new(f"{name}_int8")
            self.add("QuantizeLinear", (name,), stored, encoding.stored())
        self.stored[name] = Held(stored, encoding)
        return self.stored[name]

    def real(self, name: str) -> str:
        """Return a tensor of real numbers as float32, which is made of integers if it is not there yet."""
        held = self.reals.get(name)
        if held is None or name in self._made:
            return name
        self._made.add(name)
        if held.data is None:
            self.add("DequantizeLinear", (held.name,), name)
        else:
            self.constants[name] = read_only(self._dequantised(held))
        return name

    def numbers(self, name: str) -> Array | None:
        """Return the data of a constant, as real numbers if it was quantised; None if it is computed at run time."""
        held = self.reals.get(name)
        if held is not None:
            return None if held.data is None else self._dequantised(held)
        return self.constants.get(name)

    # conversions

    def constant(self, name: str, data: Array, encoding: Encoding) -> str:
        """Return a constant of the network with integers of the model; `name` and encoding identify them."""
        key = (f"constant {name}", encoding)
        if key not in self._copies:
            same = self.constants.get(name) is data and not encoding.offset and name not in self.types
            made = name if same else self.new(f"{name}_{'int32' if encoding.type == 'int32' else 'int8'}")
            self.constants[made] = read_only(np.array(encoding.stored_data(data)))
            self.types[made] = encoding.stored()
            self._copies[key] = made
        return self._copies[key]

    def integers(self, held: Held) -> str:
        """Return the tensor of the network with the integers of a tensor."""
        return held.name if held.data is None else self.constant(held.name, held.data, held.encoding)

    def converted(self, name: str, encoding: Encoding) -> str:
        """Return the integers for a tensor of real numbers in an encoding, as QuantizeLinear makes them."""
        held, numbers = self.reals.get(name), self.numbers(name)
        if held is not None and held.encoding == encoding:
            return self.integers(held)
        if numbers is not None:
            return self.constant(name, self.quantised_data(numbers, encoding), encoding)
        source = name if held is None else held.name
        key = (source, encoding)
        if key not in self._copies:
            made = self.new(f"{name}_requantised")
            self.add("QuantizeLinear", (source,), made, encoding.stored(Rounding.ONNX))
            self._copies[key] = made
        return self._copies[key]

    # the end of a group

    def target(self, name: str, low: float = -math.inf, high: float = math.inf) -> Target | None:
        """Return the QuantizeLinear behind a tensor of real numbers, with limits, if nothing else reads the tensor."""
        behind: list[str] = []
        reader = self.single.get(name)
        while reader is not None and reader.key in {"Relu", "Clip"} and reader.source == name:
            bounds = self.bounds(reader)
            if bounds is None:
                return None
            low, high = min(max(low, bounds[0]), bounds[1]), min(max(high, bounds[0]), bounds[1])
            name = reader.output
            behind.append(name)
            reader = self.single.get(name)
        if reader is None or reader.key not in QUANTIZE or reader.source != name or reader.output in self.stored:
            return None
        with place(reader.where, reader.key):
            encoding = self.encoding(reader, None)
        return self.quantised(reader, encoding, (low, high), behind) if encoding.is_byte else None

    def quantised(
        self,
        node: Node,
        encoding: Encoding,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        behind: Sequence[str] = (),
    ) -> Target:
        """Return a QuantizeLinear as target, with the limits before it, and a Clip of integers behind it."""
        low, high = encoding.quantised(np.array(bounds, np.float32)).tolist()
        names = [*behind, node.output]
        reader = self.single.get(names[-1])
        if reader is not None and reader.key == "Clip" and reader.source == names[-1]:
            clip = self.bounds(reader)
            if clip is not None:
                low, high = encoding.within(clip, (low, high))
                names.append(reader.output)
        return Target(output=names[-1], encoding=encoding, low=low, high=high, absorbed=frozenset(names))

    def bounds(self, node: Node) -> tuple[float, float] | None:
        """Return the limits of a Relu or Clip; None if they are not constant numbers."""
        if node.key == "Relu":
            return 0.0, math.inf
        return clip_bounds(node.inputs, self.numbers)

    def name(self, target: Target, rounding: Rounding = Rounding.TFLM) -> str:
        """Return a tensor for the results of an operator before the clamp of its target, with its type declared."""
        name = self.new(f"{target.output}_unclamped") if target.is_clamped else self._last(target)
        self.types[name] = target.encoding.stored(rounding)
        return name

    def _last(self, target: Target) -> str:
        is_output = target.output in self.final and target.encoding.offset != 0
        return self.new(f"{target.output}_int8") if is_output else target.output

    def finish(self, target: Target, stored: str) -> None:
        """Add the clamp of a target behind its integers, and the conversion to uint8 of an output of the graph."""
        encoding, output = target.encoding, target.output
        self.absorbed |= target.absorbed
        stored = self.clamped(stored, target)
        self.same.update(dict.fromkeys(target.absorbed, stored))
        if output in self.final and stored != output:
            self.add("QuantizeLinear" if encoding.offset else "Identity", (stored,), output, encoding.unsigned())
        self.stored[output] = Held(stored, encoding)

    def add_for(self, target: Target, node: Node, rounding: Rounding = Rounding.TFLM) -> str:
        """Add a node whose results go to a target, and return them before its clamp."""
        stored = self.name(target, rounding)
        self.nodes.append(replace(node, outputs=(stored,)))
        self.finish(target, stored)
        return stored

    def clamped(self, stored: str, target: Target) -> str:
        """Return integers clamped to the limits of a target."""
        encoding = target.encoding
        (low, high), zero = encoding.limits, encoding.zero_points[0]
        steps = [("Relu", 0)] * (target.low == zero > low) + [("Max", target.low)] * (target.low not in {low, zero})
        steps += [("Min", target.high)] * (target.high < high)
        for index, (op, limit) in enumerate(steps):
            output = self._last(target) if index == len(steps) - 1 else self.new(f"{target.output}_{op.lower()}")
            others = []
            if op != "Relu":
                others.append(self.constant(f"limit_{limit}", np.array(limit, encoding.type), encoding))
            self.add(op, (stored, *others), output, encoding.stored())
            stored = output
        return stored


def names_of(record: GraphRecord, nodes: Sequence[Node], constants: Iterable[str]) -> UniqueNames:
    """Return the names of the tensors of a graph."""
    names = UniqueNames(constants)
    for name in (*(name for node in nodes for name in node.outputs), *(value.name for value in record.inputs)):
        names.add(name)
    return names


def expect_bytes(encoding: Encoding) -> None:
    """Refuse a tensor that is computed at run time unless it is int8 or uint8 with one scale."""
    if not encoding.is_byte:
        what = "scales per channel" if encoding.per_channel else f"the type {encoding.type}"
        raise UnsupportedError(
            f"it converts a tensor that is computed at run time, with {what}, expected int8 or uint8 with one scale",
            hint=EIGHT_BITS,
        )
