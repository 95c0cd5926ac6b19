# SPDX-License-Identifier: Apache-2.0
"""Compares the results of a composed network with the numpy kernels, layer by layer.

Each layer is computed from the inputs that it had where it ran, so a float that differs within its bound does not
become a difference of the layers behind it, which may compare or round it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from compare import graph_differences
from composed_networks import state_positions

from ferrule.formats import load, to_tflite
from ferrule.formats.tflite.operators import OPERATORS as ROWS
from ferrule.graph import Array, Graph, Layer, State
from ferrule.network import Network
from ferrule.network.execution import operands_of, run_graph
from ferrule.operators.operator import Operands
from ferrule.testing.backends.comparison import graph_difference, runs_of

Run = Sequence[Array]
"""One array per input, or per output."""
Undefined = Callable[[Layer, Operands, Sequence[Array | None]], bool]
"""Whether a layer's result is not defined for these inputs where it ran."""


def sequence(network: Network, seed: int) -> list[list[Array]]:
    """Return the inputs of consecutive runs: random ones, all lowest, all highest, and random ones again."""
    return [*runs_of(network, seed), next(runs_of(network, seed + 1))]


def observed(network: Network, *, private: bool) -> Network:
    """Return a copy whose outputs are the results of all layers; with `private`, also states that only layers see."""
    kept = set() if private else {name for layer in network.layers for name in _private(network, layer)}
    names = [name for layer in network.layers for name in layer.outputs if name not in kept]
    return with_outputs(network, names)


def with_outputs(network: Network, names: Sequence[str]) -> Network:
    """Return a copy with other outputs."""
    result = Network(network.name)
    inputs, states = {info.name for info in network.inputs}, {state.source: state for state in network.states}
    for tensor in network.tensors:
        name = tensor.info.name
        if tensor.data is not None:
            result.add_constant(tensor.info, tensor.data)
        elif name in states:
            result.add_state(tensor.info, states[name].initial, name=states[name].name)
        elif name in inputs:
            result.add_input(tensor.info)
    for layer in network.layers:
        result.add_layer(layer, network.output_infos(layer))
    for state in states.values():
        result.set_state(state.name, state.result)
    result.set_outputs(names)
    return result


def difference(
    network: Network, inputs: Sequence[Run], outputs: Sequence[Run], undefined: Undefined = lambda *_: False
) -> str:
    """Return the first layer of the first run whose results differ from those of the numpy kernel; "" if none does.

    `outputs` has, for each run, the outputs of `network`, which is `observed`. A result that is no output is taken from
    the numpy kernel.
    """
    parts = [(layer, _alone(network, layer)) for layer in network.layers]
    constants = {each.info.name: each.data for each in network.tensors if each.data is not None}
    state = network.initial_state()
    for number, (given, found) in enumerate(zip(inputs, outputs, strict=True)):
        values: dict[str, Array] = dict(constants)
        values |= {each.source: state[each.name] for each in network.states}
        values |= {info.name: array for info, array in zip(network.inputs, given, strict=True)}
        seen = {info.name: array for info, array in zip(network.outputs, found, strict=True)}
        for layer, graph in parts:
            arrays = [values[info.name] for info in graph.inputs]
            with np.errstate(all="ignore"):
                wanted = run_graph(graph, arrays)
                got = [seen.get(name, array) for name, array in zip(layer.outputs, wanted, strict=True)]
                values |= zip(layer.outputs, got, strict=True)
                sources = [None if name is None else values[name] for name in layer.inputs]
                if undefined(layer, operands_of(network, layer), sources):
                    continue
                wrong = graph_difference(graph, arrays, got)
            if wrong:
                return f"run {number}, layer '{layer.name}' {layer.type} {layer.descriptor}: {wrong}"
        state = {each.name: values[each.result] for each in network.states}
    return ""


def bits_difference(network: Network, found: Sequence[Run], other: Network, wanted: Sequence[Run]) -> str:
    """Return the first output of `network` whose bits differ from those of the same output of `other`; "" if none."""
    names = [info.name for info in other.outputs]
    for number, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        for info, array in zip(network.outputs, ours, strict=True):
            expected = theirs[names.index(info.name)]
            if array.tobytes() != expected.tobytes():
                count = int((array != expected).sum())
                return f"run {number}: output '{info.name}' {info} has other bits than expected in {count} elements"
    return ""


def reread_difference(network: Network, inputs: Sequence[Run]) -> str:
    """Return the difference between a network and what is read after it was written; "" if there is none.

    States that a file does not have get names when they are read, so that such networks are compared by what they
    compute. What was written and read twice, with the names that the reader gives, is written without a change.
    """
    again = load(to_tflite(network), name=network.name)
    wrong = _computed_difference(network, again, inputs) if _has_hidden_states(network) else _difference(network, again)
    if wrong:
        return f"written and read again: {wrong}"
    third = load(to_tflite(again), name=network.name)
    data = to_tflite(third)
    if to_tflite(load(data, name=network.name)) != data:
        return "the file changes when it is read and written"
    return _difference(again, third)


def _difference(network: Network, again: Network) -> str:
    """Return the difference between two networks with the same names.

    Weights with a zero point, which files have only in uint8, may have another scale, with which the products are those
    of TensorFlow Lite.
    """
    found = [each for each in graph_differences(network, again) if not _is_rescaled(network, each)]
    if found:
        return found[0]
    if list(map(_described, network.states)) != list(map(_described, again.states)):
        return f"the states are {again.states}, expected {network.states}"
    return ""


def _computed_difference(network: Network, again: Network, inputs: Sequence[Run]) -> str:
    outputs = []
    for each in (network, again):
        state = each.initial_state()
        with np.errstate(all="ignore"):
            outputs.append([each.run(given, state=state) for given in inputs])
    return bits_difference(again, outputs[1], network, outputs[0])


def _has_hidden_states(network: Network) -> bool:
    return any(
        state_positions(network, layer) and not ROWS[layer.type].state_inputs
        for layer in network.layers
        if layer.type in ROWS
    )


def _described(state: State) -> tuple[str, str, str, bytes]:
    return state.name, state.source, state.result, state.initial.tobytes()


def _is_rescaled(network: Network, text: str) -> bool:
    infos = [tensor.info for graph in _graphs(network) for tensor in graph.tensors if "weights" in tensor.info.name]
    offset = [info.name for info in infos if info.quantization is not None and any(info.quantization.zero_points)]
    return any(text.rpartition(": ")[2].startswith(f"'{name}'") for name in offset)


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for layer in graph.layers:
        for inner in layer.descriptor.graphs.values():
            yield from _graphs(inner)


def _private(network: Network, layer: Layer) -> tuple[str, ...]:
    """Return the results of a layer that a file does not have, because TensorFlow Lite's operator keeps them."""
    return layer.outputs[len(layer.outputs) - len(state_positions(network, layer)) :]


def _alone(network: Network, layer: Layer) -> Graph:
    """Return a graph of one layer; its inputs are the layer's that are no constants."""
    result = Graph(layer.name)
    for name in dict.fromkeys(layer.present_inputs):
        tensor = network.tensor(name)
        if tensor.data is not None:
            result.add_constant(tensor.info, tensor.data)
        else:
            result.add_input(tensor.info)
    result.add_layer(layer, network.output_infos(layer))
    result.set_outputs(layer.outputs)
    return result
