# SPDX-License-Identifier: Apache-2.0
"""The table of the functions that lower each layer type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ferrule.backends.cpu_acc.lowering.kernel_call import Lowering
from ferrule.backends.cpu_acc.lowering.kernels.choice import Row, choose, costs
from ferrule.backends.cpu_acc.lowering.kernels.equivalent import equivalent
from ferrule.backends.cpu_acc.lowering.operators import signal
from ferrule.backends.cpu_acc.lowering.operators.activation import PRELU_ROWS, lower_nonlinear, lower_rectify
from ferrule.backends.cpu_acc.lowering.operators.add_n import lower_add_n
from ferrule.backends.cpu_acc.lowering.operators.batch_matmul import BATCH_MATMUL_ROWS
from ferrule.backends.cpu_acc.lowering.operators.binary import (
    PRODUCT_ROWS,
    SUM_ROWS,
    lower_div,
    lower_squared_difference,
    lower_without_fields,
)
from ferrule.backends.cpu_acc.lowering.operators.comparison import lower_comparison, lower_logical, lower_select
from ferrule.backends.cpu_acc.lowering.operators.convolution import WEIGHTED_ROWS, weighted_rows
from ferrule.backends.cpu_acc.lowering.operators.detection import lower_detection_postprocess
from ferrule.backends.cpu_acc.lowering.operators.gather import lower_gather, lower_slice, lower_update_slice
from ferrule.backends.cpu_acc.lowering.operators.movement import (
    lower_depth,
    lower_join,
    lower_mirror_pad,
    lower_pad,
    lower_strided,
    lower_tile,
    lower_view,
    lower_zeros_like,
)
from ferrule.backends.cpu_acc.lowering.operators.normalization import (
    lower_l2_normalization,
    lower_layer_normalization,
    lower_log_softmax,
    lower_onnx_softmax,
    lower_softmax,
)
from ferrule.backends.cpu_acc.lowering.operators.onnx_binary import ONNX_PRODUCT_ROWS, ONNX_SUM_ROWS, lower_onnx_pair
from ferrule.backends.cpu_acc.lowering.operators.pooling import POOL_2D_ROWS, lower_onnx_pool2d
from ferrule.backends.cpu_acc.lowering.operators.recurrent import LSTM_ROWS, SVDF_ROWS, lower_circular_buffer
from ferrule.backends.cpu_acc.lowering.operators.reduction import (
    lower_arg_select,
    lower_cumsum,
    lower_reduce,
    lower_reduce_select,
)
from ferrule.backends.cpu_acc.lowering.operators.resize import (
    lower_onnx_resize_bilinear,
    lower_resize_bilinear,
    lower_resize_nearest_neighbor,
)
from ferrule.backends.cpu_acc.lowering.operators.space_to_batch import lower_batch_to_space, lower_space_to_batch
from ferrule.backends.cpu_acc.lowering.operators.unary import (
    lower_cast,
    lower_dequantize,
    lower_elementwise_unary,
    lower_quantize,
    lower_table,
)
from ferrule.backends.firmware import KernelCosts, LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import Layer, LayerType, Rounding
from ferrule.operators.elementwise.comparison import ComparisonDescriptor
from ferrule.operators.elementwise.functions import ElementwiseUnaryDescriptor
from ferrule.operators.elementwise.functions_of_two import ElementwiseBinaryDescriptor
from ferrule.operators.elementwise.rectify import ReluDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.table import family, having


def _by_rule(tflm: Lowering, onnx: Lowering) -> Lowering:
    """Return the lowering of a layer by TFLM's rule or ONNX's."""
    return lambda context: (tflm if context.operands.rounding is Rounding.TFLM else onnx)(context)


ROWS: Mapping[LayerType, Callable[[LoweringContext], Sequence[Row]]] = {
    **dict.fromkeys(WEIGHTED_ROWS, weighted_rows),
    LayerType.BATCH_MATMUL: lambda context: BATCH_MATMUL_ROWS,
    **dict.fromkeys(POOL_2D_ROWS, lambda context: POOL_2D_ROWS[context.layer.type]),
    **dict.fromkeys(
        (LayerType.ADD, LayerType.SUB),
        lambda context: SUM_ROWS if context.operands.rounding is Rounding.TFLM else ONNX_SUM_ROWS,
    ),
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: lambda _: LSTM_ROWS,
    LayerType.SVDF: lambda _: SVDF_ROWS,
    LayerType.PRELU: lambda _: PRELU_ROWS,
    LayerType.MUL: lambda context: PRODUCT_ROWS if context.operands.rounding is Rounding.TFLM else ONNX_PRODUCT_ROWS,
}
"""The kernels among which the lowering of a layer chooses; for AVERAGE_POOL_2D and PRELU, by TFLM's rule."""


def rows_of(context: LoweringContext) -> tuple[LoweringContext, Sequence[Row]]:
    """Return the kernels for a layer, and the context in which they compute it, see `equivalent`."""
    context = equivalent(context)
    return context, ROWS[context.layer.type](context)


