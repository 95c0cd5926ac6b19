# SPDX-License-Identifier: Apache-2.0
"""Requantisations that multiply and divide with int64, as int32 operators with the same results.

NEMO and DORY (Conti, "Technical report: NEMO DNN quantization for deployment model", arXiv:2004.05930) write networks
of integers in float32, and between two layers Cast to int64, Mul by m, Div by d, Cast to float32, and Clip. Numbers
whose results lie beyond the Clip are limited before. What is left fits int32, at once or in two parts, since
floor(v * m / d) = a * m + floor(r * m / d) for v = a * d + r.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.formats.onnx.node import GraphRecord, Node, clip_bounds
from ferrule.formats.onnx.normalise import Normalised
from ferrule.formats.onnx.rewriting import Rewriting
from ferrule.graph import Array

_FLOAT32, _INT32, _INT64 = 1, 6, 7
"""Numbers of the enum TensorProto.DataType."""
_LIMIT = 1 << 31
_MOST_CASTS = 4
_SAME_TYPE = frozenset({"Add", "BatchNormalization", "Conv", "Div", "Gemm", "MatMul", "Mul", "Sub"})
"""Operators whose inputs have the type of their output."""
_MOVING = frozenset({"Abs", "Ceil", "Clip", "Floor", "Relu", "Round"})
"""Operators whose first input has the type of their output."""


@frozen
class _Share:
    """A product and a quotient that become those of int32."""

    divide: Node
    replaced: tuple[str, str]
    """The tensors of int64 before the quotient, whose nodes vanish."""
    source: str
    factor: Array
    divisor: Array
    largest: np.float32
    """The number from which on all results lie beyond the Clip."""
    parts: bool
    """Whether the quotient and the rest are multiplied by themselves, since the whole product exceeds 32 bits."""


def without_long_shares(record: GraphRecord, graph: Normalised) -> Normalised:
    """Return the nodes of a graph without requantisations of int64; those that cannot be replaced stay."""
    return _Rewriting(record, graph).run()


class _Rewriting(Rewriting):
    def __init__(self, record: GraphRecord, graph: Normalised) -> None:
        super().__init__(record, graph)
        self._floats = {value.name for value in (*record.inputs, *record.values.values()) if value.type == _FLOAT32}
        for node in graph.nodes:
            data = [self._constants.get(name) for name in node.inputs]
            if (node.key in _MOVING and node.source in self._floats) or (
                node.key in _SAME_TYPE and any(each is not None and each.dtype == np.float32 for each in data)
            ):
                self._floats.update(node.outputs)

    def run(self) -> Normalised:
        found = [share for node in self._graph.nodes if (share := self._share(node)) is not None]
        shares = {share.divide.index: share for share in found}
        replaced = {name for share in found for name in share.replaced}
        nodes: list[Node] = []
        for node in self._graph.nodes:
            if node.index in shares:
                nodes += self._made(shares[node.index])
            elif node.output not in replaced:
                nodes.append(node)
        return replace(self._graph, nodes=tuple(nodes), constants=self._constants)

    def _only_reader(self, name: str, op: str) -> Node | None:
        readers = self._readers.get(name, [])
        return readers[0] if name not in self._kept and len(readers) == 1 and readers[0].key == op else None

    def _share(self, cast: Node) -> _Share | None:
        """Return the requantisation that begins with a node; None if none does."""
        if cast.key != "Cast" or cast.attributes.get("to") != _INT64 or cast.source not in self._floats:
            return None
        multiply = self._only_reader(cast.output, "Mul")
        divide = None if multiply is None else self._only_reader(multiply.output, "Div")
        if multiply is None or divide is None or divide.source != multiply.output:
            return None
        others = [name for name in multiply.inputs if name != cast.output]
        factor, divisor = (self._constants.get(name) for name in (*others, *divide.inputs[1:]))
        limits = self._limits(divide.output)
        if factor is None or divisor is None or limits is None or factor.size != 1 or divisor.size != 1:
            return None
        numbers = _numbers(int(factor.item()), int(divisor.item()), limits)
        if numbers is None:
            return None
        return _Share(
            divide=divide,
            replaced=(cast.output, multiply.output),
            source=cast.source,
            factor=factor,
            divisor=divisor,
            largest=numbers[0],
            parts=numbers[1],
        )

    def _limits(self, name: str) -> tuple[float, float] | None:
        """Return the limits of the Clip behind some Casts."""
        for _ in range(_MOST_CASTS):
            clip = self._only_reader(name, "Clip")
            if clip is not None:
                return clip_bounds(clip.inputs, self._constants.get)
            cast = self._only_reader(name, "Cast")
            if cast is None or cast.attributes.get("to") not in {_FLOAT32, _INT64}:
                return None
            name = cast.output
        return None

    def _made(self, share: _Share) -> list[Node]:
        node = share.divide
        names = {role: self._names.take(f"{node.output}_{role}") for role in _ROLES}
        low, high = (
            self._constant(node, role, np.array(each, np.float32))
            for role, each in (("lowest", 0), ("largest", share.largest))
        )
        by, over = (
            self._constant(node, role, each.astype(np.int32))
            for role, each in (("factor", share.factor), ("divisor", share.divisor))
        )
        whole = names["integers"]
        first = [
            node.made("Clip", (share.source, low, high), names["limited"]),
            node.made("Cast", (names["limited"],), whole, to=_INT32),
        ]
        if not share.parts:
            return [
                *first,
                node.made("Mul", (whole, by), names["product"]),
                node.made("Div", (names["product"], over), node.output),
            ]
        return [
            *first,
            node.made("Div", (whole, over), names["quotient"]),
            node.made("Mul", (names["quotient"], over), names["multiple"]),
            node.made("Sub", (whole, names["multiple"]), names["rest"]),
            node.made("Mul", (names["quotient"], by), names["large"]),
            node.made("Mul", (names["rest"], by), names["product"]),
            node.made("Div", (names["product"], over), names["small"]),
            node.made("Add", (names["large"], names["small"]), node.output),
        ]


_ROLES = ("limited", "integers", "product", "quotient", "multiple", "rest", "large", "small")


def _numbers(factor: int, divisor: int, limits: tuple[float, float]) -> tuple[np.float32, bool] | None:
    """Return the largest number that is left, and whether the product has parts; None if 32 bits are too few."""
    if min(factor, divisor) < 1 or divisor >= _LIMIT or limits[0] < 0 or not limits[0] <= limits[1] < _LIMIT:
        return None
    least = -(-(math.floor(limits[1]) + 1) * divisor // factor)  # from it on, results are above the upper limit
    largest = np.float32(least)
    if int(largest) < least:
        largest = np.nextafter(largest, np.float32(np.inf))
    most = int(largest)
    parts = most * factor >= _LIMIT
    if most >= _LIMIT or (parts and max((divisor - 1) * factor, (most // divisor + 1) * factor) >= _LIMIT):
        return None
    return largest, parts
