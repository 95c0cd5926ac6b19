# SPDX-License-Identifier: Apache-2.0
"""The layer support of GpuAcc."""

from __future__ import annotations

from ferrule.backends.backend import Support
from ferrule.backends.gpu_acc.opencl import choose_device, unavailable_reason
from ferrule.backends.gpu_acc.workloads.factory import WORKLOADS, needs_float64, types_of
from ferrule.backends.gpu_acc.workloads.moving import move
from ferrule.backends.target import Target
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.products import has_zero_point

_MOST_ELEMENTS = (1 << 31) - 1
_TERMS = 2
_SMALLEST_SCALE = 2.0**-100


class GpuAccSupport:
    """Supports layers that have a kernel, if the machine has an OpenCL device."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether a usable OpenCL kernel exists for the layer."""
        if layer.type not in WORKLOADS:
            return Support(f"there is no OpenCL kernel for {layer.type}")
        reason = unavailable_reason()
        if reason:
            return Support(reason)
        operands = Operands.of(graph, layer)
        try:
            OPERATORS[layer.type].accept(layer.descriptor, operands)
        except FerruleError as error:
            return Support(str(error))
        return Support(_refusal(graph, layer, operands))


def _refusal(graph: Graph, layer: Layer, operands: Operands) -> str:
    """Return the reason why no kernel accepts a layer that its operator accepts; "" if there is none."""
    for info in (*operands.inputs, *operands.outputs):
        if info is not None and info.elements > _MOST_ELEMENTS:
            return f"tensor '{info.name}' has {info.elements} elements, OpenCL kernels take at most {_MOST_ELEMENTS}"
    rows, types = WORKLOADS[layer.type], types_of(layer.type, operands)
    source, output = operands.ends
    if types not in rows:
        pairs = " or ".join(f"{a} to {b}" for a, b in rows)
        return f"tensors '{source.name}' and '{output.name}' are {types[0]} to {types[1]}, expected {pairs}"
    make, operator = rows[types], OPERATORS[layer.type]
    if layer.type is LayerType.ADD_N and len(layer.inputs) != _TERMS:
        return f"it has {len(layer.inputs)} inputs, the kernel adds {_TERMS}"
    if operator.weighted and has_zero_point(operands.input(1)):
        return f"weights '{operands.input(1).name}' have a zero point that is not 0, expected symmetric weights"
    # weights and bias, and the indices of layers that move elements, are read when the layer is loaded
    constants = (1, 2) if operator.weighted else operator.indices if make is move else ()
    for index in constants:
        name = layer.inputs[index] if index < len(layer.inputs) else None
        if name is not None and not graph.tensor(name).is_constant:
            return f"tensor '{name}' is computed at run time, expected a constant"
    if needs_float64(make, types) and not choose_device().has_float64:
        return f"tensor '{source.name}' is float32, which needs float64 that {choose_device().title} lacks"
    if layer.type is LayerType.QUANTIZE and source.dtype.is_float and output.scale < _SMALLEST_SCALE:
        return f"tensor '{output.name}' has scale {output.scale:g}, expected at least 2^-100"
    return ""
