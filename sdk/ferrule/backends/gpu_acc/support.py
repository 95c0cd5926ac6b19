# SPDX-License-Identifier: Apache-2.0
"""The layer support of GpuAcc."""

from __future__ import annotations

from ferrule.backends.backend import Support
from ferrule.backends.gpu_acc.opencl import choose_device, unavailable_reason
from ferrule.backends.gpu_acc.workloads.factory import WORKLOADS
from ferrule.backends.target import Target
from ferrule.errors import FerruleError
from ferrule.graph import DataType, Graph, Layer, LayerType
from ferrule.operators.conv2d import groups_of
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted import has_zero_point

_MOST_ELEMENTS = (1 << 31) - 1
_SMALLEST_SCALE = 2.0**-100
_WEIGHTED = frozenset({LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D, LayerType.FULLY_CONNECTED})
_MOVING = frozenset({LayerType.RESHAPE, LayerType.SQUEEZE, LayerType.EXPAND_DIMS})
_BOTH_INT8 = ((DataType.INT8, DataType.INT8),)
_TYPES = {
    LayerType.QUANTIZE: ((DataType.INT8, DataType.INT8), (DataType.FLOAT32, DataType.INT8)),
    LayerType.DEQUANTIZE: ((DataType.INT8, DataType.FLOAT32),),
}


class GpuAccSupport:
    """Supports int8 layers that have a kernel, if the machine has an OpenCL device."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether a usable OpenCL kernel exists for the layer."""
        if layer.type not in WORKLOADS:
            return Support(reason=f"there is no OpenCL kernel for {layer.type}")
        reason = unavailable_reason()
        if reason:
            return Support(reason=reason)
        operands = Operands(inputs=graph.input_infos(layer), outputs=graph.output_infos(layer))
        try:
            OPERATORS[layer.type].check(layer.descriptor, operands)
        except FerruleError as error:
            return Support(reason=str(error))
        return Support(reason=_refusal(graph, layer, operands))


def _refusal(graph: Graph, layer: Layer, operands: Operands) -> str:
    """Return the reason why no kernel accepts a layer that its operator accepts; "" if there is none."""
    for info in (*operands.inputs, *operands.outputs):
        if info is not None and info.elements > _MOST_ELEMENTS:
            return f"tensor '{info.name}' has {info.elements} elements, OpenCL kernels take at most {_MOST_ELEMENTS}"
    if layer.type in _MOVING:
        return ""
    source, output = operands.input(0), operands.output
    wanted = _TYPES.get(layer.type, _BOTH_INT8)
    if (source.dtype, output.dtype) not in wanted:
        pairs = " or ".join(f"{a} to {b}" for a, b in wanted)
        return f"tensors '{source.name}' and '{output.name}' are {source.dtype} to {output.dtype}, expected {pairs}"
    if layer.type in _WEIGHTED:
        if has_zero_point(operands.input(1)):
            return f"weights '{operands.input(1).name}' have a zero point that is not 0, expected symmetric weights"
        for name in layer.inputs[1:]:
            if name is not None and not graph.tensor(name).is_constant:
                return f"tensor '{name}' is computed at run time, expected constant weights and bias"
    if layer.type is LayerType.CONV_2D and groups_of(source, operands.input(1)) > 1:
        return f"it has {groups_of(source, operands.input(1))} groups, expected one"
    if layer.type is LayerType.QUANTIZE and source.dtype is DataType.FLOAT32:
        if not choose_device().has_float64:
            return f"tensor '{source.name}' is float32, which needs float64 that {choose_device().title} lacks"
        if output.scale < _SMALLEST_SCALE:
            return f"tensor '{output.name}' has scale {output.scale:g}, expected at least 2^-100"
    return ""
