# SPDX-License-Identifier: Apache-2.0
"""Rewrites the nodes of a graph before they become layers: constants are computed, and what does nothing vanishes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ferrule.errors import place
from ferrule.formats.onnx.folding import Folding, constant_of
from ferrule.formats.onnx.node import GraphRecord, Node, TensorType
from ferrule.graph import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalised:
    """The nodes of a graph that remain, and its constants."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    types: Mapping[str, TensorType]
    """The stored types of quantised tensors, by name."""


def normalised(record: GraphRecord, folding: Folding) -> Normalised:
    """Return the nodes of a graph without Constant and Identity, with BatchNormalization folded into convolutions.

    Raises:
        ModelError, UnsupportedError: a node that computes a constant cannot be computed.
    """
    nodes, constants = _folded(record, folding)
    nodes = _without_identities(record, nodes)
    nodes = _with_batch_norms(record, nodes, constants)
    nodes = _with_biases(record, nodes, constants)
    return Normalised(nodes=tuple(nodes), constants=constants, types={})


def _folded(record: GraphRecord, folding: Folding) -> tuple[list[Node], dict[str, Array]]:
    """Return the nodes that cannot be computed, and all constants."""
    constants, remaining = dict(record.constants), []
    for node in record.nodes:
        with place(node.where, node.key):
            if node.key == "Constant" and len(node.outputs) == 1:
                results: Sequence[Array] | None = [constant_of(node)]
            elif node.graphs or not all(name in constants for name in node.inputs if name):
                results = None
            else:
                results = folding.outputs(node, [constants.get(name) for name in node.inputs])
        if results is None or any(name in constants for name in node.outputs):
            remaining.append(node)
            continue
        for name, data in zip(node.outputs, results, strict=True):
            data.setflags(write=False)
            constants[name] = data
    return remaining, constants


def _without_identities(record: GraphRecord, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes without those whose output is their input, unless a graph has one as output or reads one."""
    if any(node.graphs for node in nodes):
        return list(nodes)
    kept = {value.name for value in record.outputs}
    read = Counter(name for node in nodes for name in node.inputs)
    names: dict[str, str] = {}
    remaining = []
    for each in nodes:
        node = replace(each, inputs=tuple(names.get(name, name) for name in each.inputs))
        outputs = [name for name in node.outputs if name in kept or read[name]]
        vanishes = node.key == "Identity" or (node.key == "Dropout" and not node.has_input(2))
        if vanishes and node.inputs and outputs == list(node.outputs[:1]) and outputs[0] not in kept:
            names[node.outputs[0]] = node.inputs[0]
        else:
            remaining.append(node)
    return remaining


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


def _with_batch_norms(record: GraphRecord, nodes: Sequence[Node], constants: dict[str, Array]) -> list[Node]:
    """Return the nodes with BatchNormalization folded into the convolution before it, if nothing else reads that."""
    single = single_readers(record, nodes)
    gone: dict[int, Node | None] = {}
    for node in nodes:
        reader = single.get(node.outputs[0]) if node.key in {"Conv", "ConvTranspose"} and node.outputs else None
        if reader is None or reader.key != "BatchNormalization":
            continue
        parameters = [constants.get(name) for name in reader.inputs[1:5]]
        weights = constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
        bias = constants.get(node.inputs[2]) if node.has_input(2) else np.zeros((), np.float32)
        arrays = [each for each in (weights, bias, *parameters) if each is not None and each.dtype == np.float32]
        if len(arrays) != 6 or reader.inputs[0] != node.outputs[0] or reader.integer("training_mode", 0):
            continue
        folded = _folded_batch_norm(node, reader, arrays)
        if folded is None:
            continue
        names = f"{node.outputs[0]}_folded_weights", f"{node.outputs[0]}_folded_bias"
        constants.update(zip(names, folded, strict=True))
        merged = replace(node, inputs=(node.inputs[0], *names), outputs=reader.outputs[:1])
        gone |= {node.index: None, reader.index: merged}
    return [found for node in nodes if (found := gone.get(node.index, node)) is not None]


def _folded_batch_norm(node: Node, norm: Node, arrays: Sequence[Array]) -> tuple[Array, Array] | None:
    """Return the weights and the bias of a convolution with its BatchNormalization; None if the shapes do not fit."""
    weights, bias, scale, offset, mean, variance = (each.astype(np.float64) for each in arrays)
    axis = 0 if node.key == "Conv" else 1
    if axis and node.integer("group", 1) != 1:
        return None
    channels = weights.shape[axis] if weights.ndim > 2 else -1
    if any(each.shape != (channels,) for each in (scale, offset, mean, variance)):
        return None
    if bias.shape not in {(), (channels,)}:
        return None
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + np.float32(norm.number("epsilon", 1e-5)))
        shape = [1] * weights.ndim
        shape[axis] = channels
        new_weights = (weights * factor.reshape(shape)).astype(np.float32)
        new_bias = (offset + (bias - mean) * factor).astype(np.float32)
    for each in (new_weights, new_bias):
        each.setflags(write=False)
    return new_weights, new_bias


def _with_biases(record: GraphRecord, nodes: Sequence[Node], constants: Mapping[str, Array]) -> list[Node]:
    """Return the nodes with the constant Add behind a MatMul as third input of the MatMul, its bias."""
    single = single_readers(record, nodes)
    gone: dict[int, Node | None] = {}
    for node in nodes:
        reader = single.get(node.outputs[0]) if node.key == "MatMul" and len(node.inputs) == 2 else None
        if reader is None or reader.key != "Add" or len(reader.inputs) != 2:
            continue
        matrix = constants.get(node.inputs[1])
        (other,) = [name for name in reader.inputs if name != node.outputs[0]] or [""]
        bias = constants.get(other)
        if matrix is None or bias is None or matrix.ndim != 2 or matrix.dtype != np.float32:
            continue
        if bias.size == matrix.shape[1] == bias.shape[-1] and bias.dtype == np.float32:
            if node.inputs[0] in constants or bias.ndim > 1:
                continue
            merged = replace(node, inputs=(*node.inputs, other), outputs=reader.outputs)
            gone |= {node.index: None, reader.index: merged}
    return [found for node in nodes if (found := gone.get(node.index, node)) is not None]
