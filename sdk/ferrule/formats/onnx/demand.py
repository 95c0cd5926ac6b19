# SPDX-License-Identifier: Apache-2.0
"""Which integers the readers of a tensor ask for, through operators that only move, select or limit its elements.

Rounding to integers and these operators can change places: each result is one of the elements, a limit or a padding,
and rounding does not change which number is larger. So where all readers of a tensor end in a QuantizeLinear with the
same scale and zero point, the tensor can be quantised before them, and its operator computes with integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.formats.onnx import moved
from ferrule.formats.onnx.encoding import DEQUANTIZE, QUANTIZE
from ferrule.formats.onnx.fusion import CLAMPS
from ferrule.formats.onnx.node import GraphRecord, Node, outer_names
from ferrule.graph import Array

_Identity = tuple[object, ...]
"""What tells parameters of a conversion from others."""


def quantised_before(
    record: GraphRecord, nodes: Sequence[Node], constants: Mapping[str, Array]
) -> dict[str, tuple[str, ...]]:
    """Return the tensors to quantise where they are made, with the scale and the zero point that their readers state.

    Those that are integers already, and moved only, are not among them, nor those that a QuantizeLinear alone reads.
    """
    demands = _Demands(record, constants)
    for node in reversed(nodes):
        demands.take(node)
    held: set[str] = set()
    for node in nodes:
        padded = node.key == "Pad" and node.has_input(2)
        if node.key in DEQUANTIZE or (_moves(node) and node.source in held and not padded):
            held.update(node.outputs)
    made = {name for node in nodes for name in node.outputs} | {value.name for value in record.inputs}
    found = demands.found()
    return {name: found[name] for name in found if name in made - held - constants.keys()}


def _moves(node: Node) -> bool:
    """Whether all results of an operator have elements of its first input alone, and perhaps others round it."""
    return moved.moves_all(node) or node.key == "Split"


class _Demands:
    """The demands of readers, while the nodes are taken from the last one to the first."""

    def __init__(self, record: GraphRecord, constants: Mapping[str, Array]) -> None:
        self._constants = constants
        self._parameters: dict[_Identity, tuple[str, ...]] = {}
        self._asked: dict[str, list[_Identity | None]] = {}
        """By tensor: what each reader asks for; None for one that needs real numbers."""
        self._moved: set[str] = set()
        """Tensors with a reader that is no QuantizeLinear."""
        for value in record.outputs:
            self._ask(value.name, None)

    def take(self, node: Node) -> None:
        """Note what a node asks of its inputs; those behind it were taken before."""
        for graph in node.graphs.values():
            for name in outer_names(graph):
                self._ask(name, None)
        passed = self._passed(node)
        wanted = self._conversion(node) if node.key in QUANTIZE else self._common(node)
        for position, name in enumerate(node.inputs):
            self._ask(name, wanted if position in passed else None)
            if node.key not in QUANTIZE | CLAMPS:
                self._moved.add(name)

    def found(self) -> dict[str, tuple[str, ...]]:
        """Return the scale and the zero point by tensor, of which operators read the integers in several places."""
        several = {name for name, asked in self._asked.items() if len(asked) > 1}
        common = {name: self._agreed(name) for name in sorted(self._moved | several)}
        return {name: self._parameters[key] for name, key in common.items() if key is not None}

    def _passed(self, node: Node) -> range:
        """Return the positions of the inputs whose elements the results have."""
        if moved.joins(node):
            return range(len(node.inputs) - len(moved.joined(node)), len(node.inputs))
        return range(1 if node.key in QUANTIZE | CLAMPS or _moves(node) else 0)

    def _conversion(self, node: Node) -> _Identity | None:
        """Return the parameters of a QuantizeLinear if they are one constant scale and zero point."""
        names = node.inputs[1:3]
        found = [self._constants.get(name) for name in names if name]
        if not found or any(each is None or each.size != 1 for each in found):
            return None
        key = *((str(each.dtype), each.item()) for each in found if each is not None), len(names)
        self._parameters.setdefault(key, tuple(node.inputs[1:]))
        return key

    def _common(self, node: Node) -> _Identity | None:
        """Return what all results of an operator that are read are quantised to."""
        wanted = {self._agreed(name) for name in node.outputs if name in self._asked}
        return wanted.pop() if len(wanted) == 1 else None

    def _agreed(self, name: str) -> _Identity | None:
        """Return what all readers of a tensor ask for; None if they differ, or if there is none."""
        asked = set(self._asked.get(name, ()))
        return asked.pop() if len(asked) == 1 else None

    def _ask(self, name: str, wanted: _Identity | None) -> None:
        self._asked.setdefault(name, []).append(wanted)