def costs_of(context: LoweringContext) -> Sequence[KernelCosts]:
    """Return the costs of the kernels that can run a layer; empty if it is lowered in one way."""
    return costs(*rows_of(context)) if context.layer.type in ROWS else ()


def _chosen(context: LoweringContext) -> LoweredOp:
    return choose(*rows_of(context))


LOWERINGS: Mapping[LayerType, Lowering] = {
    **dict.fromkeys(family(ElementwiseUnaryDescriptor), lower_elementwise_unary),
    **dict.fromkeys(family(ElementwiseBinaryDescriptor), lower_without_fields),
    **dict.fromkeys(ROWS, _chosen),
    LayerType.SOFTMAX: _by_rule(lower_softmax, lower_onnx_softmax),
    LayerType.LOGISTIC: lower_nonlinear,
    LayerType.TANH: lower_nonlinear,
    LayerType.HARD_SWISH: lower_nonlinear,
    LayerType.QUANTIZE: lower_quantize,
    LayerType.DEQUANTIZE: lower_dequantize,
    **dict.fromkeys(family(ReduceDescriptor), lower_reduce_select),
    LayerType.MEAN: lower_reduce,
    LayerType.SUM: lower_reduce,
    LayerType.ARG_MAX: lower_arg_select,
    LayerType.ARG_MIN: lower_arg_select,
    LayerType.CUMSUM: lower_cumsum,
    **dict.fromkeys(having(view=True), lower_view),
    LayerType.AVERAGE_POOL_2D: _by_rule(_chosen, lower_onnx_pool2d),
    LayerType.RESIZE_NEAREST_NEIGHBOR: lower_resize_nearest_neighbor,
    LayerType.RESIZE_BILINEAR: _by_rule(lower_resize_bilinear, lower_onnx_resize_bilinear),
    LayerType.MAXIMUM: lower_without_fields,
    LayerType.MINIMUM: lower_without_fields,
    LayerType.PAD: lower_pad,
    LayerType.PADV2: lower_pad,
    LayerType.TRANSPOSE: lower_strided,
    LayerType.CONCATENATION: lower_join,
    LayerType.SPLIT: lower_strided,
    LayerType.SPLIT_V: lower_strided,
    LayerType.PACK: lower_join,
    LayerType.UNPACK: lower_strided,
    LayerType.GATHER: lower_gather,
    LayerType.GATHER_ND: lower_gather,
    LayerType.EMBEDDING_LOOKUP: lower_gather,
    LayerType.DYNAMIC_UPDATE_SLICE: lower_update_slice,
    LayerType.TILE: lower_tile,
    LayerType.BROADCAST_TO: lower_strided,
    LayerType.FILL: lower_strided,
    LayerType.ZEROS_LIKE: lower_zeros_like,
    LayerType.REVERSE_V2: lower_strided,
    LayerType.MIRROR_PAD: lower_mirror_pad,
    LayerType.SPACE_TO_DEPTH: lower_depth,
    LayerType.DEPTH_TO_SPACE: lower_depth,
    LayerType.SPACE_TO_BATCH_ND: lower_space_to_batch,
    LayerType.BATCH_TO_SPACE_ND: lower_batch_to_space,
    LayerType.SLICE: lower_slice,
    LayerType.STRIDED_SLICE: lower_strided,
    LayerType.PRELU: _by_rule(_chosen, lower_onnx_pair),
    **dict.fromkeys(family(ReluDescriptor), lower_rectify),
    LayerType.LEAKY_RELU: lower_rectify,
    LayerType.DETECTION_POSTPROCESS: lower_detection_postprocess,
    LayerType.CIRCULAR_BUFFER: lower_circular_buffer,
    **signal.LOWERINGS,
    LayerType.CAST: lower_cast,
    LayerType.LOOKUP: lower_table,
    LayerType.ADD_N: lower_add_n,
    LayerType.L2_NORMALIZATION: lower_l2_normalization,
    LayerType.LAYER_NORMALIZATION: lower_layer_normalization,
    LayerType.LOG_SOFTMAX: lower_log_softmax,
    **dict.fromkeys(family(ComparisonDescriptor), lower_comparison),
    LayerType.LOGICAL_AND: lower_logical,
    LayerType.LOGICAL_OR: lower_logical,
    LayerType.SELECT_V2: lower_select,
    LayerType.DIV: _by_rule(lower_div, lower_onnx_pair),
    LayerType.SQUARED_DIFFERENCE: lower_squared_difference,
}
"""The lowering function of each layer type that has a C kernel."""


def lowering_of(layer: Layer) -> Lowering:
    """Return the function that lowers a layer that its operator accepts; UnsupportedError if there is no kernel."""
    lowering = LOWERINGS.get(layer.type)
    if lowering is None:
        raise UnsupportedError(f"layer '{layer.name}': there is no C kernel for {layer.type}")
    return lowering
