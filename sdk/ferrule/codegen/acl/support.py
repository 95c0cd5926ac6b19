# SPDX-License-Identifier: Apache-2.0
"""Whether a layer can be part of the class, and if not, why."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.codegen.acl.rows import AclOptions, LayerView
from ferrule.codegen.acl.table import REASONS, ROWS
from ferrule.graph import DataType, Graph, Layer, Rounding
from ferrule.operators.table import BEYOND_TFLITE, OPERATORS

VERSIONS = ("20.08", "24.11")
"""The versions of the library with which the classes were compiled and run."""
_MAX_RANK = 6
"""Of the library's tensors: arm_compute::MAX_DIMS."""
_BIAS = 2
"""The position of the bias among the inputs of a layer with weights."""


@frozen
class LayerUse:
    """What becomes of a layer: the functions of the library, or the reason why there are none."""

    layer: str
    type: str
    functions: tuple[str, ...]
    reason: str


def supported(graph: Graph, layer: Layer, options: AclOptions) -> str:
    """Return why a layer cannot be part of the class; "" if it can."""
    row = ROWS.get(layer.type)
    if row is None:
        if layer.type in BEYOND_TFLITE or layer.type not in OPERATORS:
            return "only the optimizer inserts such layers"
        return REASONS.get(layer.type, "the library has no function for it")
    if layer.rounding is not Rounding.TFLM:
        return f"it rounds by {layer.rounding.phrase} ('{layer.rounding}'), which the library does not compute"
    infos = [graph.info(name) for name in (*layer.present_inputs, *layer.outputs)]
    for info in infos:
        if len(info.shape) > _MAX_RANK:
            return f"'{info.name}' has {len(info.shape)} dimensions, and the library's tensors at most {_MAX_RANK}"
    data = [graph.info(name) for index, name in enumerate(layer.inputs) if name is not None and _is_data(layer, index)]
    for info in (*data, *graph.output_infos(layer)):
        if info.dtype not in row.types:
            return f"'{info.name}' is {info.dtype}, expected {', '.join(sorted(row.types))}"
        if info.dtype is DataType.INT8 and info.quantization is None:
            return f"'{info.name}' is int8 without scale and zero point"
        if info.dtype is DataType.INT8 and options.float16:
            return f"'{info.name}' is int8, and the class computes in float16"
    return row.check(LayerView(layer=layer, graph=graph, options=options))


def _is_data(layer: Layer, index: int) -> bool:
    """Whether an input is neither a bias nor an index, which have types of their own."""
    operator = OPERATORS[layer.type]
    return index not in operator.indices and not (operator.weighted and index == _BIAS)
