# SPDX-License-Identifier: Apache-2.0
"""Structural comparison of graphs, and of lists of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import numpy as np
from numpy.testing import assert_array_equal
from numpy.typing import ArrayLike

from ferrule.graph import Descriptor, Graph, Tensor


def assert_arrays_equal(found: Iterable[ArrayLike], expected: Iterable[ArrayLike]) -> None:
    """Check that there are as many arrays, with the same values."""
    for left, right in zip(found, expected, strict=True):
        assert_array_equal(left, right)


def graph_differences(left: Graph, right: Graph) -> list[str]:
    """Return a description of each difference: inputs, outputs, layers in order, and tensors with their constant data.

    Tensor names are compared; the names of layers and graphs are not.
    """
    differences = _field_differences("graph", left, right, "inputs", "outputs")
    if len(left.layers) != len(right.layers):
        differences.append(f"{len(left.layers)} and {len(right.layers)} layers")
    for index, (a, b) in enumerate(zip(left.layers, right.layers, strict=False)):
        differences += _field_differences(f"layer {index} {a.type}", a, b, "type", "rounding", "inputs", "outputs")
        differences += _descriptor_differences(f"layer {index} {a.type}", a.descriptor, b.descriptor)
    used = [_used(graph) for graph in (left, right)]
    if used[0].keys() != used[1].keys():
        differences.append(f"tensors: {sorted(used[0].keys() ^ used[1].keys())} on one side only")
    for name in used[0].keys() & used[1].keys():
        differences += _tensor_differences(used[0][name], used[1][name])
    return differences


def _descriptor_differences(where: str, left: Descriptor, right: Descriptor) -> list[str]:
    if type(left) is not type(right):
        return [f"{where} descriptor: {left} and {right}"]
    names = [field.name for field in fields(left) if field.name not in left.graphs]
    differences = _field_differences(f"{where} descriptor", left, right, *names)
    for name, graph in left.graphs.items():
        differences += [f"{where} {name}: {each}" for each in graph_differences(graph, right.graphs[name])]
    return differences


def _field_differences(where: str, left: object, right: object, *names: str) -> list[str]:
    pairs = [(field, getattr(left, field), getattr(right, field)) for field in names]
    return [f"{where} {field}: {a} and {b}" for field, a, b in pairs if a != b]


def _used(graph: Graph) -> dict[str, Tensor]:
    return {tensor.info.name: tensor for tensor in graph.tensors}


def _tensor_differences(left: Tensor, right: Tensor) -> list[str]:
    if left.info != right.info:
        return [f"{left.info} and {right.info}"]
    if (left.data is None) != (right.data is None):
        return [f"'{left.info.name}' is a constant on one side only"]
    if left.data is not None and right.data is not None and not _same_bits(left.data, right.data):
        return [f"the data of '{left.info.name}' differ"]
    return []


def _same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
