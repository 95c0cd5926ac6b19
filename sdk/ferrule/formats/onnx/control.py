# SPDX-License-Identifier: Apache-2.0
"""Rows of If and Loop, whose graphs become those of IF and WHILE.

A value of the graph outside that an inner graph reads becomes a further input of the layer; a constant is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import ModelError, UnsupportedError, place
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.emission import Emission
from ferrule.formats.onnx.node import GraphRecord, Node, TensorType, ValueRecord, outer_names
from ferrule.formats.onnx.parse import TYPES
from ferrule.formats.onnx.rows import MANY, Row
from ferrule.graph import Array, DataType, Descriptor, Graph
from ferrule.graph.names import UniqueNames
from ferrule.operators.control_flow import MOST_ITERATIONS, IfDescriptor, WhileDescriptor

_NUMBERS = {dtype: number for number, dtype in TYPES.items()}
_WITHOUT_SCANS = (
    "write the results into a tensor that the loop carries, with Where or Pad; or unroll the loop when the model is "
    "exported"
)


def branch(node: Node, name: str) -> GraphRecord:
    """Return an inner graph of a node; ModelError if it has none of this name."""
    if name not in node.graphs:
        raise ModelError(f"its attribute '{name}' is absent, expected a graph")
    return node.graphs[name]


def chosen(node: Node, condition: Array) -> GraphRecord:
    """Return the graph that an If with a constant condition runs, with names that no other graph has."""
    if condition.size != 1:
        raise ModelError(f"its condition has shape {list(condition.shape)}, expected one bool")
    record = branch(node, "then_branch" if bool(condition.reshape(())) else "else_branch")
    if len(record.outputs) != len(node.outputs):
        raise ModelError(f"its graph has {len(record.outputs)} outputs, expected {len(node.outputs)}")
    return _renamed(record, f"{node.name or node.index}/", {})


def _renamed(record: GraphRecord, prefix: str, outer: Mapping[str, str]) -> GraphRecord:
    """Return a graph in which the names that it defines have a prefix."""
    names = {**outer, **{name: prefix + name for name in _defined(record)}}

    def new(name: str) -> str:
        return names.get(name, name)

    def node(old: Node) -> Node:
        graphs = {key: _renamed(each, prefix, names) for key, each in old.graphs.items()}
        return replace(old.renamed(names), outputs=tuple(map(new, old.outputs)), graphs=graphs)

    def value(old: ValueRecord) -> ValueRecord:
        return replace(old, name=new(old.name))

    return replace(
        record,
        inputs=tuple(map(value, record.inputs)),
        outputs=tuple(map(value, record.outputs)),
        values={new(name): value(each) for name, each in record.values.items()},
        constants={names[name]: data for name, data in record.constants.items()},
        nodes=tuple(map(node, record.nodes)),
        narrow=frozenset(names[name] for name in record.narrow if name in names),
    )


def _defined(record: GraphRecord) -> set[str]:
    """Return the names of the tensors that a graph itself has."""
    results = {name for node in record.nodes for name in node.outputs if name}
    return results | {value.name for value in record.inputs} | set(record.constants)


def with_constants(emission: Emission, record: GraphRecord) -> GraphRecord:
    """Return an inner graph with the constants of the graph outside that it reads."""
    found = {name: emission.constant(name) for name in outer_names(record) - _defined(record)}
    return replace(record, constants={**record.constants, **{n: data for n, data in found.items() if data is not None}})


def _captured(call: Call, records: Iterable[GraphRecord]) -> tuple[str, ...]:
    """Return the tensors outside that inner graphs read and that are computed at run time."""
    emission = call.emission
    read = set[str]().union(*(outer_names(record) - _defined(record) for record in records))
    return tuple(sorted(name for name in read if emission.has(name) and emission.constant(name) is None))


def _described(call: Call, outer: str, name: str) -> ValueRecord:
    """Return a tensor outside as the input `name` of an inner graph."""
    if call.emission.stored_type(outer) is not None:
        raise UnsupportedError(
            f"tensor '{outer}' of the graph outside is quantised, expected one that is not",
            hint="quantise the model without this node: nodes_to_exclude of quantize_static",
        )
    return ValueRecord(name=name, type=_NUMBERS[call.emission.dtype(outer)], shape=call.emission.shape(outer))


def _graph(call: Call, record: GraphRecord, inputs: Sequence[ValueRecord], role: str) -> Graph:
    """Return an inner graph with further inputs."""
    with place(role):
        return call.inner(replace(with_constants(call.emission, record), inputs=tuple(inputs), name=role))


def _finish(call: Call, descriptor: Descriptor, first: Value, others: Iterable[str], part: slice = slice(None)) -> None:
    """Add the layer, whose outputs are those of its last graph, and declare that some are the node's outputs."""
    infos = [*descriptor.graphs.values()][-1].outputs
    values = first.many(
        descriptor,
        *(Value(call, call.emission.tensor(name)) for name in others),
        wanted=len(infos),
        stored=[TensorType.of(info) for info in infos],
        layer=call.layer_name,
    )[part]
    if len(values) != len(call.node.outputs):
        raise ModelError(f"it has {len(call.node.outputs)} outputs, expected {len(values)} as its graph has")
    call.declare_all(values)


