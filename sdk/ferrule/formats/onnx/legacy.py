# SPDX-License-Identifier: Apache-2.0
"""Nodes of old operator sets in the form that the operators have had since opset 13.

What an operator took as attributes and takes as inputs now becomes constants. Where the form is the same and the
meaning is another one, the row of the operator has the old meaning, by `Node.version`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ferrule._frozen import positional
from ferrule.errors import ModelError, place
from ferrule.formats.onnx.node import GraphRecord, Node, outer_names
from ferrule.formats.onnx.parse import DATA_TYPES
from ferrule.graph import Array
from ferrule.graph.names import UniqueNames

READ_AS = 13
"""The opset whose forms the rows of the operator table take."""


class Constants:
    """The constants that are made from attributes of one graph's nodes."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.made: dict[str, Array] = {}
        self._names = UniqueNames(taken)

    def add(self, node: Node, role: str, values: npt.ArrayLike, dtype: npt.DTypeLike) -> str:
        """Return the name of a new constant."""
        try:
            data = np.array(values, dtype)
        except (ValueError, OverflowError, TypeError) as error:
            raise ModelError(f"its attribute '{role}' does not fit {np.dtype(dtype)}") from error
        name = self._names.take(f"{node.output or node.index}_{role}")
        self.made[name] = data
        return name


@positional
class Change:
    """How one operator was written before an opset."""

    since: int
    """The opset that changed it; an earlier node is rewritten, or its row has the old meaning."""
    rewrite: Callable[[Node, Constants], Node] = lambda node, _: node


def _lists(*names: str, needed: int = 0) -> Callable[[Node, Constants], Node]:
    """Return the rewriting of attributes that are lists of integers into inputs; the first `needed` must be present."""

    def rewrite(node: Node, constants: Constants) -> Node:
        if len(node.inputs) > 1:  # the first form of Split had an input already
            return node
        inputs = [node.source]
        for index, name in enumerate(names):
            present = index < needed or name in node.attributes
            inputs.append(constants.add(node, name, node.integers(name), np.int64) if present else "")
        return _with_inputs(node, inputs, names)

    return rewrite


def _with_inputs(node: Node, inputs: Sequence[str], dropped: Iterable[str] = ()) -> Node:
    names = list(inputs)
    while names and not names[-1]:
        names.pop()
    left = {name: value for name, value in node.attributes.items() if name not in set(dropped)}
    return replace(node, inputs=tuple(names), attributes=left)


def _cast(node: Node, _: Constants) -> Node:
    wanted = node.text("to")
    numbers = {name.upper(): number for number, name in DATA_TYPES.items()}
    if wanted.upper() not in numbers:
        raise ModelError(f"its attribute 'to' is '{wanted}', expected one of {', '.join(numbers)}")
    return replace(node, attributes={**node.attributes, "to": numbers[wanted.upper()]})


def _clip(node: Node, constants: Constants) -> Node:
    limits = [
        constants.add(node, name, node.number(name), np.float32) if name in node.attributes else ""
        for name in ("min", "max")
    ]
    return _with_inputs(node, (node.source, *limits), ("min", "max"))


def _concat(node: Node, _: Constants) -> Node:
    return replace(node, attributes={"axis": 1, **node.attributes})


def _pad(node: Node, constants: Constants) -> Node:
    name = "pads" if "pads" in node.attributes else "paddings"
    pads = constants.add(node, name, node.integers(name), np.int64)
    value = constants.add(node, "value", node.number("value"), np.float32) if "value" in node.attributes else ""
    return _with_inputs(node, (node.source, pads, value), (name, "value"))


def _selu(node: Node, _: Constants) -> Node:
    return replace(
        node, attributes={"alpha": float(np.float32(1.6732)), "gamma": float(np.float32(1.0507)), **node.attributes}
    )


def _top_k(node: Node, constants: Constants) -> Node:
    return _with_inputs(node, (node.source, constants.add(node, "k", [node.integer("k")], np.int64)), ("k",))


def _resize(node: Node, _: Constants) -> Node:
    return _with_inputs(node, (node.source, "", *node.inputs[1:]))


def _upsample(node: Node, constants: Constants) -> Node:
    """Return the Resize that an Upsample is, whose factors were attributes before opset 9."""
    if len(node.inputs) == 1:
        if "scales" in node.attributes:
            value = node.attributes["scales"]
            factors = value if isinstance(value, tuple) else ()
        else:
            factors = (1.0, 1.0, node.number("height_scale"), node.number("width_scale"))
        node = node.reading((node.source, constants.add(node, "scales", factors, np.float32)))
    if len(node.inputs) != 2:
        raise ModelError(f"it has {len(node.inputs)} inputs, expected 1 or 2")
    mode = "linear" if node.text("mode", "nearest") in {"linear", "bilinear"} else node.text("mode", "nearest")
    return replace(_resize(node, constants), op="Resize", attributes={"mode": mode})


CHANGES: Mapping[str, Change] = {
    **dict.fromkeys(("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "PRelu", "Sub", "Xor"),
                    Change(7)),
    **dict.fromkeys(("LogSoftmax", "Softmax"), Change(13)),
    "BatchNormalization": Change(9),
    "Cast": Change(6, _cast),
    "Clip": Change(11, _clip),
    "Concat": Change(4, _concat),
    "Pad": Change(11, _pad),
    "Reshape": Change(5, _lists("shape", needed=1)),
    "Resize": Change(11, _resize),
    "Selu": Change(6, _selu),
    "Slice": Change(10, _lists("starts", "ends", "axes", needed=2)),
    "Split": Change(13, _lists("split")),
    "Squeeze": Change(13, _lists("axes")),
    "TopK": Change(10, _top_k),
    "Unsqueeze": Change(13, _lists("axes", needed=1)),
    "Upsample": Change(10, _upsample),
}  # fmt: skip
"""The operators that were written otherwise, by their names in ONNX's own domain."""


def modern(record: GraphRecord) -> GraphRecord:
    """Return a graph, with its inner graphs, whose nodes have the forms of opset 13.

    Raises:
        ModelError: an attribute of a node is not what its opset has.
    """
    constants = Constants([*record.constants, *record.values, *_names(record)])
    nodes = tuple(_modern(node, constants) for node in record.nodes)
    return replace(record, nodes=nodes, constants={**record.constants, **constants.made})


def _modern(node: Node, constants: Constants) -> Node:
    if node.graphs:
        node = replace(node, graphs={name: modern(graph) for name, graph in node.graphs.items()})
    if not _is_old(node):
        return node
    with place(node.where, node.key):
        return CHANGES[node.op].rewrite(node, constants)


def _names(record: GraphRecord) -> Iterator[str]:
    """Yield the names of tensors that a graph reads or writes."""
    for node in record.nodes:
        yield from node.outputs
    yield from outer_names(record)


def old_nodes(record: GraphRecord) -> Counter[str]:
    """Return how many nodes of a graph and its inner graphs are of an older form, by operator."""
    found = Counter(node.op for node in record.nodes if _is_old(node))
    for node in record.nodes:
        for graph in node.graphs.values():
            found += old_nodes(graph)
    return found


def _is_old(node: Node) -> bool:
    change = CHANGES.get(node.key)
    return change is not None and 0 < node.version < change.since
