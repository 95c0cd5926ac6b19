# SPDX-License-Identifier: Apache-2.0
"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Rounding
from ferrule.graph.real_values import ieee_floats, round_half_away
from ferrule.operators.arithmetic.error_bound import monotone, of_floats, sums
from ferrule.operators.elementwise.quantize import quantize_to_even, real_values
from ferrule.operators.movement.checks import check_activations, check_same_quantisation, check_same_type
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample

WHOLE = 1 << 10
"""The weights of two neighbouring integer pixels add up to this number."""
_INT32_MAX = 2**31 - 1


@frozen
class ResizeDescriptor(Descriptor):
    """One input and one output, NHWC, with the same quantisation unless they are rounded by ONNX's rule."""

    height: int
    """Of the output, as `width`."""
    width: int
    align_corners: bool = False
    """The centres of the corner pixels coincide in input and output."""
    half_pixel_centers: bool = False
    """Pixels are sampled at their centres, not at their upper left corners."""


@frozen(eq=False)
class Taps:
    """The two pixels along one axis that each output pixel interpolates, with their weights."""

    lower: Array
    """int64: the index of the first pixel."""
    weight: Array
    """The weight of the next pixel: an int64 below `WHOLE`, or a float32 below 1; 0 if there is no next pixel."""

    @property
    def upper(self) -> Array:
        """int64: the index of the second pixel, which is the first one if its weight is 0."""
        found: Array = self.lower + (self.weight != 0)
        return found


def nearest_pixels(descriptor: ResizeDescriptor, extent: int, count: int) -> Array:
    """Return the index of the input pixel for each of `count` output pixels along one axis, as TensorFlow Lite does."""
    scale = _float_scale(descriptor, extent, count)
    offset = np.float32(0.5 if descriptor.half_pixel_centers else 0)
    position = (np.arange(count, dtype=np.float32) + offset) * scale
    whole = round_half_away(position) if descriptor.align_corners else np.floor(position)
    return np.minimum(whole.astype(np.int64), extent - 1)


def float_taps(descriptor: ResizeDescriptor, extent: int, count: int) -> Taps:
    """Return the pixels of one axis for float32 data."""
    position = _float_position(descriptor, extent, count, np.arange(count, dtype=np.float32))
    return _taps(np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64), position, extent, 1)


