# SPDX-License-Identifier: Apache-2.0
"""Which layers CpuRef takes."""

from __future__ import annotations

from ferrule.backends.backend import Support
from ferrule.errors import FerruleError
from ferrule.graph import DataType, Graph, Layer, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

TRANSFERS = frozenset({LayerType.MEM_COPY, LayerType.MEM_IMPORT, LayerType.DEBUG})
"""Layers that hand their input on as it is."""

CONVERSIONS = {
    LayerType.CONVERT_FP16_TO_FP32: (DataType.FLOAT16, DataType.FLOAT32),
    LayerType.CONVERT_FP32_TO_FP16: (DataType.FLOAT32, DataType.FLOAT16),
}


class CpuRefSupport:
    """Takes each layer that the operator itself accepts, and the optimizer's own layers but PRE_COMPILED."""

    def supports(self, graph: Graph, layer: Layer) -> Support:
        """Return whether there is a numpy kernel for the layer."""
        operands = Operands(inputs=graph.input_infos(layer), outputs=graph.output_infos(layer))
        if layer.type in TRANSFERS or layer.type in CONVERSIONS:
            return Support(reason=_misfit(layer, operands))
        operator = OPERATORS.get(layer.type)
        if operator is None:
            return Support(reason=f"there is no numpy kernel for {layer.type}")
        if not isinstance(layer.descriptor, operator.descriptor):
            found, wanted = type(layer.descriptor).__name__, operator.descriptor.__name__
            return Support(reason=f"the descriptor is {found}, expected {wanted}")
        try:
            operator.check(layer.descriptor, operands)
        except FerruleError as error:
            return Support(reason=str(error))
        return Support()


def _misfit(layer: Layer, operands: Operands) -> str:
    """Return why a layer of one input and one output does not fit; "" if it does."""
    if len(operands.inputs) != 1 or len(operands.outputs) != 1 or operands.inputs[0] is None:
        return f"{layer.type} has {len(layer.inputs)} inputs and {len(layer.outputs)} outputs, expected one of each"
    source, target = operands.inputs[0], operands.output
    if source.shape != target.shape:
        return f"tensor '{target.name}' has shape {list(target.shape)}, expected {list(source.shape)} as its input"
    found = (source.dtype, target.dtype)
    wanted = CONVERSIONS.get(layer.type, (source.dtype, source.dtype))
    if found != wanted:
        return f"{layer.type} from {found[0]} to {found[1]}, expected {wanted[0]} to {wanted[1]}"
    return ""
