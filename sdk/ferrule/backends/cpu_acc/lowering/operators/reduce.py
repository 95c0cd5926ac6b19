# SPDX-License-Identifier: Apache-2.0
"""Reductions in C: MEAN, SUM, AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import float_limits, kernel_call, window_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row, choose
from ferrule.backends.cpu_acc.lowering.operators.unary import unary_call
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext, numbers
from ferrule.dom import Aggregate, Field
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Rounding, Shape
from ferrule.operators.fixed_point import activation_range, wrap_int32
from ferrule.operators.onnx_elementwise import OnnxOutput
from ferrule.operators.pool2d import Pool2dDescriptor
from ferrule.operators.reduce import ReduceDescriptor, divisor, reduced_count, rescaling

_LOOPS = 4


def lower_reduce(context: LoweringContext) -> LoweredOp:
    """Return the call for MEAN or SUM; neighbouring axes are merged so that the kernel has the fewest loops."""
    layer = context.layer
    descriptor = layer.descriptor
    if not isinstance(descriptor, ReduceDescriptor):
        raise UnsupportedError(f"layer '{layer.name}' has a {type(descriptor).__name__}")
    source, output = context.input(0), context.operands.output
    kept, reduced = loops(source.shape, descriptor.axes)
    if source.dtype is DataType.FLOAT32:
        return unary_call(
            context,
            "reduce_f32",
            header="reduce",
            parameters="reduce_f32_params",
            kept=loops_value(kept),
            reduced=loops_value(reduced),
            divisor=float(divisor(layer.type, descriptor, source)),
        )
    if context.operands.rounding is Rounding.ONNX_FLOAT:
        return unary_call(
            context,
            "real_mean_s8",
            header="reduce",
            parameters="real_mean_params",
            kept=loops_value(kept),
            reduced=loops_value(reduced),
            count=reduced_count(descriptor, source),
            zero_point=source.zero_point,
            output_zero_point=output.zero_point,
            scale=source.scale,
            output_scale=output.scale,
        )
    offset = int(wrap_int32(-source.zero_point * reduced_count(descriptor, source)))
    multiplier, shift = rescaling(layer.type, descriptor, context.operands)
    if context.operands.rounding is not Rounding.TFLM:
        return unary_call(
            context,
            "float_mean_s8",
            header="reduce",
            parameters="float_mean_params",
            kept=loops_value(kept),
            reduced=loops_value(reduced),
            offset=offset,
            output_zero_point=output.zero_point,
            factor=math.ldexp(multiplier, shift - 31),
        )
    return unary_call(
        context,
        "reduce_s8" if source.dtype is DataType.INT8 else "reduce_s16",
        header="reduce",
        parameters="reduce_int_params",
        kept=loops_value(kept),
        reduced=loops_value(reduced),
        offset=offset,
        output_zero_point=output.zero_point,
        multiplier=multiplier,
        shift=shift,
    )


def loops(shape: Shape, axes: tuple[int, ...]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return (extent, stride) of the loops over the kept axes and over the reduced axes, outermost first."""
    found: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
    previous: bool | None = None
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        kind = axis in axes
        stride = math.prod(shape[axis + 1 :])
        if kind is previous:
            outer, _ = found[kind].pop()
            found[kind].append((outer * extent, stride))
        else:
            found[kind].append((extent, stride))
        previous = kind
    return found[False], found[True]


def loops_value(found: list[tuple[int, int]]) -> Aggregate:
    """Return the initial value of a `struct ferrule_reduce_loops`."""
    if len(found) > _LOOPS:
        raise UnsupportedError(f"there is no kernel for reductions with {len(found)} loops, expected at most {_LOOPS}")
    padded = [(1, 0)] * (_LOOPS - len(found)) + found
    extents, strides = np.array(padded, np.int32).T
    return Aggregate((Field(numbers(extents), "extents"), Field(numbers(strides), "strides")))


_MOST_COLUMNS = 256
"""The value of FERRULE_POOL2D_MOST_COLUMNS."""
_POOL_SUFFIXES = {DataType.INT8: "s8", DataType.INT16: "s16", DataType.FLOAT32: "f32"}


def lower_pool2d(context: LoweringContext) -> LoweredOp:
    """Return the call for AVERAGE_POOL_2D, MAX_POOL_2D or L2_POOL_2D."""
    return choose(context, POOL_2D_ROWS[context.layer.type])


