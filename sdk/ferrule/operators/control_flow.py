# SPDX-License-Identifier: Apache-2.0
"""IF and WHILE, whose descriptors have the graphs that they run; graphs contain no cycle of calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.budget import Resource, Tally
from ferrule.errors import FerruleError, IterationLimitError, ModelError, UnsupportedError, place
from ferrule.graph import Array, DataType, Descriptor, Graph, Layer, LayerType, TensorInfo
from ferrule.operators.arithmetic import running_error
from ferrule.operators.arithmetic.error_bound import known_inputs, or_zeros
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.interpreter import execute, macs_of, operator_of
from ferrule.operators.movement.join import ConcatenationDescriptor
from ferrule.operators.movement.slice import SliceDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.operators.operator import Arithmetic, Arrays, Evaluation, Operands, Operator, Shapes
from ferrule.operators.sample import LayerSample
from ferrule.operators.work import Work, work_of_all

DEFAULT_ITERATIONS = 10_000
"""The default of `WhileDescriptor.limit`."""
MOST_ITERATIONS = 2**31 - 1
DEEPEST = 8
"""The most graphs that call one another."""


@frozen
class IfDescriptor(Descriptor):
    """A bool that selects one of two graphs, then the inputs of that graph; its outputs."""

    then_branch: Graph
    else_branch: Graph

    @property
    @override
    def graphs(self) -> dict[str, Graph]:
        return {"then_branch": self.then_branch, "else_branch": self.else_branch}


@frozen
class WhileDescriptor(Descriptor):
    """The values of the loop before its first iteration, and those behind its last one."""

    condition: Graph
    """Its only output is a bool: whether the body runs (again)."""
    body: Graph
    """From the values before an iteration to those behind it."""
    limit: int = DEFAULT_ITERATIONS
    """The most iterations of one run, together with those of the loops around it and inside it; with more, it fails."""

    @property
    @override
    def graphs(self) -> dict[str, Graph]:
        return {"condition": self.condition, "body": self.body}


def infer_if(descriptor: IfDescriptor, _: Operands) -> Shapes:
    """Return the shapes of the branches' outputs."""
    return tuple(info.shape for info in descriptor.then_branch.outputs)


def infer_while(descriptor: WhileDescriptor, _: Operands) -> Shapes:
    """Return the shapes of the body's outputs."""
    return tuple(info.shape for info in descriptor.body.outputs)


def check_if(descriptor: IfDescriptor, operands: Operands) -> None:
    """Refuse a condition that is not one bool, and branches with other inputs or outputs than the layer."""
    _check_bool(operands.source)
    sources = operands.required(range(1, len(operands.inputs)))
    for name, graph in descriptor.graphs.items():
        with place(name):
            _check_signature("inputs", graph.inputs, sources)
            _check_signature("outputs", graph.outputs, operands.outputs)
            check_graph(graph)


def check_while(descriptor: WhileDescriptor, operands: Operands) -> None:
    """Refuse graphs whose values differ from the layer's, and a limit out of range."""
    if not 0 < descriptor.limit <= MOST_ITERATIONS:
        raise ModelError(f"the limit is {descriptor.limit} iterations, expected 1 to {MOST_ITERATIONS}")
    sources = operands.required(range(len(operands.inputs)))
    if not sources:
        raise ModelError("it has no inputs, expected at least one value of the loop")
    with place("condition"):
        _check_signature("inputs", descriptor.condition.inputs, sources)
        if len(descriptor.condition.outputs) != 1:
            raise ModelError(f"it has {len(descriptor.condition.outputs)} outputs, expected one bool")
        _check_bool(descriptor.condition.outputs[0])
        check_graph(descriptor.condition)
    with place("body"):
        _check_signature("inputs", descriptor.body.inputs, sources)
        _check_signature("outputs", descriptor.body.outputs, sources)
        _check_signature("outputs of the layer", operands.outputs, sources)
        check_graph(descriptor.body)


def check_graph(graph: Graph) -> None:
    """Check every layer of a graph that a layer calls, and of the graphs that it calls.

    Raises:
        ModelError, UnsupportedError: a layer is not valid; the message names it.
    """
    if graph.states:
        raise ModelError(f"graph '{graph.name}' has states, expected further inputs and outputs")
    _check_depth(graph)
    for layer in graph.layers:
        with place(f"layer '{layer.name}' {layer.type}"):
            operator = operator_of(layer.type)
            operands = Operands.of(graph, layer)
            if type(layer.descriptor) is not operator.descriptor:
                raise ModelError(f"its descriptor is a {type(layer.descriptor).__name__}")
            shapes = operator.infer(layer.descriptor, operands.inputs)
            if shapes != tuple(info.shape for info in operands.outputs):
                raise ModelError(f"its outputs have other shapes than {[list(shape) for shape in shapes]}")
            operator.accept_layer(graph, layer)


