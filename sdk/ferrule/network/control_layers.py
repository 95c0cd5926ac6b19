# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers which run other graphs."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.graph import Descriptor, Graph, TensorInfo
from ferrule.network.builder import LayerBuilder
from ferrule.operators.control_flow import DEFAULT_ITERATIONS, IfDescriptor, WhileDescriptor


class ControlLayers(LayerBuilder):
    """Methods that add layers which run other graphs; the graphs must not change afterwards.

    The outputs have the descriptions of the graphs' outputs. See `ShapeLayers` for the names and the errors.
    """

    def add_if_layer(
        self,
        condition: str,
        sources: Sequence[str],
        then_branch: Graph,
        else_branch: Graph,
        *,
        name: str | None = None,
    ) -> tuple[str, ...]:
        """Add IF and return the names of its outputs: `name` followed by _0, _1..., without a number if there is one.

        `condition` is one bool; the graphs have an input for each of `sources` and the same outputs.
        """
        descriptor = IfDescriptor(then_branch=then_branch, else_branch=else_branch)
        return self._append_calls(descriptor, [condition, *sources], then_branch.outputs, name)

    def add_while_layer(
        self,
        sources: Sequence[str],
        condition: Graph,
        body: Graph,
        *,
        limit: int = DEFAULT_ITERATIONS,
        name: str | None = None,
    ) -> tuple[str, ...]:
        """Add WHILE and return the names of its outputs, as `add_if_layer` does.

        Both graphs have an input for each of `sources`. `condition` has one output, a bool, and `body` the values
        behind an iteration. A run with more than `limit` iterations fails.
        """
        descriptor = WhileDescriptor(condition=condition, body=body, limit=limit)
        return self._append_calls(descriptor, sources, body.outputs, name)

    def _append_calls(
        self,
        descriptor: Descriptor,
        sources: Sequence[str],
        outputs: Sequence[TensorInfo],
        name: str | None,
    ) -> tuple[str, ...]:
        return self._append(
            descriptor,
            sources,
            name=name,
            quantization=[info.quantization for info in outputs],
            dtype=[info.dtype for info in outputs],
            outputs=len(outputs),
        )