def lower_onnx_pool2d(context: LoweringContext) -> LoweredOp:
    """Return the call for AVERAGE_POOL_2D by ONNX's rule."""
    descriptor, image, output = _pool_descriptor(context), context.input(0), context.operands.output
    window = descriptor.window
    result = OnnxOutput.of(output, descriptor.activation, context.operands.rounding)
    columns = context.operands.rounding is Rounding.ONNX_COLUMNS
    kernel = "columns_average_pool2d_s8" if columns else "float_average_pool2d_s8"
    return kernel_call(
        context,
        kernel,
        header="pool2d",
        table="float_pool2d_params",
        overlaps=pixel_overlaps(context, window, image, output, reads=Reads.PER_CHANNEL),
        contribution=KERNELS.part(kernel),
        window=window_value(window, image, output),
        scale=image.scale,
        zero_point=image.zero_point,
        output_scale=output.scale,
        output_zero_point=float(result.zero_point),
        stored_offset=result.stored_offset,
        low=float(result.low),
        high=float(result.high),
    )


def _lower_pool2d(context: LoweringContext, kernel: str) -> LoweredOp:
    descriptor, output = _pool_descriptor(context), context.operands.output
    low: FieldValue
    high: FieldValue
    if output.dtype.is_float:
        table = "pool2d_f32_params"
        low, high = float_limits(descriptor.activation)
    else:
        table = "pool2d_params"
        low, high = activation_range(descriptor.activation, output)
    image, window = context.input(0), descriptor.window
    return kernel_call(
        context,
        kernel,
        header="pool2d",
        table=table,
        overlaps=pixel_overlaps(context, window, image, output, reads=Reads.PER_CHANNEL),
        contribution=KERNELS.part(kernel, *_FURTHER.get(context.layer.type, ())),
        window=window_value(window, image, output),
        low=low,
        high=high,
    )


def _pool2d(context: LoweringContext) -> Candidate:
    kernel = f"{_KINDS[context.layer.type]}_pool2d_{_POOL_SUFFIXES[context.operands.output.dtype]}"
    return Candidate(
        kernel=kernel,
        instructions=_elements_read(context) * 8 + context.operands.output.elements * 20,
        weight_bytes=0,
        lower=lambda: _lower_pool2d(context, kernel),
    )


def _pool2d_words(context: LoweringContext) -> Candidate | str:
    if context.operands.output.dtype is not DataType.INT8:
        return "the data is not int8"
    if _pool_descriptor(context).pool_w > _MOST_COLUMNS:
        return f"the window has more than {_MOST_COLUMNS} columns"
    kernel = f"{_KINDS[context.layer.type]}_pool2d_words_s8"
    words, rest = divmod(context.operands.output.shape[3], 4)
    share = (words * 7 + rest * 7) / (words * 4 + rest)
    return Candidate(
        kernel=kernel,
        instructions=int(_elements_read(context) * share) + context.operands.output.elements * 18,
        weight_bytes=0,
        lower=lambda: _lower_pool2d(context, kernel),
    )


def _pool_descriptor(context: LoweringContext) -> Pool2dDescriptor:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Pool2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return descriptor


def _elements_read(context: LoweringContext) -> int:
    window = _pool_descriptor(context).window
    return context.operands.output.elements * window.height * window.width


_KINDS = {LayerType.AVERAGE_POOL_2D: "average", LayerType.MAX_POOL_2D: "max", LayerType.L2_POOL_2D: "l2"}
_FURTHER = {LayerType.L2_POOL_2D: ("sqrtf",)}
"""The sources that a kernel needs beside its own."""


def _rows(kind: str) -> tuple[Row, ...]:
    return (
        Row(kernel=f"{kind}_pool2d_words_s8", needs=frozenset({Feature.DSP}), candidate=_pool2d_words),
        Row(kernel=f"{kind}_pool2d", candidate=_pool2d),
    )


POOL_2D_ROWS: Mapping[LayerType, tuple[Row, ...]] = {
    LayerType.AVERAGE_POOL_2D: _rows("average"),
    LayerType.MAX_POOL_2D: _rows("max"),
    LayerType.L2_POOL_2D: (Row(kernel="l2_pool2d_f32", candidate=_pool2d),),
}
"""The kernels of the pools."""
