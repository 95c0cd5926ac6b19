# SPDX-License-Identifier: Apache-2.0
"""GpuAcc's workload factory, and the table of its layer types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.gpu_acc.workloads.elementwise import (
    COMPARISONS,
    binary,
    cast,
    comparison,
    pairs,
    select,
    unary,
)
from ferrule.backends.gpu_acc.workloads.launch import Loading
from ferrule.backends.gpu_acc.workloads.moving import gather, move
from ferrule.backends.gpu_acc.workloads.normalizing import l2_normalization, log_softmax, normalize_float
from ferrule.backends.gpu_acc.workloads.reducing import place, reduction, total
from ferrule.backends.gpu_acc.workloads.resizing import resize_bilinear
from ferrule.backends.gpu_acc.workloads.simple import (
    CopyWorkload,
    arithmetic,
    extremum,
    pool2d,
    quantize,
    softmax,
    table,
)
from ferrule.backends.gpu_acc.workloads.weighted import (
    conv2d,
    depthwise_conv2d,
    fully_connected,
    transpose_conv,
)
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS, having

Types = tuple[DataType, DataType]
"""The element types of a layer's data and of its first output."""


@frozen
class Row:
    """How a layer type is computed for some element types."""

    make: Callable[[Loading], Workload]
    """The function or class that makes a workload."""
    constants: tuple[int, ...] = ()
    """Positions of the inputs that must be constants, if they are present."""
    float64: bool = False
    """Whether the kernel needs float64."""


def _rows(row: Row, *types: Types) -> Mapping[Types, Row]:
    return dict.fromkeys(types, row)


_INT8 = (DataType.INT8, DataType.INT8)
_INT32 = (DataType.INT32, DataType.INT32)
_FLOAT32 = (DataType.FLOAT32, DataType.FLOAT32)
_BOOL = (DataType.BOOL, DataType.BOOL)
_SAME = tuple((dtype, dtype) for dtype in DataType)
_GATHER = _rows(Row(make=gather), *_SAME)
_COPY = _rows(Row(make=CopyWorkload), *_SAME)
_POOL = _rows(Row(make=pool2d), _INT8)
_PAIRS, _TABLE = _rows(Row(make=pairs), _INT8), _rows(Row(make=table), _INT8)
_BINARY = {_FLOAT32: Row(make=binary, float64=True), _INT32: Row(make=binary)}
_BINARY_FLOAT = _rows(Row(make=binary, float64=True), _FLOAT32)
_UNARY = _rows(Row(make=unary, float64=True), _FLOAT32)
_COMPARISON: Mapping[Types, Row] = {
    (DataType.INT8, DataType.BOOL): Row(make=pairs),
    _BOOL: Row(make=pairs),
    **_rows(
        Row(make=comparison), *((dtype, DataType.BOOL) for dtype in (DataType.FLOAT32, DataType.INT32, DataType.INT64))
    ),
}
_REDUCTION = _rows(Row(make=reduction), _INT8, _FLOAT32)
_PLACE = _rows(Row(make=place), (DataType.INT8, DataType.INT32), (DataType.FLOAT32, DataType.INT32))
_TOTAL = {_INT8: Row(make=total), _FLOAT32: Row(make=total, float64=True)}
_NORMALIZE = _rows(Row(make=normalize_float, float64=True), _FLOAT32)
_WEIGHTS = (1, 2)
_NOT_CASTABLE = (DataType.FLOAT16, DataType.UINT32, DataType.UINT64)
_CASTABLE = tuple(dtype for dtype in DataType if dtype not in _NOT_CASTABLE)

