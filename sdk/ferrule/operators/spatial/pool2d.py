# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import ONNX_ROUNDINGS, Array, DataType, Descriptor, LayerType, Rounding
from ferrule.graph.real_values import ieee_floats, overflowing_floats
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.error_bound import LARGEST_SUM, least, monotone, of_floats, rounding, sums
from ferrule.operators.arithmetic.fixed_point import activation_range
from ferrule.operators.arithmetic.window import NO_PADDING, Padding, Window, padded
from ferrule.operators.elementwise.onnx_elementwise import OnnxOutput
from ferrule.operators.elementwise.quantize import real_values
from ferrule.operators.movement.checks import check_activations, check_same_quantisation, expect_type
from ferrule.operators.operator import Evaluation, Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample
from ferrule.operators.weighted.products import clamp_float


@frozen
class Pool2dDescriptor(Descriptor):
    """One input and one output, NHWC. Padded pixels are ignored."""

    pool_h: int
    pool_w: int
    stride_h: int = 1
    stride_w: int = 1
    padding: Padding = NO_PADDING
    activation: Activation = Activation.NONE

    @property
    def window(self) -> Window:
        """The sliding window."""
        return Window(
            height=self.pool_h,
            width=self.pool_w,
            stride_h=self.stride_h,
            stride_w=self.stride_w,
            padding=self.padding,
        )


def _infer(descriptor: Pool2dDescriptor, operands: Operands) -> Shapes:
    image = operands.source
    height, width = descriptor.window.output_size(image)
    return ((image.shape[0], height, width, image.shape[3]),)


def _check(descriptor: Pool2dDescriptor, operands: Operands) -> None:
    image, output, padding = operands.source, operands.output, descriptor.padding
    expect_type(image, DataType.FLOAT32, DataType.INT8, DataType.INT16)
    if output.dtype is not image.dtype:
        raise UnsupportedError(f"tensor '{output.name}' is {output.dtype}, expected {image.dtype} like the input")
    if max(padding.top, padding.bottom) >= descriptor.pool_h or max(padding.left, padding.right) >= descriptor.pool_w:
        raise UnsupportedError(
            f"a window of {descriptor.pool_h}x{descriptor.pool_w} with {padding} can lie outside the image, "
            "expected less padding than window"
        )
    if image.dtype.is_float:
        return
    check_activations(image, output)
    if operands.rounding is Rounding.TFLM:
        check_same_quantisation(operands)
    activation_range(descriptor.activation, output)


def window_counts(extent: int, size: int, stride: int, before: int, outputs: int) -> Array:
    """Return the number of pixels of an axis that each window covers, without padding."""
    first = np.arange(outputs) * stride - before
    return np.minimum(first + size, extent) - np.maximum(first, 0)


def _counts(descriptor: Pool2dDescriptor, operands: Operands) -> Array:
    """Return the number of pixels in each window, as [height, width, 1]."""
    image, (_, out_h, out_w, _) = operands.source, operands.output.shape
    window, pad = descriptor.window, descriptor.padding
    rows = window_counts(image.shape[1], window.height, window.stride_h, pad.top, out_h)
    columns = window_counts(image.shape[2], window.width, window.stride_w, pad.left, out_w)
    return np.asarray((rows[:, None] * columns)[:, :, None])


def _means(descriptor: Pool2dDescriptor, operands: Operands, image: Array) -> Array:
    """Return the means of the windows in float64."""
    source = padded(image, descriptor.padding, 0, np.dtype(np.float64))
    with ieee_floats():
        return _reduce_windows(np.add, source, descriptor, operands) / _counts(descriptor, operands)


