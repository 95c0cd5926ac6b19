# SPDX-License-Identifier: Apache-2.0
"""A row of the operator table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ferrule.errors import ModelError
from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.node import Node

MANY = 1 << 12
"""Limit on the number of inputs or outputs of an operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How the nodes of one operator become layers."""

    emit: Callable[[Call], None]
    """Adds the layers of a node and declares its outputs."""
    inputs: range = range(1, 2)
    """The allowed numbers of inputs."""
    outputs: range = range(1, 2)
    first_is_optional: bool = False
    """Whether the first output may be absent."""

    def check(self, node: Node) -> None:
        """Raise ModelError for a wrong number of inputs or outputs."""
        for what, names, allowed in (("inputs", node.inputs, self.inputs), ("outputs", node.outputs, self.outputs)):
            if len(names) not in allowed:
                last = allowed[-1]
                expected = f"{allowed[0]}" if len(allowed) == 1 else f"{allowed[0]} to {last}"
                raise ModelError(f"it has {len(names)} {what}, expected {expected}")
        if not node.outputs[0] and not self.first_is_optional:
            raise ModelError("its first output has no name")
