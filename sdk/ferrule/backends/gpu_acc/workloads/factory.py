# SPDX-License-Identifier: Apache-2.0
"""GpuAcc's workload factory, and the table of its layer types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from ferrule._typing import override
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.gpu_acc.workloads.elementwise import (
    COMPARISONS,
    arithmetic,
    binary,
    cast,
    comparison,
    extremum,
    pairs,
    quantize,
    select,
    table,
    unary,
)
from ferrule.backends.gpu_acc.workloads.launch import CopyWorkload, KernelWorkload, Launch, Loading
from ferrule.backends.gpu_acc.workloads.moving import gather, move
from ferrule.backends.gpu_acc.workloads.rows import (
    l2_normalization,
    log_softmax,
    normalize_float,
    place,
    reduction,
    softmax,
    total,
)
from ferrule.backends.gpu_acc.workloads.windows import pool2d, resize_bilinear, weighted
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS, having

Types = tuple[DataType, DataType]
"""The element types of a layer's data and of its first output."""
Make = Callable[[Loading], Launch | list[Launch] | CopyWorkload]
"""A function or class that makes a layer's launches or its workload."""

_WITH_FLOAT64 = frozenset({binary, normalize_float, quantize, resize_bilinear, total, unary})
"""The functions whose kernels compute float32 data in float64."""


def needs_float64(make: Make, types: Types) -> bool:
    """Return whether a kernel for these types needs float64."""
    return make in _WITH_FLOAT64 and types[0] is DataType.FLOAT32


_INT8 = (DataType.INT8, DataType.INT8)
_INT32 = (DataType.INT32, DataType.INT32)
_FLOAT32 = (DataType.FLOAT32, DataType.FLOAT32)
_BOOL = (DataType.BOOL, DataType.BOOL)
_SAME = tuple((dtype, dtype) for dtype in DataType)
_BINARY = {_FLOAT32: binary, _INT32: binary}
_COMPARED = (DataType.FLOAT32, DataType.INT32, DataType.INT64)
_NOT_CASTABLE = (DataType.FLOAT16, DataType.UINT32, DataType.UINT64)
_CASTABLE = tuple(dtype for dtype in DataType if dtype not in _NOT_CASTABLE)


def _each(row: Mapping[Types, Make], *layer_types: LayerType) -> Mapping[LayerType, Mapping[Types, Make]]:
    return dict.fromkeys(layer_types, row)


WORKLOADS: Mapping[LayerType, Mapping[Types, Make]] = {
    **_each(dict.fromkeys(_SAME, move), *sorted(having(moves=True))),
    **_each(dict.fromkeys(_SAME, gather), LayerType.EMBEDDING_LOOKUP, LayerType.GATHER, LayerType.GATHER_ND),
    **_each(dict.fromkeys(_SAME, CopyWorkload), LayerType.EXPAND_DIMS, LayerType.RESHAPE, LayerType.SQUEEZE),
    **_each(
        {_INT8: weighted},
        LayerType.CONV_2D,
        LayerType.DEPTHWISE_CONV_2D,
        LayerType.FULLY_CONNECTED,
        LayerType.TRANSPOSE_CONV,
    ),
    **_each({_INT8: pool2d}, LayerType.AVERAGE_POOL_2D, LayerType.MAX_POOL_2D),
    LayerType.RESIZE_BILINEAR: {_INT8: resize_bilinear, _FLOAT32: resize_bilinear},
    **_each(
        {_FLOAT32: unary},
        LayerType.CEIL,
        LayerType.COS,
        LayerType.EXP,
        LayerType.FLOOR,
        LayerType.LOG,
        LayerType.NEG,
        LayerType.ROUND,
        LayerType.SIGN,
        LayerType.SIN,
        LayerType.SQRT,
        LayerType.SQUARE,
    ),
    **_each(
        {_INT8: table, _FLOAT32: unary},
        LayerType.ABS,
        LayerType.ELU,
        LayerType.HARD_SWISH,
        LayerType.LEAKY_RELU,
        LayerType.LOGISTIC,
        LayerType.RELU,
        LayerType.RELU6,
        LayerType.RELU_N1_TO_1,
        LayerType.RSQRT,
        LayerType.TANH,
    ),
    **_each({_INT8: arithmetic, **_BINARY}, LayerType.ADD, LayerType.MUL, LayerType.SUB),
    **_each({_INT8: extremum, **_BINARY}, LayerType.MAXIMUM, LayerType.MINIMUM),
    **_each({_INT8: pairs, **_BINARY}, LayerType.DIV, LayerType.SQUARED_DIFFERENCE),
    **_each({_INT8: pairs, _FLOAT32: binary}, LayerType.ADD_N, LayerType.PRELU),
    **_each(_BINARY, LayerType.FLOOR_DIV, LayerType.FLOOR_MOD),
    LayerType.BITWISE_XOR: {_INT32: binary},
    LayerType.LOOKUP: {_INT8: table},
    **_each(
        {
            (DataType.INT8, DataType.BOOL): pairs,
            _BOOL: pairs,
            **{(dtype, DataType.BOOL): comparison for dtype in _COMPARED},
        },
        *COMPARISONS,
    ),
    **_each({_BOOL: pairs}, LayerType.LOGICAL_AND, LayerType.LOGICAL_OR),
    LayerType.LOGICAL_NOT: {_BOOL: table},
    LayerType.SELECT_V2: dict.fromkeys(_SAME, select),
    LayerType.CAST: dict.fromkeys(itertools.product(_CASTABLE, _CASTABLE), cast),
    LayerType.QUANTIZE: {_INT8: table, (DataType.FLOAT32, DataType.INT8): quantize},
    LayerType.DEQUANTIZE: {(DataType.INT8, DataType.FLOAT32): table},
    LayerType.L2_NORMALIZATION: {_INT8: l2_normalization, _FLOAT32: normalize_float},
    LayerType.LOG_SOFTMAX: {_INT8: log_softmax, _FLOAT32: normalize_float},
    LayerType.SOFTMAX: {_INT8: softmax, _FLOAT32: normalize_float},
    **_each({_INT8: total, _FLOAT32: total}, LayerType.MEAN, LayerType.SUM),
    **_each({_INT8: reduction, _FLOAT32: reduction}, LayerType.REDUCE_MAX, LayerType.REDUCE_MIN),
    **_each({_BOOL: reduction}, LayerType.REDUCE_ALL, LayerType.REDUCE_ANY),
    **_each(
        {(DataType.INT8, DataType.INT32): place, (DataType.FLOAT32, DataType.INT32): place},
        LayerType.ARG_MAX,
        LayerType.ARG_MIN,
    ),
}
"""By layer type and element types, the function that makes the launches."""


def types_of(layer_type: LayerType, operands: Operands) -> Types:
    """Return the element types by which a layer's row is found."""
    follows = layer_type is LayerType.SELECT_V2 or 0 in OPERATORS[layer_type].indices
    return operands.input(int(follows)).dtype, operands.output.dtype


class GpuAccWorkloadFactory(WorkloadFactory):
    """Makes the workloads of one loaded network; they share its session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        make = WORKLOADS.get(info.layer.type, {}).get(types_of(info.layer.type, info.operands))
        if make is None:
            raise UnsupportedError(f"layer '{info.layer.name}': there is no OpenCL kernel for {info.layer.type}")
        loading = Loading(info, self._session)
        made = make(loading)
        if isinstance(made, CopyWorkload):
            return made
        return KernelWorkload(loading, [made] if isinstance(made, Launch) else made)