def _average(descriptor: Pool2dDescriptor, operands: Operands, image: Array) -> Array:
    if operands.output.dtype.is_float:
        return clamp_float(_means(descriptor, operands, image), descriptor.activation).astype(np.float32)
    if operands.rounding is not Rounding.TFLM:
        return _average_onnx(descriptor, operands, image)
    counts, source = _counts(descriptor, operands), padded(image, descriptor.padding, 0, np.dtype(np.int64))
    sums = _reduce_windows(np.add, source, descriptor, operands)
    # Halves round away from zero: divide the magnitudes, then restore the sign.
    means = np.sign(sums) * ((np.abs(sums) + counts // 2) // counts)
    limits = activation_range(descriptor.activation, operands.output)
    return np.asarray(np.clip(means, *limits), operands.output.dtype.numpy)


def _average_onnx(descriptor: Pool2dDescriptor, operands: Operands, image: Array) -> Array:
    """Return the means as onnxruntime's QLinearAveragePool: float32 sums in the order of the pixels, row by row.

    By the rule with columns first, the sums of the columns of a window are added.
    """
    output, window = operands.output, descriptor.window
    _, out_h, out_w, _ = output.shape
    source = padded(real_values(image, operands.source), descriptor.padding, 0, np.dtype(np.float32))
    total = np.zeros(output.shape, np.float32)
    down, across = (out_h - 1) * window.stride_h + 1, (out_w - 1) * window.stride_w + 1
    with ieee_floats():
        if operands.rounding is Rounding.ONNX_COLUMNS:
            rows = np.zeros((source.shape[0], out_h, *source.shape[2:]), np.float32)
            for y in range(window.height):
                rows += source[:, y : y + down : window.stride_h]
            for x in range(window.width):
                total += rows[:, :, x : x + across : window.stride_w]
        else:
            for y in range(window.height):
                for x in range(window.width):
                    total += source[:, y : y + down : window.stride_h, x : x + across : window.stride_w]
        means = total / _counts(descriptor, operands).astype(np.float32)
        result = OnnxOutput.of(output, descriptor.activation, operands.rounding)
        steps = np.asarray(means / np.float32(output.scale) + np.float32(result.zero_point), np.float32)
        return result.store(steps).astype(np.int8)


def _terms(descriptor: Pool2dDescriptor, _: Operands) -> int:
    """Return the pixels of a window, and one for the division."""
    return descriptor.pool_h * descriptor.pool_w + 1


def _reads(descriptor: Pool2dDescriptor, operands: Operands) -> int:
    return operands.output.elements * descriptor.pool_h * descriptor.pool_w


def _norm_bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the norm: the relative error of the sum, halved by the root, and the norm of the errors."""
    (output,), (error,) = evaluation.outputs, evaluation.errors
    moved = np.zeros(output.shape)
    if error is not None:
        unclamped = replace(evaluation.descriptor, activation=Activation.NONE)
        with overflowing_floats():
            moved = _norm(unclamped, evaluation.operands, error).astype(np.float64)
    terms, magnitude = _terms(evaluation.descriptor, evaluation.operands), np.abs(output.astype(np.float64)) + moved
    found = 1.001 * moved + rounding(evaluation, magnitude, terms / 4 + 2) + math.sqrt(least(evaluation))
    return [np.where(terms * np.square(magnitude) < LARGEST_SUM, found, np.inf)]


def _check_norm(descriptor: Pool2dDescriptor, operands: Operands) -> None:
    image = operands.source
    if image.dtype is not DataType.FLOAT32:
        raise UnsupportedError(f"tensor '{image.name}' is {image.dtype}, expected float32: there is no other kernel")
    _check(descriptor, operands)


def _norm(descriptor: Pool2dDescriptor, operands: Operands, data: Array) -> Array:
    """Return the square roots of the means of the squares."""
    image = data.astype(np.float64)
    return clamp_float(np.sqrt(_means(descriptor, operands, image * image)), descriptor.activation).astype(np.float32)


def _maximum(descriptor: Pool2dDescriptor, operands: Operands, image: Array) -> Array:
    dtype = operands.output.dtype.numpy
    lowest = -np.inf if operands.output.dtype.is_float else int(np.iinfo(dtype).min)
    if operands.output.dtype.is_float:  # as in TensorFlow Lite Micro, a NaN never exceeds another number
        image = np.where(np.isnan(image), np.float32(lowest), image)
    source = padded(image, descriptor.padding, lowest, dtype)
    maxima = _reduce_windows(np.maximum, source, descriptor, operands)
    if operands.output.dtype.is_float:
        return clamp_float(np.array(maxima), descriptor.activation)
    return np.clip(maxima, *activation_range(descriptor.activation, operands.output))


def _reduce_windows(operation: np.ufunc, source: Array, descriptor: Pool2dDescriptor, operands: Operands) -> Array:
    """Combine the pixels of each window, first along the height, then along the width."""
    window, (_, out_h, out_w, _) = descriptor.window, operands.output.shape
    rows = _reduce_axis(operation, source, 1, window.height, window.stride_h, out_h)
    return _reduce_axis(operation, rows, 2, window.width, window.stride_w, out_w)


def _reduce_axis(operation: np.ufunc, source: Array, axis: int, size: int, stride: int, outputs: int) -> Array:
    if outputs == 1:
        result: Array = operation.reduce(_slice(source, axis, 0, size, 1), axis=axis, keepdims=True)
        return result
    last = (outputs - 1) * stride + 1
    result = np.array(_slice(source, axis, 0, last, stride))
    for tap in range(1, size):
        operation(result, _slice(source, axis, tap, tap + last, stride), out=result)
    return result


def _slice(source: Array, axis: int, start: int, stop: int, step: int) -> Array:
    return source[:, start:stop:step] if axis == 1 else source[:, :, start:stop:step]


def _sample(sample: LayerSample) -> Descriptor:
    shape = sample.image()
    window, strides = sample.pair(3), sample.pair(2)
    sample.keep(shape)
    return Pool2dDescriptor(
        pool_h=window[0],
        pool_w=window[1],
        stride_h=strides[0],
        stride_w=strides[1],
        padding=sample.padding(shape, window, strides),
        activation=sample.activation(),
    )


AVERAGE_POOL_2D = Operator(
    descriptor=Pool2dDescriptor,
    type=LayerType.AVERAGE_POOL_2D,
    shapes=_infer,
    check=_check,
    kernel=of_one(_average),
    bound=of_floats(sums(_terms, divisor=_terms), monotone),
    rules=frozenset({Rounding.TFLM, Rounding.ONNX_COLUMNS}) | ONNX_ROUNDINGS,
    reads=_reads,
    sample=_sample,
)
MAX_POOL_2D = Operator(
    descriptor=Pool2dDescriptor,
    type=LayerType.MAX_POOL_2D,
    shapes=_infer,
    check=_check,
    kernel=of_one(_maximum),
    reads=_reads,
    sample=_sample,
)
L2_POOL_2D = Operator(
    descriptor=Pool2dDescriptor,
    type=LayerType.L2_POOL_2D,
    shapes=_infer,
    check=_check_norm,
    kernel=of_one(_norm),
    bound=_norm_bound,
    reads=_reads,
    sample=_sample,
)
