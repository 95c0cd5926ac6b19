# SPDX-License-Identifier: Apache-2.0
"""Rewrites the nodes of a graph before they become layers: constants are computed, and what does nothing vanishes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, UnsupportedError, place
from ferrule.formats.onnx.folding import Folding, constant_of
from ferrule.formats.onnx.node import GraphRecord, Node, TensorType
from ferrule.graph import Array
from ferrule.graph.tensor import read_only


@frozen
class Normalised:
    """The nodes of a graph that remain, and its constants."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    types: Mapping[str, TensorType]
    """The stored types of quantised tensors, by name."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Tensors that no node writes any more, and others of the same shape."""


def normalised(record: GraphRecord, folding: Folding) -> Normalised:
    """Return the nodes of a graph without those that compute constants, and without Identity and Dropout."""
    for node in record.nodes:
        if node.key == "CastLike" and node.has_input(1) and node.inputs[1] in record.narrow:
            with place(node.where, node.key):
                raise UnsupportedError(
                    f"it converts to the type of '{node.inputs[1]}', which has 2 or 4 bits or is bfloat16, "
                    "and no tensor of a network has",
                    hint="export the model in float32",
                )
    nodes, constants = _folded(record, folding)
    nodes, same = _without_identities(record, nodes)
    return Normalised(nodes=tuple(nodes), constants=constants, types={}, same=same)


def _folded(record: GraphRecord, folding: Folding) -> tuple[list[Node], dict[str, Array]]:
    """Return the nodes that cannot be computed, and all constants."""
    constants, remaining = dict(record.constants), []
    for node in record.nodes:
        try:
            results = computed(node, constants.get, folding)
        except FerruleError:
            results = None  # it is computed again, and refused, when the nodes become layers
        if results is None or any(name in constants for name in node.outputs):
            remaining.append(node)
            continue
        constants |= zip(node.outputs, map(read_only, results), strict=True)
    return remaining, constants


def computed(node: Node, constant: Callable[[str], Array | None], folding: Folding) -> Sequence[Array] | None:
    """Return the outputs of a node that depends on constants only, which `constant` returns; None for another one."""
    if node.key == "Constant" and len(node.outputs) == 1:
        return [constant_of(node)]
    data = [constant(name) for name in node.inputs]
    if node.graphs or not data or any(each is None for each, name in zip(data, node.inputs, strict=True) if name):
        return None
    return folding.outputs(node, data)


def _without_identities(record: GraphRecord, nodes: Sequence[Node]) -> tuple[list[Node], dict[str, str]]:
    """Return the nodes without those whose output is their input, unless a graph has one as output or reads one.

    The second result has that input for each output.
    """
    if any(node.graphs for node in nodes):
        return list(nodes), {}
    kept = {value.name for value in record.outputs}
    read = Counter(name for node in nodes for name in node.inputs)
    names: dict[str, str] = {}
    remaining = []
    for each in nodes:
        node = each.renamed(names)
        outputs = [name for name in node.outputs if name in kept or read[name]]
        vanishes = node.key == "Identity" or (node.key == "Dropout" and not node.has_input(2))
        if vanishes and node.inputs and outputs == list(node.outputs[:1]) and outputs[0] not in kept:
            names[node.output] = node.source
        else:
            remaining.append(node)
    return remaining, names
