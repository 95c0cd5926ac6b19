# SPDX-License-Identifier: Apache-2.0
"""Changes the rule by which layers round, and counts the results that this changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, place, together
from ferrule.graph import Array, Graph, GraphEditor, Layer, LayerType, Rounding
from ferrule.network.execution import check_inputs, initial_state, operands_of, run_stateful
from ferrule.network.samples import Sample
from ferrule.network.validation import check_kernel
from ferrule.operators.interpreter import operator_of


@frozen
class ChangedLayer:
    """A layer whose rule was changed, and how many of its results that changed, given the same inputs."""

    name: str
    type: LayerType
    rounding: Rounding
    """The rule before."""
    results: int
    differing: int


@frozen
class ChangedOutput:
    """An output of a network, and how many of its elements the changed layers changed together."""

    name: str
    results: int
    differing: int


@frozen
class RoundingChange:
    """What another rule changes in a network."""

    layers: tuple[ChangedLayer, ...]
    outputs: tuple[ChangedOutput, ...]


def with_rounding(graph: Graph, rule: Rounding) -> Graph:
    """Return a graph in which all layers of another rule than TFLM's have this one.

    Raises:
        UnsupportedError: a layer's operator cannot compute the rule; the message names all such layers.
    """
    editor, problems = GraphEditor(graph), []
    for layer in graph.layers:
        if layer.rounding in {Rounding.TFLM, rule}:
            continue
        changed = replace(layer, rounding=rule)
        editor.replace_layer(changed)
        try:
            with place(f"layer '{layer.name}' {layer.type}", str(layer.type)):
                check_kernel(graph, changed)
        except FerruleError as error:
            problems.append(error)
    if problems:
        raise together(problems, "layers")
    return editor.finish()


def rounding_change(graph: Graph, rule: Rounding, samples: Sequence[Sample]) -> RoundingChange:
    """Return what `with_rounding` changes for some inputs; the samples of a graph with state are one sequence.

    Raises:
        InputError: a sample does not fit the graph's inputs.
        UnsupportedError: see `with_rounding`.
    """
    changed = with_rounding(graph, rule)
    counts: dict[str, list[int]] = {}
    outputs = [[0, 0] for _ in graph.outputs]
    state, other = initial_state(graph), initial_state(graph)
    for sample in samples:
        values = {tensor.info.name: tensor.data for tensor in graph.tensors if tensor.data is not None}
        sources = check_inputs(graph, sample)
        values |= sources | {each.source: state[each.name] for each in graph.states}

        def observe(layer: Layer, results: Sequence[Array], values: dict[str, Array] = values) -> None:
            values |= zip(layer.outputs, results, strict=True)
            after = changed.layer(layer.name)
            if after.rounding is layer.rounding:
                return
            arrays = [None if name is None else values[name] for name in layer.inputs]
            made = operator_of(layer.type).kernel(layer.descriptor, operands_of(changed, after), arrays)
            _count(counts.setdefault(layer.name, [0, 0]), made, results)

        expected = run_stateful(graph, sources, state, observe)
        found = run_stateful(changed, sources, other)
        for count, left, right in zip(outputs, found, expected, strict=True):
            _count(count, [left], [right])
    layers = tuple(
        ChangedLayer(
            name=layer.name,
            type=layer.type,
            rounding=layer.rounding,
            results=counts[layer.name][0],
            differing=counts[layer.name][1],
        )
        for layer in graph.layers
        if layer.name in counts
    )
    named = zip(graph.outputs, outputs, strict=True)
    return RoundingChange(
        layers=layers,
        outputs=tuple(ChangedOutput(name=info.name, results=all_, differing=some) for info, (all_, some) in named),
    )


def _count(count: list[int], found: Sequence[Array], expected: Sequence[Array]) -> None:
    """Add the number of elements and that of the differing ones."""
    for left, right in zip(found, expected, strict=True):
        count[0] += left.size
        count[1] += int(np.count_nonzero(left != right))