def _if(call: Call) -> None:
    records = {name: branch(call.node, name) for name in ("then_branch", "else_branch")}
    for name, record in records.items():
        if record.inputs:
            raise ModelError(f"its {name} has {len(record.inputs)} inputs, expected none")
    names = _captured(call, records.values())
    values = [_described(call, name, name) for name in names]
    graphs = {name: _graph(call, record, values, name) for name, record in records.items()}
    _finish(call, IfDescriptor(**graphs), call.tensor(0), names)


def _loop(call: Call) -> None:
    body, initial = branch(call.node, "body"), call.node.inputs[2:]
    if not all(initial):
        raise ModelError("one of the loop's initial values is absent, expected a tensor")
    if len(body.inputs) != len(initial) + 2 or len(body.outputs) <= len(initial):
        raise ModelError(
            f"its body has {len(body.inputs)} inputs and {len(body.outputs)} outputs, expected {len(initial) + 2} and "
            f"{len(initial) + 1} as the loop carries {len(initial)} values"
        )
    scans = [value.name for value in body.outputs[len(initial) + 1 :]]
    if scans:
        raise UnsupportedError(
            f"it has scan outputs ({', '.join(scans)}), which are not supported", hint=_WITHOUT_SCANS
        )
    _Loop(call, body).add()


class _Loop:
    """A Loop as a WHILE of the values: count of iterations, condition if there is one, carried and captured ones."""

    def __init__(self, call: Call, body: GraphRecord) -> None:
        self._call, self._body = call, body
        self._made = replace(call.node, name="").made
        self._first = 1 if call.node.has_input(1) else 2
        """The first of the inputs that the loop carries: the condition, if there is one."""
        self._trips = call.node.source
        self._limit = call.max_iterations
        count = call.constant(0)
        if count is not None:
            if count.size != 1 or count.dtype.kind != "i":
                raise ModelError(f"its trip count is {count.dtype}{list(count.shape)}, expected one integer")
            if int(count.reshape(())) >= MOST_ITERATIONS:
                self._trips = ""
            else:
                self._limit = max(self._limit, int(count.reshape(())))
        self._captured = _captured(call, [body])
        if self._trips and count is None and self._trips not in self._captured:
            self._captured += (self._trips,)
        names = UniqueNames()
        for taken in (*outer_names(body), *_defined(body), *call.node.inputs, *self._captured):
            names.take(taken)
        self._count, self._next, self._one, self._wide, self._less, self._both, self._limit_name = (
            names.take(f"loop_{role}") for role in ("count", "next", "one", "wide", "less", "both", "trips")
        )

    def add(self) -> None:
        """Add the layer and declare the outputs of the node."""
        call, first = self._call, self._first
        outer, inner = call.node.inputs[first:], self._body.inputs[first:]
        values = [ValueRecord(name=self._count, type=_NUMBERS[DataType.INT32], shape=())]
        values += [_described(call, name, value.name) for name, value in zip(outer, inner, strict=True)]
        values += [_described(call, name, name) for name in self._captured]
        condition = _graph(call, self._condition_record(), values, "condition")
        body = _graph(call, self._body_record(), values, "body")
        count = call.array(np.zeros((), np.int32), "count")
        descriptor = WhileDescriptor(condition=condition, body=body, limit=self._limit)
        _finish(call, descriptor, count, (*outer, *self._captured), slice(3 - first, 1 + len(outer)))

    def _condition_record(self) -> GraphRecord:
        """Return the graph of: count < trip count, and condition."""
        constants: dict[str, Array] = {}
        trips, counter, made = self._trips, self._count, self._made
        result, nodes = self._body.inputs[1].name, []
        has_condition = self._first == 1
        if not trips and not has_condition:
            raise UnsupportedError("it has neither a trip count nor a condition, so that it never ends")
        if trips:
            data = self._call.constant(0)
            if data is not None:
                trips = self._limit_name
                constants[trips] = np.clip(data.reshape(()), 0, MOST_ITERATIONS).astype(np.int32)
            else:
                counter = self._wide
                nodes.append(made("Cast", [self._count], counter, to=_NUMBERS[DataType.INT64]))
            nodes.append(made("Less", [counter, trips], self._less))
            if has_condition:
                nodes.append(made("And", [self._less, result], self._both))
            result = self._both if has_condition else self._less
        outputs = (ValueRecord(name=result),)
        return GraphRecord(name="condition", outputs=outputs, constants=constants, nodes=tuple(nodes))

    def _body_record(self) -> GraphRecord:
        """Return the body, which counts, and passes on what it reads from outside."""
        body, number, made = self._body, self._body.inputs[0], self._made
        shape = np.array([1] * len(number.shape or ()), np.int64)
        constants = {**body.constants, self._one: np.ones((), np.int32), self._less: shape}
        nodes = [made("Cast", [self._count], self._wide, to=_NUMBERS[DataType.INT64])]
        nodes.append(made("Reshape", [self._wide, self._less], number.name))
        if self._first == 2:
            constants[body.inputs[1].name] = np.ones((), np.bool_)
        counting, *passed = (ValueRecord(name=name) for name in (self._next, *self._captured))
        counted = made("Add", [self._count, self._one], self._next)
        return replace(
            body,
            constants=constants,
            nodes=(*(nodes if number.name in outer_names(body) else ()), *body.nodes, counted),
            outputs=(counting, *body.outputs[self._first - 1 :], *passed),
        )


ROWS: Mapping[str, Row] = {
    "If": Row(_if, outputs=MANY, first_is_optional=True),
    "Loop": Row(_loop, 2, MANY, outputs=MANY, first_is_optional=True),
}