WORKLOADS: Mapping[LayerType, Mapping[Types, Row]] = {
    **{
        type_: _rows(Row(make=move, constants=OPERATORS[type_].indices), *_SAME) for type_ in sorted(having(moves=True))
    },
    LayerType.ABS: {**_TABLE, **_UNARY},
    LayerType.ADD: {_INT8: Row(make=arithmetic), **_BINARY},
    LayerType.ADD_N: {**_PAIRS, **_BINARY_FLOAT},
    LayerType.ARG_MAX: _PLACE,
    LayerType.ARG_MIN: _PLACE,
    LayerType.AVERAGE_POOL_2D: _POOL,
    LayerType.BITWISE_XOR: _rows(Row(make=binary), _INT32),
    LayerType.CAST: _rows(Row(make=cast), *itertools.product(_CASTABLE, _CASTABLE)),
    LayerType.CEIL: _UNARY,
    LayerType.CONV_2D: _rows(Row(make=conv2d, constants=_WEIGHTS), _INT8),
    LayerType.COS: _UNARY,
    LayerType.DEPTHWISE_CONV_2D: _rows(Row(make=depthwise_conv2d, constants=_WEIGHTS), _INT8),
    LayerType.DEQUANTIZE: _rows(Row(make=table), (DataType.INT8, DataType.FLOAT32)),
    LayerType.DIV: {**_PAIRS, **_BINARY},
    LayerType.ELU: {**_TABLE, **_UNARY},
    LayerType.EMBEDDING_LOOKUP: _GATHER,
    LayerType.EXP: _UNARY,
    LayerType.EXPAND_DIMS: _COPY,
    LayerType.FLOOR: _UNARY,
    LayerType.FLOOR_DIV: _BINARY,
    LayerType.FLOOR_MOD: _BINARY,
    LayerType.FULLY_CONNECTED: _rows(Row(make=fully_connected, constants=_WEIGHTS), _INT8),
    LayerType.GATHER: _GATHER,
    LayerType.GATHER_ND: _GATHER,
    LayerType.HARD_SWISH: {**_TABLE, **_UNARY},
    LayerType.L2_NORMALIZATION: {_INT8: Row(make=l2_normalization), **_NORMALIZE},
    LayerType.LEAKY_RELU: {**_TABLE, **_UNARY},
    LayerType.LOG: _UNARY,
    LayerType.LOGICAL_AND: _rows(Row(make=pairs), _BOOL),
    LayerType.LOGICAL_NOT: _rows(Row(make=table), _BOOL),
    LayerType.LOGICAL_OR: _rows(Row(make=pairs), _BOOL),
    LayerType.LOGISTIC: {**_TABLE, **_UNARY},
    LayerType.LOG_SOFTMAX: {_INT8: Row(make=log_softmax), **_NORMALIZE},
    LayerType.MAXIMUM: {_INT8: Row(make=extremum), **_BINARY},
    LayerType.MAX_POOL_2D: _POOL,
    LayerType.MEAN: _TOTAL,
    LayerType.MINIMUM: {_INT8: Row(make=extremum), **_BINARY},
    LayerType.MUL: {_INT8: Row(make=arithmetic), **_BINARY},
    LayerType.NEG: _UNARY,
    LayerType.PRELU: {**_PAIRS, **_BINARY_FLOAT},
    LayerType.QUANTIZE: {
        _INT8: Row(make=quantize),
        (DataType.FLOAT32, DataType.INT8): Row(make=quantize, float64=True),
    },
    LayerType.REDUCE_ALL: _rows(Row(make=reduction), _BOOL),
    LayerType.REDUCE_ANY: _rows(Row(make=reduction), _BOOL),
    LayerType.REDUCE_MAX: _REDUCTION,
    LayerType.REDUCE_MIN: _REDUCTION,
    LayerType.RELU: {**_TABLE, **_UNARY},
    LayerType.RELU6: {**_TABLE, **_UNARY},
    LayerType.RELU_N1_TO_1: {**_TABLE, **_UNARY},
    LayerType.RESHAPE: _COPY,
    LayerType.RESIZE_BILINEAR: {
        _INT8: Row(make=resize_bilinear),
        _FLOAT32: Row(make=resize_bilinear, float64=True),
    },
    LayerType.ROUND: _UNARY,
    LayerType.RSQRT: {**_TABLE, **_UNARY},
    LayerType.SELECT_V2: _rows(Row(make=select), *_SAME),
    LayerType.SIGN: _UNARY,
    LayerType.SIN: _UNARY,
    LayerType.SOFTMAX: {_INT8: Row(make=softmax), **_NORMALIZE},
    LayerType.SQRT: _UNARY,
    LayerType.SQUARE: _UNARY,
    LayerType.SQUARED_DIFFERENCE: {**_PAIRS, **_BINARY},
    LayerType.SQUEEZE: _COPY,
    LayerType.SUB: {_INT8: Row(make=arithmetic), **_BINARY},
    LayerType.SUM: _TOTAL,
    LayerType.TANH: {**_TABLE, **_UNARY},
    LayerType.TRANSPOSE_CONV: _rows(Row(make=transpose_conv, constants=_WEIGHTS), _INT8),
    **dict.fromkeys(COMPARISONS, _COMPARISON),
}
"""The rows of each layer type, by element types."""


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
        row = WORKLOADS.get(info.layer.type, {}).get(types_of(info.layer.type, info.operands))
        if row is None:
            raise UnsupportedError(f"layer '{info.layer.name}': there is no OpenCL kernel for {info.layer.type}")
        return row.make(Loading(info, self._session))
