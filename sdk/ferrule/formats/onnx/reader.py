# SPDX-License-Identifier: Apache-2.0
"""Reads the bytes of an ONNX file into a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, ModelError, UnsupportedError, place, together
from ferrule.formats.limits import MAX_RANK, MAX_TENSOR_BYTES
from ferrule.formats.onnx import dynamic
from ferrule.formats.onnx.affine import with_affine_folded
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.control import chosen, with_constants
from ferrule.formats.onnx.dynamic import without_dynamic
from ferrule.formats.onnx.emission import Emission
from ferrule.formats.onnx.extents import Shapes, notes, with_shapes
from ferrule.formats.onnx.folding import FOLDS, Folding, shape_of
from ferrule.formats.onnx.legacy import READ_AS, modern, old_nodes
from ferrule.formats.onnx.node import (
    GraphRecord,
    Node,
    TensorType,
    ValueRecord,
    elements,
    outer_names,
)
from ferrule.formats.onnx.normalise import Normalised, computed, normalised
from ferrule.formats.onnx.operators import OPERATORS
from ferrule.formats.onnx.order import early_nodes, in_order
from ferrule.formats.onnx.parse import TYPES, parse, type_name
from ferrule.formats.onnx.qlinear import EXPANSIONS
from ferrule.formats.onnx.quantised import Arithmetic, quantised
from ferrule.formats.onnx.refusals import unsupported
from ferrule.formats.onnx.shares import without_long_shares
from ferrule.formats.onnx.wide import without_wide
from ferrule.graph import Rounding, Shape
from ferrule.interface import either
from ferrule.network import Network
from ferrule.operators.control_flow import DEFAULT_ITERATIONS

_FIXED = "export the model with inputs of fixed shapes, or give the shape of each input that is left open: " + either(
    "--shape NAME=1,3,32,32", 'shapes={"NAME": (1, 3, 32, 32)}'
)
_CONTRADICTION = (
    "the file contradicts itself: infer its shapes anew (onnx.shape_inference.infer_shapes); or a first extent that is "
    "unknown, which is read as 1, stands for another number: fix the inputs' shapes"
)


def read_onnx(
    data: bytes,
    name: str,
    folder: Path | None = None,
    max_iterations: int = DEFAULT_ITERATIONS,
    arithmetic: Arithmetic = Arithmetic.OPTIMISED,
    shapes: Shapes | None = None,
) -> Network:
    """Return the network of an ONNX model.

    The names of tensors are kept. Inputs and outputs have the model's order of axes; images have their channels last
    inside. A first extent that is unknown is read as 1. A network that is returned is valid (`Network.validate`).
    `folder` is that of the file, in which further files may have data. `max_iterations` is the limit of each loop.
    `arithmetic` is that of operators between conversions. `shapes` has the extents of inputs that the file leaves open.

    Raises:
        FerruleError: the shapes do not fit the inputs.
        ModelError: the file is malformed; the message names the place.
        UnsupportedError: the model uses features that networks do not support; the message names every node that is
            refused, and the reason.
        MissingToolError: the package `onnx` is not installed.
    """
    options = _Options(folding=Folding(), max_iterations=max_iterations, arithmetic=arithmetic)
    record = parse(data, folder)
    shaped = with_shapes(record, shapes or {})
    network = with_affine_folded(_Reader(in_order(modern(shaped)), name, options).network())
    network.notes = (*notes(record, shaped), *_notes(record))
    return network


def _notes(record: GraphRecord) -> Iterator[str]:
    """Yield what the reader made of a file's nodes that the layers do not show."""
    early = early_nodes(record)
    if early:
        yield f"{early} of {len(record.nodes)} nodes stand before one whose result they read: read in another order"
    yield from dynamic.notes(record)
    old = old_nodes(record)
    if old:
        version = max(node.version for node in record.nodes if not node.domain)
        found = ", ".join(f"{count} {op}" for op, count in sorted(old.items()))
        yield f"opset {version}: {found} of a form older than that of opset {READ_AS}, read with its old meaning"


@frozen
class _Options:
    """How the graphs of a file are read."""

    folding: Folding
    max_iterations: int
    arithmetic: Arithmetic


