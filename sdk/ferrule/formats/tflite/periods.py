# SPDX-License-Identifier: Apache-2.0
"""Periods of CIRCULAR_BUFFER: what a file has behind such an operator runs only at the end of each period.

TensorFlow Lite Micro ends a run there, if it is another one. In a network, the layers behind become those of an IF. In
the runs that end early, its outputs are those of the last run that did not, and its states keep their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.adaptation import added
from ferrule.graph import DataType, Graph, Layer, LayerType, State, Tensor, TensorInfo, assemble, reset_value
from ferrule.graph.names import UniqueNames
from ferrule.network import Network, check_kernel
from ferrule.network.copying import network_of
from ferrule.operators.control_flow import DEEPEST, IfDescriptor
from ferrule.operators.recurrent.circular_buffer import COUNT, CircularBufferDescriptor

_ZERO = "period_begin"
_HELD = "held"


def refuse_periods(graph: Graph) -> None:
    """Raise UnsupportedError if a layer of a graph that another one calls has a period."""
    if any(_has_period(layer) for layer in graph.layers):
        raise UnsupportedError("a CIRCULAR_BUFFER ends runs early inside a subgraph, expected it in the model itself")


def with_periods(network: Network) -> Network:
    """Return the network of a file in which no layer ends a run: itself, if none did.

    Raises:
        UnsupportedError: too many graphs would call one another, or two states get the same tensor.
    """
    count = sum(map(_has_period, network.layers))
    if not count:
        return network
    if count >= DEEPEST:
        raise UnsupportedError(f"{count} CIRCULAR_BUFFER end runs early, expected at most {DEEPEST - 1}")
    tensors = {tensor.info.name: tensor for tensor in network.tensors}
    names = UniqueNames([*tensors, *(layer.name for layer in network.layers)])
    zero = TensorInfo(names.take(_ZERO), (1,), DataType.INT32)
    tensors[zero.name] = Tensor(zero, np.zeros(1, np.int32))
    states = list(network.states)
    held = {state.result: state.source for state in states}
    if len(held) < len(states):
        raise UnsupportedError("two states get the same tensor, and a CIRCULAR_BUFFER ends runs early")
    behind = _behind(network)
    for info in dict.fromkeys(network.outputs):
        if info.name in behind and info.name not in held:
            old = replace(info, name=names.take(f"{info.name}_{_HELD}"))
            tensors[old.name] = Tensor(old)
            states.append(State(name=old.name, source=old.name, result=info.name, initial=reset_value(old)))
            held[info.name] = old.name
    wrapped = _Wrapped(tensors, names, zero.name)
    layers = wrapped.layers(network.layers, held)
    result = network_of(_rebuilt(network, layers, tensors, states))
    for layer in result.layers[-2:]:
        check_kernel(result, layer)
    return result


def _rebuilt(graph: Graph, layers: Sequence[Layer], tensors: dict[str, Tensor], states: Sequence[State]) -> Graph:
    """Return a graph with the same inputs and outputs."""
    return assemble(
        graph.name,
        inputs=[info.name for info in graph.inputs],
        outputs=[info.name for info in graph.outputs],
        layers=layers,
        tensors=tensors,
        states=states,
    )


def _has_period(layer: Layer) -> bool:
    return isinstance(layer.descriptor, CircularBufferDescriptor) and layer.descriptor.cycles > 1


def _behind(graph: Graph) -> frozenset[str]:
    """Return the tensors that layers behind the first period write."""
    return frozenset(name for layer in graph.layers[_first(graph.layers) + 1 :] for name in layer.outputs)


def _first(layers: Sequence[Layer]) -> int:
    """Return the position of the first period; behind the layers if there is none."""
    return next((index for index, layer in enumerate(layers) if _has_period(layer)), len(layers))


class _Wrapped:
    """Puts the layers behind each period into an IF."""

    def __init__(self, tensors: dict[str, Tensor], names: UniqueNames, zero: str) -> None:
        self._tensors = tensors
        self._names = names
        self._zero = zero

    def layers(self, layers: Sequence[Layer], held: Mapping[str, str]) -> list[Layer]:
        """Return the layers up to the first period, and an IF with those behind it.

        `held` maps results of the layers to the tensors with their values in the runs in which they are not computed.
        """
        first = _first(layers)
        rest = layers[first + 1 :]
        written = {name for layer in rest for name in layer.outputs}
        results = {name: old for name, old in held.items() if name in written}
        if not results:
            return list(layers)
        buffer = layers[first]
        due = TensorInfo(self._names.take(f"{buffer.name}_is_due"), (1,), DataType.BOOL)
        self._tensors[due.name] = Tensor(due)
        compared, _ = added(LayerType.EQUAL, [buffer.outputs[COUNT], self._zero], due)
        reads = [name for layer in rest for name in layer.present_inputs] + list(results.values())
        captured = [name for name in dict.fromkeys(reads) if name not in written and self._tensors[name].data is None]
        name = self._names.take(f"{buffer.name}_rest")
        branches = [
            assemble(f"{name}_{branch}", inputs=captured, outputs=outputs, layers=own, tensors=self._tensors)
            for branch, outputs, own in (
                ("due", list(results), self.layers(rest, results)),
                ("not_due", list(results.values()), []),
            )
        ]
        chosen = Layer(
            name,
            LayerType.IF,
            IfDescriptor(then_branch=branches[0], else_branch=branches[1]),
            inputs=(due.name, *captured),
            outputs=tuple(results),
        )
        return [*layers[: first + 1], compared, chosen]


def without_periods(graph: Graph) -> Graph:
    """Return the graph as a file has it, with the layers of such an IF behind its CIRCULAR_BUFFER.

    Raises:
        UnsupportedError: a CIRCULAR_BUFFER has a period, and what lies behind it is not such an IF, or an output
            has a value before the first period ends that a file cannot have.
    """
    if not any(_has_period(layer) for layer in graph.layers):
        return graph
    tensors = {tensor.info.name: tensor for tensor in graph.tensors}
    layers = _flat(graph, tensors, {state.result: state.source for state in graph.states})
    read = {name for layer in layers for name in layer.present_inputs} | {info.name for info in graph.outputs}
    behind = _behind(graph)
    for state in graph.states:
        reset = reset_value(graph.info(state.source))
        if state.source not in read and state.result in behind and not np.array_equal(state.initial, reset):
            raise UnsupportedError(
                f"state '{state.name}' is output '{state.result}' until a period of a CIRCULAR_BUFFER ends, and has "
                "an initial value, which a file cannot state, expected 0"
            )
    return _rebuilt(graph, layers, tensors, [state for state in graph.states if state.source in read])


def _flat(graph: Graph, tensors: dict[str, Tensor], held: Mapping[str, str]) -> list[Layer]:
    """Return the layers of a graph in which each period ends the run, and add the tensors of its branches.

    `held` maps the new values of the states to the old ones.
    """
    first = _first(graph.layers)
    head, rest = graph.layers[: first + 1], graph.layers[first + 1 :]
    if not rest:
        return list(head)
    branch = _branch(graph, head[-1], rest, held)
    if branch is None:
        raise UnsupportedError(
            f"layer '{head[-1].name}': TensorFlow Lite's CIRCULAR_BUFFER ends a run unless a period of "
            "several runs ends, expected an IF with all layers behind it, or else the outputs of the run before"
        )
    for tensor in branch.tensors:
        tensors.setdefault(tensor.info.name, tensor)
    return [*head, *_flat(branch, tensors, held)]


def _branch(graph: Graph, buffer: Layer, rest: Sequence[Layer], held: Mapping[str, str]) -> Graph | None:
    """Return the graph that an IF runs at the end of a period, if there is nothing else; None otherwise."""
    if len(rest) != 2 or rest[0].type is not LayerType.EQUAL:
        return None
    compared, chosen = rest
    descriptor = chosen.descriptor
    if not isinstance(descriptor, IfDescriptor):
        return None
    then, other = descriptor.then_branch, descriptor.else_branch
    count, zero = compared.present_inputs
    value = graph.tensor(zero).data
    given = dict(zip((info.name for info in other.inputs), chosen.present_inputs[1:], strict=True))
    kept = [given.get(info.name, "") for info in other.outputs]
    fits = (
        count == buffer.outputs[COUNT]
        and value is not None
        and not value.any()
        and chosen.inputs == (*compared.outputs, *(info.name for info in then.inputs))
        and chosen.outputs == tuple(info.name for info in then.outputs)
        and kept == [held.get(name) for name in chosen.outputs]
    )
    return then if fits else None
