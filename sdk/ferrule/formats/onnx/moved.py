# SPDX-License-Identifier: Apache-2.0
"""Operators that only move or select elements; between conversions, they do so with the stored integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ferrule.formats.onnx.encoding import Encoding
from ferrule.formats.onnx.integers import Held, Integers, Target
from ferrule.formats.onnx.node import Node
from ferrule.graph import Array

_MOVING = frozenset(
    {
        "DepthToSpace",
        "Dropout",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "GlobalMaxPool",
        "Identity",
        "MaxPool",
        "ReduceMax",
        "ReduceMin",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
"""The operators whose results are elements of their first input, whatever these stand for."""
_JOINING: Mapping[str, int] = {"Concat": 0, "Max": 0, "Min": 0, "Where": 1}
"""The operators whose results are elements of several inputs, with the first of these."""


def moves(node: Node) -> bool:
    """Whether the results of an operator are elements of its first input, whatever these stand for."""
    return node.key in _MOVING or (node.key == "Resize" and node.text("mode", "nearest") == "nearest")


def moves_all(node: Node) -> bool:
    """Whether the only result of an operator has elements of its first input alone, and perhaps a constant round it."""
    return sum(map(bool, node.outputs)) == 1 and (moves(node) or node.key == "Pad")


def joins(node: Node) -> bool:
    """Whether the result of an operator has the elements of several inputs."""
    return node.key in _JOINING


def joined(node: Node) -> tuple[str, ...]:
    """Return the inputs of an operator that joins, whose elements its result has."""
    return node.inputs[_JOINING[node.key] :]


def _rectify(node: Node, tensors: Integers) -> bool:
    """Clamp integers in place of real numbers: rounding does not change which is larger."""
    source = node.source
    bounds = tensors.bounds(node)
    held = tensors.reals.get(source)
    if bounds is None or held is None:
        return False
    target = tensors.target(node.output, *bounds)
    if target is not None:
        tensors.finish(target, tensors.converted(source, target.encoding))
        return True
    return held.data is None and _clamp(node.output, held, bounds, tensors)


def _clamp(output: str, held: Held, bounds: tuple[float, float], tensors: Integers) -> bool:
    """Clamp integers that nothing quantises again; return False unless integers stand for the limits exactly."""
    encoding = held.encoding
    if not encoding.is_byte:
        return False
    low, high = encoding.quantised(np.array(bounds, np.float32)).tolist()
    first, last = encoding.dequantised(np.array([low, high], encoding.type)).tolist()
    least, most = encoding.limits
    exact_low = first == bounds[0] or (low == least and bounds[0] < first)
    exact_high = last == bounds[1] or (high == most and bounds[1] > last)
    if not (exact_low and exact_high):
        return False
    target = Target(output=tensors.new(f"{output}_int8"), encoding=encoding, low=low, high=high, absorbed=frozenset())
    tensors.reals[output] = Held(tensors.clamped(held.name, target), encoding)
    return True


def _move(node: Node, tensors: Integers) -> bool:
    held = tensors.reals.get(node.source)
    if held is None or (held.data is None and not held.encoding.is_byte):
        return False
    if held.data is not None:
        return move_constant(node, held, tensors.reals, tensors)
    others = [tensors.real(name) for name in node.inputs[1:]]
    target = tensors.target(node.output) if len(node.outputs) == 1 else None
    if target is not None and target.encoding != held.encoding:
        target = None
    return _added(node.reading((held.name, *others)), held.encoding, target, tensors)


def move_constant(node: Node, held: Held, known: dict[str, Held], tensors: Integers) -> bool:
    """Compute what becomes of a constant, such as weights that are transposed; `known` receives the results."""
    assert held.data is not None
    encoding = held.encoding
    if node.key == "Clip" and (bounds := tensors.bounds(node)) is not None:
        data = np.clip(held.data, *encoding.within(bounds)).astype(held.data.dtype)
        known[node.output] = Held(node.output, encoding, data)
        return True
    if encoding.per_channel:
        if node.key != "Transpose":
            return False
        encoding = encoding.transposed(node.integers("perm", tuple(reversed(range(held.data.ndim)))))
    others = [tensors.constants.get(name) for name in node.inputs[1:]]
    if any(each is None for each, name in zip(others, node.inputs[1:], strict=True) if name):
        return False
    results = tensors.folding.outputs(node, [held.data, *others])
    for name, result in zip(node.outputs, results or (), strict=False):
        known[name] = Held(name, encoding, result)
    return results is not None


def _pad(node: Node, tensors: Integers) -> bool:
    source = node.source
    held = tensors.reals.get(source)
    if held is None or held.data is not None:
        return False
    number = tensors.numbers(node.inputs[2]) if node.has_input(2) else np.zeros((), np.float32)
    target = tensors.target(node.output)
    encoding = held.encoding if target is None else target.encoding
    if number is None or number.size != 1 or (target is None and number.any()):
        return False
    inputs = [tensors.converted(source, encoding), tensors.real(node.inputs[1]) if node.has_input(1) else "", ""]
    if number.any():
        inputs[2] = tensors.constant(f"{node.output}_padding", encoding.quantised(number.reshape(())), encoding)
    return _added(node.reading((*inputs, *node.inputs[3:])), encoding, target, tensors)


def _join(node: Node, tensors: Integers) -> bool:
    first = _JOINING[node.key]
    names = node.inputs[first:]
    numbers = {name: tensors.numbers(name) for name in names}
    computed = [tensors.reals.get(name) for name in names if numbers[name] is None]
    target = tensors.target(node.output)
    common = {None if held is None else held.encoding for held in computed}
    encoding = common.pop() if target is None and len(common) == 1 else None
    if target is not None:
        encoding = target.encoding if computed else None
    elif encoding is not None and not all(
        _is_exact(node, data, encoding) for data in numbers.values() if data is not None
    ):
        return False
    if encoding is None or not encoding.is_byte:
        return False
    inputs = [*map(tensors.real, node.inputs[:first]), *(tensors.converted(name, encoding) for name in names)]
    return _added(node.reading(inputs), encoding, target, tensors)


def _is_exact(node: Node, data: Array, encoding: Encoding) -> bool:
    """Whether integers stand for all numbers of a constant exactly, or for limits that no other operand passes."""
    if not encoding.is_byte:
        return False
    least, most = encoding.dequantised(np.array(encoding.limits, encoding.type))
    if node.key == "Max":
        data = np.maximum(data, least)
    elif node.key == "Min":
        data = np.minimum(data, most)
    return bool(np.array_equal(encoding.dequantised(encoding.quantised(data)), data))


def _added(node: Node, encoding: Encoding, target: Target | None, tensors: Integers) -> bool:
    """Add a node whose outputs have the encoding of its inputs, and return True; only one output has a target."""
    if target is not None:
        tensors.add_for(target, node)
        return True
    names = [tensors.new(f"{name}_int8") if name else "" for name in node.outputs]
    for name, stored in zip(node.outputs, names, strict=True):
        if name:
            tensors.types[stored] = encoding.stored()
            tensors.reals[name] = Held(stored, encoding)
    tensors.nodes.append(replace(node, outputs=tuple(names)))
    return True


_MERGES = {"Clip": _rectify, "Pad": _pad, "Relu": _rectify, **dict.fromkeys(_JOINING, _join)}


def merge_of(node: Node) -> Callable[[Node, Integers], bool] | None:
    """Return the function that adds a node on integers for one on real numbers; it returns False if there is none.

    None for operators whose results are not elements of their inputs, limits or padding.
    """
    return _move if moves(node) else _MERGES.get(node.key)