class _Reader:
    """The state while one graph is read."""

    def __init__(self, record: GraphRecord, name: str, options: _Options) -> None:
        self._record = record
        self._options = options
        graph = _prepared(record, options)
        self._nodes = graph.nodes
        self._same = graph.same
        self._emission = Emission(name, graph.constants, graph.types)
        self._emission.final = frozenset(value.name for value in record.outputs)
        self._lost: set[str] = set()
        """Outputs of refused nodes that have no known description; nodes that read them are not checked."""

    def network(self) -> Network:
        """Return the graph as a network."""
        problems: list[FerruleError] = []
        for value in self._record.inputs:
            try:
                self._add_input(value)
            except FerruleError as error:
                problems.append(error)
                self._lost.add(value.name)
        for node in self._nodes:
            read = {*node.inputs}.union(*map(outer_names, node.graphs.values()))
            if self._lost.intersection(read) and (node.key in OPERATORS or node.key in FOLDS):
                self._lost.update(node.outputs)
                continue
            try:
                with place(node.where, node.key):
                    self._add(node)
            except FerruleError as error:
                problems.append(error)
                self._stand_in(node)
        if not problems:
            problems = self._contradictions(self._record, self._same)
        if problems:
            raise together(problems, "nodes")
        return self._finished()

    def _contradictions(self, record: GraphRecord, same: Mapping[str, str]) -> list[FerruleError]:
        """Return an error for each tensor of a graph that has another shape than the file states."""
        emission, problems = self._emission, list[FerruleError]()
        makers = {name: node for node in record.nodes for name in node.outputs}
        for value in record.values.values():
            name = value.name
            while not emission.has(name) and name in same:
                name = same[name]
            if value.shape is None or not emission.has(name) or value.name in self._lost:
                continue
            shape, maker = emission.shape(name), makers.get(value.name)
            if len(shape) == len(value.shape) and all(
                isinstance(given, str) or given == extent for given, extent in zip(value.shape, shape, strict=True)
            ):
                continue
            stated = ", ".join(map(str, value.shape))
            error = ModelError(f"its shape is {list(shape)}, and the file states [{stated}]", hint=_CONTRADICTION)
            if maker is None or value.name != maker.output:
                error.at(f"tensor '{value.name}'")
            if maker is not None:
                error.at(maker.where, maker.key)
            problems.append(error)
        return problems

    def _finished(self) -> Network:
        if not self._record.outputs:
            raise ModelError("graph outputs: there is none, expected at least one")
        with place("graph outputs"):
            names = [self._emission.output(value.name) for value in self._record.outputs]
        network = self._emission.network
        network.set_outputs(names)
        return network

    def _add_input(self, value: ValueRecord) -> None:
        if self._emission.has(value.name):  # an initialiser, whose value a caller could replace
            return
        with place(f"graph input '{value.name}'"):
            described = _described(value)
            if described is None:
                raise UnsupportedError("its type or its number of axes is not known", hint=_FIXED)
            shape, stored = described
            self._emission.add_input(value.name, shape, stored)

    def _add(self, node: Node) -> None:
        if self._computed(node):
            return
        row = OPERATORS.get(node.key)
        if row is None and node.key in FOLDS:
            raise UnsupportedError("its inputs are computed at run time, expected constants and shapes", hint=_FIXED)
        if row is None:
            raise unsupported(node)
        row.check(node)
        condition = self._emission.constant(node.source) if node.key == "If" else None
        if condition is not None:
            self._inline(node, with_constants(self._emission, chosen(node, condition)))
            return
        call = Call(node, self._emission, self._inner, self._options.max_iterations)
        if (result := row.emit(call)) is not None:
            call.finish(result)

    def _inner(self, record: GraphRecord) -> Network:
        return _Reader(record, record.name, self._options).network()

    def _inline(self, node: Node, record: GraphRecord) -> None:
        """Add the layers of a graph in place of a node that always runs it."""
        graph, emission = _prepared(record, self._options), self._emission
        for name, data in graph.constants.items():
            if not emission.has(name):
                emission.add_constant(name, data)
        emission.add_types(graph.types)
        for each in graph.nodes:
            with place(each.where, each.key):
                self._add(each)
        problems = self._contradictions(record, graph.same)
        if problems:
            raise together(problems, "nodes")
        for name, value in zip(node.outputs, record.outputs, strict=True):
            constant = emission.constant(value.name)
            if name and constant is not None:
                emission.add_constant(name, constant)
            elif name:
                emission.set(name, *emission.place(value.name))

    def _computed(self, node: Node) -> bool:
        """Compute a node that depends on constants and shapes only, and return whether it is one."""
        emission = self._emission
        if node.key in {"Shape", "Size"} and len(node.inputs) == len(node.outputs) == 1:
            shape = emission.shape(node.source)
            size = np.array(elements(shape), np.int64)
            emission.add_constant(node.output, shape_of(node, shape) if node.op == "Shape" else size)
            return True
        types = [emission.stored_type(name) for name in node.outputs]
        if any(stored is not None and stored.rounding is not Rounding.TFLM for stored in types):
            return False
        results = computed(node, emission.constant, self._options.folding)
        for name, result in zip(node.outputs, results or (), strict=False):
            emission.add_constant(name, result)
        return results is not None

    def _stand_in(self, node: Node) -> None:
        """Make the outputs of a refused node readable, so that the nodes behind it are checked, too."""
        for name in node.outputs:
            value = self._record.values.get(name, ValueRecord(name=name))
            try:
                described = _described(value)
                if described is None or self._emission.has(name):
                    self._lost.add(name)
                else:
                    self._emission.add_input(name, *described)
            except FerruleError:
                self._lost.add(name)


