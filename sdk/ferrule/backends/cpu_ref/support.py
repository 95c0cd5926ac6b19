# SPDX-License-Identifier: Apache-2.0
"""Which layers CpuRef takes."""

from __future__ import annotations

from ferrule.backends.backend import Support
from ferrule.backends.target import Target
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS


class CpuRefSupport:
    """Takes each layer of the operator table that the operator itself accepts: all types but PRE_COMPILED."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether there is a numpy kernel for the layer."""
        operator = OPERATORS.get(layer.type)
        if operator is None:
            return Support(reason=f"there is no numpy kernel for {layer.type}")
        if not isinstance(layer.descriptor, operator.descriptor):
            found, wanted = type(layer.descriptor).__name__, operator.descriptor.__name__
            return Support(reason=f"the descriptor is {found}, expected {wanted}")
        operands = Operands(inputs=graph.input_infos(layer), outputs=graph.output_infos(layer))
        try:
            operator.check(layer.descriptor, operands)
        except FerruleError as error:
            return Support(reason=str(error))
        return Support()
