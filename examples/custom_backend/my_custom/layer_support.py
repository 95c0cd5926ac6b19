# SPDX-License-Identifier: Apache-2.0
"""The layers that the device supports."""

from __future__ import annotations

from ferrule.backends import Face, Support, Target
from ferrule.errors import FerruleError
from ferrule.graph import DataType, Graph, Layer, LayerType, Rounding
from ferrule.network import operands_of
from ferrule.operators import OPERATORS

TYPES = (DataType.INT8, DataType.FLOAT32)


class CustomLayerSupport:
    """Supports additions of int8 and float32 tensors of the same shape."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the device supports the layer; the reason names the tensor and the expected properties."""
        if layer.type is not LayerType.ADD:
            return Support(reason=f"the device adds, it has no {layer.type}")
        operands = operands_of(graph, layer)
        output = operands.output
        for info in (operands.input(0), operands.input(1), output):
            if info.dtype not in TYPES:
                return Support(reason=f"tensor '{info.name}' is {info.dtype}, expected {' or '.join(TYPES)}")
            if info.shape != output.shape:
                return Support(
                    reason=f"tensor '{info.name}' has shape {list(info.shape)}, expected {list(output.shape)}: "
                    "the device does not broadcast"
                )
        if layer.rounding is not Rounding.TFLM and target.face is Face.FIRMWARE:
            return Support(reason=f"it rounds by {layer.rounding.phrase}, which the adder of boards does not")
        try:
            OPERATORS[LayerType.ADD].accept(layer.descriptor, operands)
        except FerruleError as error:
            return Support(reason=str(error))
        return Support()