def _prepared(record: GraphRecord, options: _Options) -> Normalised:
    """Return the nodes that become layers.

    If they cannot be prepared, the error names the nodes whose operator is not supported, too.
    """
    wrong = _problems(
        record, lambda node: OPERATORS[node.key].check(node, given=True) if node.key in OPERATORS else None
    )
    try:
        if wrong:
            raise together(wrong, "nodes")
        graph = without_long_shares(record, normalised(record, options.folding))
        graph = without_dynamic(record, without_wide(record, graph))
        return quantised(record, graph, options.folding, options.arithmetic)
    except FerruleError as error:
        others = _problems(record, _check_known)
        raise together([error, *others], "nodes") from None


def _problems(record: GraphRecord, check: Callable[[Node], None]) -> list[FerruleError]:
    """Return the errors of a check of each node of a graph."""
    problems: list[FerruleError] = []
    for node in record.nodes:
        try:
            with place(node.where, node.key):
                check(node)
        except FerruleError as error:
            problems.append(error)
    return problems


def _check_known(node: Node) -> None:
    if not any(node.key in known for known in (OPERATORS, FOLDS, EXPANSIONS, {"Constant"})):
        raise unsupported(node)


def _described(value: ValueRecord) -> tuple[Shape, TensorType] | None:
    """Return the shape and type of a tensor, with 1 for an unknown first extent; None if the file does not state both.

    Raises:
        UnsupportedError: networks do not have the type, or another extent is unknown.
    """
    if value.type == 0 or value.shape is None:
        return None
    dtype = TYPES.get(value.type)
    if dtype is None:
        raise UnsupportedError(
            f"it is {type_name(value.type)}, expected one of {', '.join(TYPES.values())}",
            hint="export the model in float32",
        )
    for axis, extent in enumerate(value.shape):
        if axis and isinstance(extent, str):
            raise UnsupportedError(f"the extent of its axis {axis} is '{extent}', expected a number", hint=_FIXED)
        if extent == 0:
            raise UnsupportedError(f"the extent of its axis {axis} is 0: no tensor of a network is empty", hint=_FIXED)
    info = tuple(1 if isinstance(extent, str) else extent for extent in value.shape)
    if len(info) > MAX_RANK:
        raise UnsupportedError(f"its shape is {list(info)}, expected at most {MAX_RANK} axes")
    size = dtype.size_bytes * elements(info)
    if size > MAX_TENSOR_BYTES:
        raise UnsupportedError(f"it has {size} bytes, expected at most {MAX_TENSOR_BYTES}")
    return info, TensorType(dtype=dtype)