def _check_depth(graph: Graph) -> None:
    level, depth = {id(graph): graph}, 1
    while level:
        if depth > DEEPEST:
            raise UnsupportedError(f"more than {DEEPEST} graphs call one another", hint="convert with flat loops")
        layers = (layer for each in level.values() for layer in each.layers)
        level = {id(inner): inner for layer in layers for inner in layer.descriptor.graphs.values()}
        depth += 1


def run_if(descriptor: IfDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    """Return the outputs of the selected branch."""
    condition, *values = arrays
    assert condition is not None, "checked"
    return _called(descriptor.then_branch if bool(condition.reshape(())) else descriptor.else_branch, values)


def run_while(descriptor: WhileDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    """Return the values behind the last iteration; IterationLimitError if there are too many."""
    values = [array for array in arrays if array is not None]
    with counted() as iterations:
        work = work_of_iteration(descriptor)
        while bool(_called(descriptor.condition, values)[0].reshape(())):
            iterations.begin(descriptor.limit, work)
            values = _called(descriptor.body, values)
    return values


def _if_bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the selected branch; there is none if the condition may be another."""
    condition, *values = _bounded(evaluation)
    if condition is None or condition.error is not None:
        return known_inputs(evaluation)
    descriptor = evaluation.descriptor
    chosen = descriptor.then_branch if bool(condition.values.reshape(())) else descriptor.else_branch
    return _bounds_of(_called_bounded(chosen, values, evaluation.arithmetic))


def _while_bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the values behind the last iteration; there is none if a condition may be another."""
    descriptor, values = evaluation.descriptor, [each for each in _bounded(evaluation) if each is not None]
    with counted() as iterations:
        work = work_of_iteration(descriptor)
        while True:
            (condition,) = _called_bounded(descriptor.condition, values, evaluation.arithmetic)
            if condition.error is not None:
                return [np.full(output.shape, np.inf) for output in evaluation.outputs]
            if not bool(condition.values.reshape(())):
                return _bounds_of(values)
            iterations.begin(descriptor.limit, work)
            values = _called_bounded(descriptor.body, values, evaluation.arithmetic)


def _bounded(evaluation: Evaluation) -> list[Bounded | None]:
    pairs = zip(evaluation.inputs, evaluation.errors, strict=True)
    return [None if array is None else Bounded(array, error) for array, error in pairs]


def _called_bounded(graph: Graph, values: Sequence[Bounded | None], arithmetic: Arithmetic) -> list[Bounded]:
    given = zip((info.name for info in graph.inputs), values, strict=True)
    return running_error.execute(graph, {name: each for name, each in given if each is not None}, arithmetic)


def _bounds_of(values: Sequence[Bounded]) -> list[Array]:
    return [or_zeros(each.error, each.values) for each in values]


class Iterations:
    """Counts the iterations of one run of a loop and of the loops inside it, so that nested loops end soon, too."""

    def __init__(self) -> None:
        self._count = 0
        self._tally = Tally()

    def begin(self, limit: int, work: Work) -> None:
        """Count an iteration.

        Raises:
            IterationLimitError: there were `limit` before.
            BudgetError: the iterations compute more than the present budget has.
        """
        if self._count >= limit:
            raise IterationLimitError(limit)
        self._count += 1
        where = f"a run up to iteration {self._count:,}"
        self._tally.spend(Resource.MULTIPLICATIONS, work.multiplications, where)
        self._tally.spend(Resource.ELEMENTS, work.elements, where)


def work_of_iteration(descriptor: WhileDescriptor) -> Work:
    """Return what an iteration of a loop computes; of the loops inside it, one iteration."""
    return work_of_all(descriptor.graphs.values())


_ITERATIONS: ContextVar[Iterations | None] = ContextVar("iterations", default=None)


@contextmanager
def counted() -> Iterator[Iterations]:
    """Give the count of the loop that is running, or a new one if none is."""
    running = _ITERATIONS.get()
    if running is not None:
        yield running
        return
    started = Iterations()
    token = _ITERATIONS.set(started)
    try:
        yield started
    finally:
        _ITERATIONS.reset(token)


def _called(graph: Graph, values: Arrays) -> list[Array]:
    arrays = {info.name: value for info, value in zip(graph.inputs, values, strict=True) if value is not None}
    return execute(graph, arrays)


def _check_bool(info: TensorInfo) -> None:
    if info.dtype is not DataType.BOOL or info.elements != 1:
        raise UnsupportedError(f"tensor '{info.name}' is {info.dtype}{list(info.shape)}, expected one bool")


def _check_signature(kind: str, found: Sequence[TensorInfo], wanted: Sequence[TensorInfo]) -> None:
    if len(found) != len(wanted):
        raise ModelError(f"it has {len(found)} {kind}, expected {len(wanted)}")
    for own, outer in zip(found, wanted, strict=True):
        if (own.shape, own.dtype) != (outer.shape, outer.dtype):
            raise ModelError(
                f"'{own.name}' of its {kind} is {own.dtype}{list(own.shape)}, "
                f"expected {outer.dtype}{list(outer.shape)} as '{outer.name}'"
            )


def _most_macs(descriptor: IfDescriptor, _: Operands) -> int:
    """Return the multiply-accumulates of the larger branch."""
    return max(macs_of(graph, graph.layers) for graph in descriptor.graphs.values())


def _macs_of_one_iteration(descriptor: WhileDescriptor, _: Operands) -> int:
    return sum(macs_of(graph, graph.layers) for graph in descriptor.graphs.values())


# ---- samples


def _add(graph: Graph, type_: LayerType, descriptor: Descriptor, inputs: tuple[str, ...], output: TensorInfo) -> str:
    """Add a layer with the name that it has when it is read from a file, and return its output."""
    name = f"{type_.lower()}_{len(graph.layers)}"
    layer = Layer(name, type_, descriptor, inputs=inputs, outputs=(output.name,))
    return graph.add_layer(layer, [output])[0]


def _sum(graph: Graph, source: str, name: str) -> str:
    """Add a layer that adds a tensor to itself, or reverses its axes if sums of its type do not exist."""
    info, descriptor = graph.info(source), BinaryDescriptor()
    output = replace(info, name=f"{name}_out")
    try:
        operator_of(LayerType.ADD).accept(descriptor, Operands((info, info), (output,)))
    except FerruleError:
        return _transposed(graph, source, name)
    return _add(graph, LayerType.ADD, descriptor, (source, source), output)


def _transposed(graph: Graph, source: str, name: str) -> str:
    info = graph.info(source)
    descriptor = TransposeDescriptor(permutation=tuple(reversed(range(len(info.shape)))))
    return _add(graph, LayerType.TRANSPOSE, descriptor, (source,), replace(info, name=f"{name}_out"))


def _sample_if(sample: LayerSample) -> Descriptor:
    """Draw a layer that doubles or transposes a square, or leaves it as it is."""
    sample.add("input_0", sample.dice.choice([(), (1,)]), DataType.BOOL)
    side = sample.dice.randint(1, 6)
    info = sample.take((side, side))
    branches = []
    for name, draw in (("then", _sum), ("else", sample.dice.choice([_transposed, None]))):
        graph = Graph(f"sample_{name}")
        source = graph.add_input(replace(info, name="x"))
        graph.set_outputs([source if draw is None else draw(graph, source, name)])
        branches.append(graph)
    sample.output = info.quantization
    return IfDescriptor(then_branch=branches[0], else_branch=branches[1])


def _sample_while(sample: LayerSample) -> Descriptor:
    """Draw a loop that takes one bool of a list after the other, up to the first that is false."""
    side, count = sample.dice.randint(1, 6), sample.dice.randint(2, 5)
    info = sample.take((side, side))
    flags = TensorInfo("input_1", (count,), DataType.BOOL)
    sample.inputs.append(flags)
    condition, body = Graph("sample_condition"), Graph("sample_body")
    for graph in (condition, body):
        graph.add_input(replace(info, name="x"))
        graph.add_input(replace(flags, name="flags"))
    condition.set_outputs([_part(condition, "flags", "first", 0, 1)])
    rest = _part(body, "flags", "rest", 1, count - 1)
    end = body.add_constant(TensorInfo("end", (1,), DataType.BOOL), np.zeros(1, np.bool_))
    joined, output = ConcatenationDescriptor(axis=0), replace(flags, name="joined_out")
    _add(body, LayerType.CONCATENATION, joined, (rest, end), output)
    body.set_outputs([_sum(body, "x", "sum"), output.name])
    sample.output = info.quantization
    sample.further = [(DataType.BOOL, None)]
    return WhileDescriptor(condition=condition, body=body)


def _part(graph: Graph, source: str, name: str, begin: int, size: int) -> str:
    descriptor = SliceDescriptor(begin=(begin,), size=(size,))
    output = replace(graph.info(source), name=f"{name}_out", shape=(size,))
    return _add(graph, LayerType.SLICE, descriptor, (source,), output)


IF = Operator(
    type=LayerType.IF,
    descriptor=IfDescriptor,
    shapes=infer_if,
    check=check_if,
    kernel=run_if,
    bound=_if_bound,
    macs=_most_macs,
    sample=_sample_if,
)
WHILE = Operator(
    type=LayerType.WHILE,
    descriptor=WhileDescriptor,
    shapes=infer_while,
    check=check_while,
    kernel=run_while,
    bound=_while_bound,
    macs=_macs_of_one_iteration,
    sample=_sample_while,
)
