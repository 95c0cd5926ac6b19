# SPDX-License-Identifier: Apache-2.0
"""Lowered layers and chains run natively without generated text: the compiled kernels and the compiled order of bands.

The function of a chain is interpreted statement by statement, so that thousands of chains need no compiler. Tensors,
line buffers and scratch start as a pattern and lie between guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ckernels import Guarded
from host_library import library

from ferrule.backends.cpu_acc.backend import CpuAcc, CpuAccTarget
from ferrule.backends.cpu_acc.streaming.selection import substitution
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.optimization_views import OptimizationViews
from ferrule.backends.target import CoreFeatures, Face, default_target
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
    ArrayType,
    Binary,
    Boolean,
    Call,
    Cast,
    Comment,
    Const,
    Declare,
    Dereference,
    Evaluate,
    Expression,
    Float,
    Function,
    Identifier,
    If,
    Index,
    Integer,
    Member,
    Null,
    Statement,
    StructType,
    Variable,
    While,
)
from ferrule.graph import Array, DataType, Graph, Layer, Quantization, SubgraphView, TensorInfo
from ferrule.network import Network
from ferrule.network.weighted_layers import PaddingArgument
from ferrule.operators.activation import Activation
from ferrule.optimizer.substitution import Answer, apply_answers

_WEIGHTS = Quantization.of(0.02)
LAYOUTS = ("apart", "output", "lines")
"""Whether the output or the line buffers of a chain overlap its input, as far as the chain states."""


@dataclass
class Sketch:
    """A network under construction with random weights."""

    network: Network
    random: np.random.Generator

    @classmethod
    def of(cls, seed: int, *shape: int) -> Sketch:
        network = Network(f"sketch_{seed}")
        info = TensorInfo("x", (1, *shape), DataType.INT8, quantization=Quantization.of(0.05, 3))
        network.add_input(info)
        return cls(network, np.random.default_rng(seed))

    def quantization(self) -> Quantization:
        return Quantization.of(float(self.random.uniform(0.1, 0.3)), int(self.random.integers(-128, 20)))

    def conv(
        self,
        source: str,
        channels: int,
        kernel: tuple[int, int] = (3, 3),
        strides: tuple[int, int] = (1, 1),
        padding: PaddingArgument = "same",
        dilations: tuple[int, int] = (1, 1),
    ) -> str:
        inside = self.network.info(source).shape[3]
        return self.network.add_conv2d_layer(
            source,
            self.random.integers(-127, 128, (channels, *kernel, inside), dtype=np.int8),
            self.random.integers(-900, 900, channels, dtype=np.int32),
            strides=strides,
            dilations=dilations,
            padding=padding,
            activation=Activation.RELU,
            weights_quantization=_WEIGHTS,
            quantization=self.quantization(),
        )

    def depthwise(
        self,
        source: str,
        strides: tuple[int, int] = (1, 1),
        kernel: tuple[int, int] = (3, 3),
        padding: PaddingArgument = "same",
        dilations: tuple[int, int] = (1, 1),
    ) -> str:
        channels = self.network.info(source).shape[3]
        return self.network.add_depthwise_conv2d_layer(
            source,
            self.random.integers(-127, 128, (1, *kernel, channels), dtype=np.int8),
            self.random.integers(-900, 900, channels, dtype=np.int32),
            strides=strides,
            dilations=dilations,
            padding=padding,
            weights_quantization=_WEIGHTS,
            quantization=self.quantization(),
        )

    def add(self, left: str, right: str) -> str:
        return self.network.add_add_layer(left, right, quantization=self.quantization())

    def finish(self, output: str) -> Network:
        self.network.set_outputs([output])
        return self.network


def chained(network: Network, layers: Sequence[Layer], rows: int, *, fed: bool = False) -> Graph:
    """Return the network with some layers as a chain."""
    view = SubgraphView.of(network, [layer.name for layer in layers])
    views = OptimizationViews(substitutions=(substitution(view, rows, fed=fed),))
    return apply_answers(network, [Answer(backend=CpuAcc.id, subgraph=view, views=views)]).graph


class Program:
    """A graph of one layer, lowered for a core, whose C runs in memory of its own."""

    def __init__(self, graph: Graph, core: CoreFeatures) -> None:
        (layer,) = graph.layers
        self.graph = graph
        names = (graph.inputs[0].name, *layer.outputs)
        self.op: LoweredOp = CpuAccTarget().lower(
            LoweringContext(
                graph=graph,
                layer=layer,
                target=replace(default_target(CpuAcc.id, Face.FIRMWARE), core=core),
                prefix="case",
                pointers={name: Identifier(f"tensor_{name}") for name in names},
            )
        )
        self._names = names
        self._ffi, self._functions = library().ffi, library().functions
        self._symbols: dict[str, Any] = {}
        self._bodies: dict[str, tuple[Statement, ...]] = {}
        self._keep: list[Array] = []
        for blob in self.op.blobs:
            data = np.ascontiguousarray(blob.data)
            self._keep.append(data)
            self._symbols[blob.name] = self._pointer(data.ctypes.data)
        for declaration in self.op.declarations:
            self._declare(declaration)

    def run(self, image: Array) -> Array:
        """Return the output of a layer that is no chain."""
        tensors = self._memories(image)
        for statement in self.op.statements:
            self._execute(statement)
        return self._output(tensors[self._names[1]])

    def run_chain(self, image: Array, layout: str = "apart") -> Array:
        """Return the output of a chain whose input is resident."""
        tensors = self._memories(image)
        if layout != "apart":
            self._overlap(image, tensors, self._names[1 + LAYOUTS[1:].index(layout)])
        stream = self._attached(resident=True)
        self._functions.ferrule_stream_begin(stream, image.shape[1])
        self._bands(stream)
        return self._output(tensors[self._names[1]])

    def run_rows(self, image: Array) -> Array:
        """Return the output of a chain that gets the rows of its input one by one."""
        tensors = self._memories(image)
        stream = self._attached(resident=False)
        pointer, count = self._ffi.new("const int8_t *[1]"), self._ffi.new("uint32_t *")
        for number in range(image.shape[1]):
            row = image[:, number].copy()
            pointer[0], count[0] = self._ffi.cast("const int8_t *", row.ctypes.data), 1
            assert self._functions.ferrule_stream_expect(stream, number, 1) == 0
            while self._functions.ferrule_stream_feed(stream, pointer, count):
                self._bands(stream)
            row.fill(99)
        assert self._functions.ferrule_stream_end(stream) == 0
        return self._output(tensors[self._names[1]])

    def _pointer(self, address: int) -> Any:  # noqa: ANN401 - cffi's is untyped
        return self._ffi.cast("void *", address)

    def _memories(self, image: Array) -> dict[str, Guarded]:
        tensors = {name: Guarded(self.graph.info(name).size_bytes) for name in self._names}
        tensors["scratch"] = Guarded(self.op.scratch_bytes)
        tensors[self._names[0]].write(image)
        for name, memory in tensors.items():
            self._symbols[name if name == "scratch" else f"tensor_{name}"] = self._pointer(memory.address)
        self._tensors, self._image = tensors, image
        return tensors

    def _overlap(self, image: Array, tensors: dict[str, Guarded], name: str) -> None:
        """Put a tensor and the input into the same memory, as close as the chain allows."""
        (distance,) = (each.distance_bytes for each in self.op.overlaps if each.output == name)
        assert distance is not None
        low = min(distance, 0)
        both = Guarded(max(distance + image.nbytes, self.graph.info(name).size_bytes) - low)
        both.write(image, distance - low)
        self._symbols[f"tensor_{self._names[0]}"] = self._pointer(both.address + distance - low)
        self._symbols[f"tensor_{name}"] = self._pointer(both.address - low)
        del tensors[self._names[0]]
        tensors[name] = both
        self._shift = -low

    def _output(self, memory: Guarded) -> Array:
        """Return the output, after a check of all guards."""
        info, shift = self.graph.info(self._names[1]), 0
        for each in self._tensors.values():
            each.content()
        if self._names[0] in self._tensors:
            assert self._tensors[self._names[0]].content() == self._image.tobytes(), "the input was overwritten"
        elif memory.size_bytes > info.size_bytes:
            shift = self._shift
        return np.frombuffer(memory.content(), info.dtype.numpy, info.elements, shift).reshape(info.shape)

    def _attached(self, *, resident: bool) -> Any:  # noqa: ANN401 - cffi's is untyped
        stream = self._ffi.new("struct ferrule_stream *")
        self._symbols |= {"stream": stream, "step": self._ffi.new("struct ferrule_stream_step *")}
        source, output, lines = (self._symbols[f"tensor_{name}"] for name in self._names)
        chain = self._symbols["case_chain"]
        self._functions.ferrule_stream_attach(
            stream, chain, source if resident else self._ffi.NULL, lines, output, self._symbols["scratch"]
        )
        return stream

    def _bands(self, stream: object) -> None:
        assert self._symbols["stream"] is stream
        for statement in self._bodies["case_bands"]:
            self._execute(statement)

    def _declare(self, declaration: object) -> None:
        match declaration:
            case Variable(name=name, type=Const(StructType(tag)), value=Aggregate() as value):
                self._symbols[name] = self._ffi.new(f"struct {tag} *", self._value(value))
            case Variable(name=name, type=ArrayType(Const(StructType(tag))), value=Aggregate() as value):
                self._symbols[name] = self._ffi.new(f"struct {tag}[]", self._value(value))
            case Function(name=name, body=body) if body is not None:
                self._bodies[name] = body.statements
            case _:
                raise AssertionError(f"unknown declaration {declaration}")

    def _execute(self, statement: Statement) -> None:
        match statement:
            case Evaluate(expression):
                self._value(expression)
            case If(condition, then, None):
                if self._value(condition):
                    for each in then.statements:
                        self._execute(each)
            case While(condition, body):
                while self._value(condition):
                    for each in body.statements:
                        self._execute(each)
            case Comment() | Declare(value=None):
                pass
            case _:
                raise AssertionError(f"unknown statement {statement}")

    def _value(self, node: Expression) -> Any:  # noqa: ANN401 - cffi's is untyped
        match node:
            case Integer(value) | Float(value) | Boolean(value):
                return value
            case Null():
                return self._ffi.NULL
            case Identifier(name):
                return self._symbols[name] if name in self._symbols else getattr(self._functions, name)
            case ArrayData(values):
                return np.ravel(values).tolist()
            case Aggregate(fields):
                if all(field.name is None for field in fields):
                    return [self._value(field.value) for field in fields]
                return {str(field.name): self._value(field.value) for field in fields}
            case AddressOf(Index(array, index)):
                return self._value(array) + self._value(index)
            case AddressOf(operand) | Dereference(operand) | Cast(operand=operand):  # structs are pointers here
                return self._value(operand)
            case _:
                return self._computed(node)

    def _computed(self, node: Expression) -> Any:  # noqa: ANN401 - cffi's is untyped
        match node:
            case Member(object_, name):
                return getattr(self._value(object_), name)
            case Index(array, index):
                return self._value(array)[self._value(index)]
            case Binary(_, left, right):  # only == is used
                return self._value(left) == self._value(right)
            case Call(Identifier(name), arguments):
                function: Callable[..., Any] = getattr(self._functions, name)
                return function(*map(self._value, arguments))
            case _:
                raise AssertionError(f"unknown expression {node}")


def results(network: Network, image: Array, rows: int, core: CoreFeatures) -> Iterator[tuple[str, Array]]:
    """Yield the output of all layers as a chain, in each way in which its input and its memory can be given."""
    resident = Program(chained(network, network.layers, rows), core)
    for layout in LAYOUTS:
        yield layout, resident.run_chain(image, layout)
    yield "rows", Program(chained(network, network.layers, rows, fed=True), core).run_rows(image)
