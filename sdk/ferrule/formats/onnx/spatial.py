# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that resize images, or exchange channels and pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ferrule.budget import Resource, afford
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.rows import Row
from ferrule.formats.onnx.shapes import static
from ferrule.formats.onnx.windows import MAX_EXTENT, as_input, image
from ferrule.graph import Array, LayerType
from ferrule.operators.movement.block import DepthToSpaceDescriptor, SpaceToDepthDescriptor
from ferrule.operators.movement.gather import GatherDescriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.operators.spatial.resize import ResizeDescriptor, float_taps, nearest_pixels

_COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
_OTHERS = ("tf_half_pixel_for_nn",)
"""Of opset 11 alone."""
_TRANSFORMED = 11
"""The opset from which on attributes choose pixels; earlier, onnxruntime takes the one at or before a place of an image
that grows, and the one at or behind a place of one that shrinks."""
_NEAREST: Mapping[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda places: np.ceil(places - 0.5),
    "round_prefer_ceil": lambda places: np.floor(places + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""The pixels that are nearest to places, by rule."""
_CORNERS = ((False, False), (False, True), (True, False))
"""What RESIZE layers have: align_corners and half_pixel_centers."""
_TOLERANCE = 1e-4
"""The difference of positions, in pixels, that rounding to float32 explains."""


def _resize(call: Call) -> Value:
    node = call.node
    mode = node.choice("mode", "nearest", ("nearest", "linear"), "resize with mode='nearest' or 'linear'")
    is_old = node.version < _TRANSFORMED
    coordinates = node.choice(
        "coordinate_transformation_mode", "asymmetric" if is_old else "half_pixel", [*_COORDINATES, *_OTHERS]
    )
    if node.flag("antialias") or node.flag("exclude_outside"):
        raise UnsupportedError(
            "its attribute 'antialias' or 'exclude_outside' is 1, expected 0", hint="resize with antialias=False"
        )
    scales, sizes = _scales(call)
    if sizes == call.shape():
        return call.value()
    if any(sizes[axis] != call.shape()[axis] for axis in range(2)) or call.rank() < 3:
        raise UnsupportedError(
            f"it resizes {list(call.shape())} to {list(sizes)}, expected changes of width and height"
        )
    x = image(call)
    height, width = (1, *sizes[2:])[-2:]
    factors, old = (1.0, *scales[2:])[-2:], x.shape[1:3]
    places = [_positions(coordinates, *each) for each in zip(old, (height, width), factors, strict=True)]
    resizes = [
        ResizeDescriptor(height=height, width=width, align_corners=aligned, half_pixel_centers=centred)
        for aligned, centred in _CORNERS
    ]
    if mode == "linear":
        return as_input(_linear(x, resizes, places))
    nearest = node.choice("nearest_mode", "round_prefer_floor", [*_NEAREST])
    modes = [("floor" if factor >= 1 else "ceil") if is_old else nearest for factor in factors]
    pixels = [  # a position that is an integer or a half is one, whatever float32 made of it
        np.clip(_NEAREST[mode](np.round(place, 6)), 0, extent - 1).astype(np.int64)
        for mode, place, extent in zip(modes, places, old, strict=True)
    ]
    return as_input(_nearest(x, resizes, pixels))


def _scales(call: Call) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the factor and the new extent of each axis."""
    shape, rank = call.shape(), call.rank()
    axes = call.node.integers("axes", tuple(range(rank)))
    if any(not -rank <= axis < rank for axis in axes):
        raise ModelError(f"its attribute 'axes' is {list(axes)}, expected {-rank} to {rank - 1}")
    factors, sizes = [1.0] * rank, list(shape)
    data, wanted = call.parameter(2, "scales"), call.integers(3, "sizes")
    numbers = data if wanted is None else np.array(wanted)
    if numbers is None or (wanted is None and numbers.size == 0):
        raise ModelError("it has neither scales nor sizes")
    given: list[float] = numbers.reshape(-1).tolist()
    if len(given) != len(axes):
        raise ModelError(f"it has {len(given)} scales or sizes for {len(axes)} axes")
    policy = call.node.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    if wanted is not None and policy != "stretch" and given:
        ratios = [value / shape[axis] for axis, value in zip(axes, given, strict=True)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        given = [math.floor(ratio * shape[axis] + 0.5) for axis in axes]
    for axis, value in zip(axes, given, strict=True):
        if not math.isfinite(value) or value <= 0 or value > MAX_EXTENT:
            raise ModelError(f"its scales or sizes are {given}, expected positive numbers up to {MAX_EXTENT}")
        sizes[axis] = int(value) if wanted is not None else int(np.float32(shape[axis]) * np.float32(value))
        factors[axis] = sizes[axis] / shape[axis] if wanted is not None else float(value)
    if any(size > MAX_EXTENT and size != extent for size, extent in zip(sizes, shape, strict=True)):
        raise UnsupportedError(f"its output has shape {sizes}, which is too large")
    return tuple(factors), static(sizes)


def _positions(coordinates: str, extent: int, count: int, factor: float) -> Array:
    """Return the place of each output pixel of one axis in the input, in pixels."""
    afford(Resource.BYTES, 64 * count, f"the places of {count:,} pixels")
    index = np.arange(count, dtype=np.float64)
    scale, shift, offset = 1 / factor, 0.5, -0.5
    if coordinates == "align_corners":
        scale, shift, offset = (extent - 1) / max(count - 1, 1), 0, 0
    elif coordinates == "asymmetric":
        shift = offset = 0
    elif coordinates == "tf_half_pixel_for_nn":
        offset = 0
    elif coordinates == "pytorch_half_pixel" and count == 1:
        scale = shift = offset = 0
    elif coordinates == "half_pixel_symmetric":
        offset += extent / 2 * (1 - count / (extent * factor))
    return np.asarray((index + shift) * scale + offset)


def _nearest(x: Value, resizes: Iterable[ResizeDescriptor], pixels: Sequence[Array]) -> Value:
    """Return a RESIZE_NEAREST_NEIGHBOR if it takes these pixels, and else a GATHER along each axis."""
    rows, columns = pixels
    height, width = x.shape[1:3]
    for descriptor in resizes:
        if np.array_equal(nearest_pixels(descriptor, height, rows.size), rows) and np.array_equal(
            nearest_pixels(descriptor, width, columns.size), columns
        ):
            return x.then(LayerType.RESIZE_NEAREST_NEIGHBOR, descriptor)
    if not np.array_equal(rows, np.arange(height)):
        x = x.then(GatherDescriptor(axis=1), x.call.array(rows.astype(np.int32), "rows"))
    return x.then(GatherDescriptor(axis=2), x.call.array(columns.astype(np.int32), "columns"))


def _linear(x: Value, resizes: Iterable[ResizeDescriptor], places: Sequence[Array]) -> Value:
    """Return the RESIZE_BILINEAR that interpolates at these places, or for float32 the sums of weighted pixels."""
    old = x.shape[1:3]
    for descriptor in resizes:
        if all(_interpolates(descriptor, extent, place) for extent, place in zip(old, places, strict=True)):
            return x.then(LayerType.RESIZE_BILINEAR, descriptor)
    if x.dtype.is_float:
        return _interpolated(x, places)
    raise UnsupportedError(
        f"no RESIZE_BILINEAR interpolates {list(old)} to {[place.size for place in places]} pixels as it does",
        hint="resize by sizes, with half_pixel, align_corners or asymmetric coordinates",
    )


def _interpolated(x: Value, places: Sequence[Array]) -> Value:
    """Return the weighted sum of the two pixels round each place, along rows and along columns."""
    for axis, place in enumerate(places, 1):
        extent = x.shape[axis]
        inside = np.clip(place, 0, extent - 1)
        lower = np.floor(inside)
        weight = (inside - lower).astype(np.float32).reshape(-1, *(1,) * (3 - axis))
        if place.size == extent and np.array_equal(inside, np.arange(extent)):
            continue
        below, above = (
            x.then(GatherDescriptor(axis=axis), x.call.array(np.minimum(each, extent - 1).astype(np.int32), "pixels"))
            for each in (lower, lower + 1)
        )
        below *= x.call.array(1 - weight, "weights")
        x = below + above * x.call.array(weight, "weights")
    return x


def _interpolates(descriptor: ResizeDescriptor, extent: int, places: Array) -> bool:
    """Whether a RESIZE_BILINEAR interpolates an axis at these places."""
    taps = float_taps(descriptor, extent, places.size)
    distance = taps.lower + taps.weight - np.clip(places, 0, extent - 1)
    return bool(np.all(np.abs(distance) <= _TOLERANCE))


def _block(call: Call) -> int:
    size = call.node.integer("blocksize")
    if call.rank() != 4 or size < 1 or size > MAX_EXTENT:
        raise ModelError(f"its input {list(call.shape())} is no image, or its block of {size} is out of range")
    return size


def _is_crossed(call: Call) -> bool:
    """Whether the channels of a block lie one after another, not its pixels."""
    return call.node.choice("mode", "DCR", ("DCR", "CRD")) == "CRD"


def _exchanged(image: Value, rows: int) -> Value:
    """Return the channels of each pixel as a matrix with so many rows, transposed."""
    *pixels, channels = image.shape
    parts = image.reshaped((math.prod(pixels), rows, channels // rows))
    return parts.then(TransposeDescriptor(permutation=(0, 2, 1)))


def _depth_to_space(call: Call) -> Value:
    x, size = image(call), _block(call)
    channels = x.shape[3]
    if channels % (size * size):
        raise ModelError(f"its input has {channels} channels, expected a multiple of {size * size}")
    if _is_crossed(call) and channels != size * size:
        x = _exchanged(x, channels // (size * size)).reshaped(x.shape)
    return as_input(x.then(DepthToSpaceDescriptor(block_size=size)))


def _space_to_depth(call: Call) -> Value:
    x, size = image(call), _block(call)
    moved = x.then(SpaceToDepthDescriptor(block_size=size))
    if _is_crossed(call) and call.shape()[1] > 1:
        moved = _exchanged(moved, size * size).then(ReshapeDescriptor(shape=moved.shape))
    return as_input(moved)


ROWS: Mapping[str, Row] = {
    "DepthToSpace": Row(_depth_to_space),
    "Resize": Row(_resize, 1, 4, layer=LayerType.RESIZE_BILINEAR),
    "SpaceToDepth": Row(_space_to_depth),
}
