# SPDX-License-Identifier: Apache-2.0
"""A row of the operator table."""

from __future__ import annotations

from collections.abc import Callable

from ferrule._frozen import positional
from ferrule.errors import ModelError
from ferrule.formats.limits import check_count
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.node import Node
from ferrule.graph import LayerType

MANY = (1 << 12) - 1
"""The most inputs or outputs of an operator."""


@positional
class Row:
    """How the nodes of one operator become layers."""

    emit: Callable[[Call], Value | None]
    """Adds the layers of a node and returns the first output; None if all outputs are declared already."""
    least: int = 1
    """The least number of inputs."""
    most: int = 0
    """The most inputs; 0 for `least`."""
    outputs: int = 1
    """The most outputs."""
    first_is_optional: bool = False
    """Whether the first output may be absent."""
    layer: LayerType | None = None
    """The layer that computes the operator on integers too, if its kernel has the rule."""
    joined: int = 0
    """The most inputs of a node that two nodes of a model have become; 0 for `most`."""

    def check(self, node: Node, *, given: bool = False) -> None:
        """Raise ModelError for a wrong number of inputs or outputs; `given` says that the node is one of the model."""
        most = max(self.most or self.least, 0 if given else self.joined)
        check_count("inputs", node.inputs, range(self.least, most + 1))
        check_count("outputs", node.outputs, range(1, self.outputs + 1))
        if not node.output and not self.first_is_optional:
            raise ModelError("its first output has no name")