def integer_taps(descriptor: ResizeDescriptor, extent: int, count: int) -> Taps:
    """Return the pixels of one axis for integers."""
    position = np.asarray(_integer_position(descriptor, extent, count, np.arange(count, dtype=np.int64)))
    return _taps(position // WHOLE, -(-position // WHOLE), position, extent, WHOLE)


@frozen(eq=False)
class OnnxTaps:
    """The two pixels along one axis that each output pixel interpolates by ONNX's rule; the arrays are [2, count]."""

    pixels: Array
    """int64."""
    weights: Array
    """float32."""


def onnx_taps(descriptor: ResizeDescriptor, extent: int, count: int) -> OnnxTaps:
    """Return the pixels of one axis in the float32 steps of onnxruntime; equal pixels have the weights 1/2."""
    index, half = np.arange(count, dtype=np.float32), np.float32(0.5)
    scale = np.float32(count) / np.float32(extent)
    if descriptor.align_corners:
        place = index * np.float32(extent - 1) / np.float32(max(count - 1, 1))
    elif descriptor.half_pixel_centers:
        place = (index + half) / scale - half
    else:
        place = index / scale
    place = np.clip(place, np.float32(0), np.float32(extent - 1))
    first = np.minimum(np.floor(place).astype(np.int64), extent - 1)
    pixels = np.stack([first, np.minimum(first + 1, extent - 1)])
    distances = np.abs(place - pixels.astype(np.float32))
    weights = np.where(pixels[0] == pixels[1], half, distances[::-1])
    return OnnxTaps(pixels=pixels, weights=weights.astype(np.float32))


def _taps(lower: Array, upper: Array, position: Array, extent: int, whole: int) -> Taps:
    first = np.maximum(lower, 0)
    apart = np.minimum(upper, extent - 1) > first
    return Taps(lower=first, weight=np.where(apart, position - (first * whole).astype(position.dtype), 0))


def _extents(descriptor: ResizeDescriptor, extent: int, count: int) -> tuple[int, int]:
    """Return the lengths of an axis in input and output whose quotient is the scale."""
    return (extent - 1, count - 1) if descriptor.align_corners and count > 1 else (extent, count)


def _float_scale(descriptor: ResizeDescriptor, extent: int, count: int) -> np.float32:
    whole, parts = _extents(descriptor, extent, count)
    return np.float32(np.float32(whole) / np.float32(parts))


def _float_position(descriptor: ResizeDescriptor, extent: int, count: int, index: Array) -> Array:
    """Return the place of output pixels in the input, in pixels."""
    scale = _float_scale(descriptor, extent, count)
    half = np.float32(0.5)
    position: Array = (index + half) * scale - half if descriptor.half_pixel_centers else index * scale
    return position


def _integer_position(descriptor: ResizeDescriptor, extent: int, count: int, index: Array | int) -> Array | int:
    """Return the place of output pixels in the input, in pixels times `WHOLE`."""
    whole, parts = _extents(descriptor, extent, count)
    scale = (WHOLE * whole + parts // 2) // parts
    return index * scale + (scale // 2 - WHOLE // 2 if descriptor.half_pixel_centers else 0)


def displacement(descriptor: ResizeDescriptor, extent: int, count: int) -> float:
    """Return how far, in pixels, the integers' rule samples from the real place at most: its scale has 10 bits."""
    whole, parts = _extents(descriptor, extent, count)
    scale = whole / parts
    index, half = np.arange(count, dtype=np.int64), 0.5 if descriptor.half_pixel_centers else 0.0
    taken = np.asarray(_integer_position(descriptor, extent, count, index)) / WHOLE
    return float(np.abs(taken - ((index + half) * scale - half)).max())


def _infer(descriptor: ResizeDescriptor, operands: Operands) -> Shapes:
    image = operands.source
    if len(image.shape) != 4:
        raise UnsupportedError(f"tensor '{image.name}' has shape {list(image.shape)}, expected NHWC")
    if min(descriptor.height, descriptor.width) < 1:
        raise UnsupportedError(
            f"the new size is {[descriptor.height, descriptor.width]}, expected two numbers of 1 or more"
        )
    return ((image.shape[0], descriptor.height, descriptor.width, image.shape[3]),)


def _check_types(layer_type: LayerType, operands: Operands, types: tuple[DataType, ...], *, same: bool = True) -> None:
    image = operands.source
    check_same_type(layer_type, operands, types)
    if image.quantization is not None:
        check_activations(image)
    if same and not image.dtype.is_float:
        check_same_quantisation(operands)


def _check_nearest(_: ResizeDescriptor, operands: Operands) -> None:
    _check_types(LayerType.RESIZE_NEAREST_NEIGHBOR, operands, (DataType.FLOAT32, DataType.INT8, DataType.INT16))


def _check_bilinear(descriptor: ResizeDescriptor, operands: Operands) -> None:
    onnx = operands.rounding is Rounding.ONNX
    types = (DataType.INT8,) if onnx else (DataType.FLOAT32, DataType.INT8)
    _check_types(LayerType.RESIZE_BILINEAR, operands, types, same=not onnx)
    if descriptor.align_corners and descriptor.half_pixel_centers:
        raise UnsupportedError("align_corners and half_pixel_centers are both set, expected at most one of them")
    if onnx:
        check_activations(*operands.ends)
        return
    image = operands.source
    sizes = ((image.shape[1], descriptor.height), (image.shape[2], descriptor.width))
    for extent, count in sizes:
        if image.dtype.is_float:
            last = float(_float_position(descriptor, extent, count, np.array(count - 1, np.float32)))
            fits = last < extent
        else:
            fits = int(_integer_position(descriptor, extent, count, count - 1)) < WHOLE * extent
            fits &= WHOLE * extent + count // 2 <= _INT32_MAX
        if not fits:
            raise UnsupportedError(
                f"{LayerType.RESIZE_BILINEAR} of {extent} to {count} pixels is too large: the reference kernel "
                "would read outside the image"
            )


def _nearest(descriptor: ResizeDescriptor, operands: Operands, image: Array) -> Array:
    _, height, width, _ = operands.output.shape
    rows = nearest_pixels(descriptor, image.shape[1], height)
    columns = nearest_pixels(descriptor, image.shape[2], width)
    return np.ascontiguousarray(image[:, rows][:, :, columns])


def _bilinear(descriptor: ResizeDescriptor, operands: Operands, image: Array) -> Array:
    _, height, width, _ = operands.output.shape
    if operands.rounding is Rounding.ONNX:
        return _bilinear_onnx(descriptor, operands, image)
    is_float = operands.output.dtype.is_float
    find: Callable[[ResizeDescriptor, int, int], Taps] = float_taps if is_float else integer_taps
    with ieee_floats():
        wide = image.astype(np.float64 if is_float else np.int64)
        whole = 1 if is_float else WHOLE
        rows = _interpolate(wide, find(descriptor, image.shape[1], height), 1, whole)
        sums = _interpolate(rows, find(descriptor, image.shape[2], width), 2, whole)
        if is_float:
            return sums.astype(np.float32)
    half = WHOLE * WHOLE // 2  # halves round away from zero
    means = np.sign(sums) * ((np.abs(sums) + half) // (WHOLE * WHOLE))
    return np.asarray(means, operands.output.dtype.numpy)


def _bilinear_onnx(descriptor: ResizeDescriptor, operands: Operands, image: Array) -> Array:
    """Return the pixels interpolated in float32: four products, added up in order, and quantised."""
    _, height, width, _ = operands.output.shape
    values = real_values(image, operands.source)
    rows, columns = onnx_taps(descriptor, image.shape[1], height), onnx_taps(descriptor, image.shape[2], width)
    total = np.zeros(operands.output.shape, np.float32)
    for below, right in np.ndindex(2, 2):
        weights = rows.weights[below][:, np.newaxis] * columns.weights[right]
        corner = values.take(rows.pixels[below], 1).take(columns.pixels[right], 2)
        total += corner * weights[:, :, np.newaxis]
    return quantize_to_even(total, operands.output)


def _interpolate(image: Array, taps: Taps, axis: int, whole: int) -> Array:
    weight = taps.weight.astype(image.dtype).reshape((-1,) + (1,) * (3 - axis))
    result: Array = image.take(taps.lower, axis) * (whole - weight) + image.take(taps.upper, axis) * weight
    return result


def _sample(sample: LayerSample) -> Descriptor:
    dice = sample.dice
    sample.keep(sample.image())
    corners = dice.choice([(False, False), (True, False), (False, True)])
    return ResizeDescriptor(
        height=dice.randint(1, 14), width=dice.randint(1, 14), align_corners=corners[0], half_pixel_centers=corners[1]
    )


def _terms(_: ResizeDescriptor, __: Operands) -> int:
    """Return the roundings on the way to an element: a weight, a product and a sum for each of two axes."""
    return 6


RESIZE_NEAREST_NEIGHBOR = Operator(
    descriptor=ResizeDescriptor,
    type=LayerType.RESIZE_NEAREST_NEIGHBOR,
    moves=True,
    shapes=_infer,
    check=_check_nearest,
    kernel=of_one(_nearest),
    sample=_sample,
)
RESIZE_BILINEAR = Operator(
    descriptor=ResizeDescriptor,
    type=LayerType.RESIZE_BILINEAR,
    shapes=_infer,
    check=_check_bilinear,
    kernel=of_one(_bilinear),
    bound=of_floats(sums(_terms), monotone),
    rules=frozenset({Rounding.TFLM, Rounding.ONNX}),
    sample=_sample,
)
