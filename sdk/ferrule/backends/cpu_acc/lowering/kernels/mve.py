# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED in int8 with vector instructions (MVE), as in `ferrule/kernels/mve_pixels.h`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import gcd

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, Row, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_scale,
    int8_channels,
    is_plain,
    used_inputs,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.kernels.parts import Part, PlannedPart, part_channels, part_fields, part_rows
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import factor_arrays
from ferrule.operators.arithmetic.window import Window

VECTOR = 16
"""Bytes of a vector."""
_LANES = 4
"""Channels whose sums a vector holds."""
_PASS = 8
"""Vectors of products between two branches of the convolution's kernel."""
_ROW_PASS = 4
"""The same for FULLY_CONNECTED."""
EIGHT = (0, 2, 4, 6, 1, 3, 5, 7)
"""The order of the channels in a block of FULLY_CONNECTED."""
_MOST_COLLECTED = 1024
"""Limit of the scratch for the windows that are collected at once, unless two of them need more."""
_MOST_PIXELS = 32
_GENERAL, _LISTED = 1, 2
_KERNEL = "conv2d_mve_s8"


def _conv2d(layer: Convolution) -> Found:
    channels = int8_channels(layer).live
    if not channels.places.size:
        return "all channels are dead"
    if not can_scale(channels):
        return TOO_LARGE
    return (_pointwise if layer.window.is_pointwise else _windows)(channels)


def _pointwise(channels: Channels) -> Found:
    layer, inputs, input_c = channels.layer, None, channels.layer.image.shape[3]
    # the kernel has the indices of inputs as bytes
    used = used_inputs(filled(channels.matrix, 1, VECTOR), VECTOR) if input_c <= 256 else None
    if used is not None:
        inputs = filled(used, VECTOR).astype(np.uint8)
        channels = replace(channels, matrix=channels.matrix[:, used])
    row_bytes = input_c if inputs is None else len(inputs)
    count = layer.pixels
    weights = _Weights(channels)
    copied = 3 * row_bytes // VECTOR if inputs is None else 4 * len(inputs) // VECTOR + 10

    def candidate(pixels: int) -> Candidate:
        return Candidate(
            kernel="conv2d_1x1_mve_s8",
            code=_KERNEL,
            instructions=count * copied + weights.instructions(batches(count, pixels)),
            weight_bytes=weights.stream.nbytes,
            scratch_bytes=pixels * row_bytes + VECTOR - 1,
            overlaps=layer.overlaps,
            call=lambda: KernelCall(
                "conv2d_1x1_mve_s8",
                "ferrule/kernels/conv2d_mve.h",
                {"count": count, "input_c": input_c, "pixels": pixels, "inputs": inputs, "weights": weights.fields()},
                sources=("mve_store_pairs",),
            ),
        )

    return [candidate(pixels) for pixels in at_once(count, lambda number: number * row_bytes)]


def _windows(channels: Channels) -> Found:
    layer = channels.layer
    window, image, output = layer.window, layer.image.shape, layer.output.shape
    weights = _Weights(replace(channels, matrix=by_columns(channels.matrix, window, image[3])))
    rows = output[0] * output[1]

    def candidate(way: Way, pixels: int) -> Candidate:
        sizes = way.sizes(output[2], pixels)
        return Candidate(
            kernel=_KERNEL,
            instructions=rows * (sum(map(way.instructions, sizes)) + weights.instructions(sizes)),
            weight_bytes=weights.stream.nbytes,
            scratch_bytes=way.scratch(pixels),
            overlaps=partial(layer.overlaps, tile=None if way.apart == 1 else (1, output[2]), reads=way.reads),
            call=lambda: KernelCall(
                _KERNEL,
                "ferrule/kernels/conv2d_mve.h",
                {
                    "image": {
                        **layer.image_fields,
                        **layer.view_fields,
                        "pixels": pixels,
                        **way.fields,
                    },
                    "weights": weights.fields(),
                },
                sources=("mve_windows", "mve_store_pairs"),
            ),
        )

    return [candidate(way, pixels) for way, pixels in ways_at_once(window, image[3], image[3], output[2])]


def by_columns(matrix: Array, window: Window, channels: int) -> Array:
    """Return the products by columns of the window, then by rows."""
    split = matrix.reshape(-1, window.height, window.width, channels)
    return split.transpose(0, 2, 1, 3).reshape(len(matrix), -1)


def _part(layer: Convolution, part: Part) -> list[PlannedPart] | str:
    window, whole = part.window, part.in_blocks(_LANES)
    channels = part_channels(layer, whole)
    if not can_scale(channels):
        return TOO_LARGE
    if part.places.max() > np.iinfo(np.uint16).max:
        return "outputs of a pixel are too far apart"
    listed = not part.is_dense or part.outputs % _LANES != 0
    matrix = by_columns(channels.matrix, window, part.channels)
    weights = _Weights(replace(channels, matrix=matrix), listed=listed, groups=part.groups)
    rows = layer.image.shape[0] * part.height

    def planned(way: Way, pixels: int) -> PlannedPart:
        sizes = way.sizes(part.width, pixels)
        tile = (1, (pixels if way.apart == 1 else part.width) * part.together(layer))
        return PlannedPart(
            instructions=part.groups * rows * (sum(map(way.instructions, sizes)) + weights.instructions(sizes)),
            weight_bytes=weights.stream.nbytes,
            scratch_bytes=way.scratch(pixels),
            overlaps=partial(layer.overlaps, tile=tile, reads=Reads.THROUGHOUT)
            if part.groups > 1 or way.apart > 1
            else layer.overlaps,
            fields=lambda more: {
                "image": {
                    **part_fields(layer, part, more=more),
                    "input_zero_point": layer.image.zero_point,
                    "pixels": pixels,
                    **way.fields,
                },
                "weights": weights.fields(),
            },
        )

    return [
        planned(way, pixels) for way, pixels in ways_at_once(window, part.channels, layer.image.shape[3], part.width)
    ]


@frozen
class Way:
    """How the windows of some pixels of a row are collected in scratch."""

    window: Window
    channels: int
    """Bytes of the pixels that are collected."""
    pixel_c: int
    """Bytes from a pixel of the image to the next one."""
    apart: int = 1
    """Pixels from a window to the next one that is collected with it."""

    @staticmethod
    def all(window: Window, channels: int, pixel_c: int, width: int) -> Sequence[Way]:
        """Return the ways for rows of `width` pixels: windows next to each other, and dilated ones that share columns.

        Of windows that are dilated by 4, the one of the fourth pixel after a pixel shares columns with that of it.
        """
        near = Way(window=window, channels=channels, pixel_c=pixel_c)
        far = replace(near, apart=window.dilation_w // gcd(window.dilation_w, window.stride_w))
        return (near, far) if 1 < far.apart < width and far.advance else (near,)

    @property
    def advance(self) -> int:
        """The columns of scratch from a window to the next one; 0 if they share none."""
        columns, rest = divmod(self.apart * self.window.stride_w, self.window.dilation_w)
        return columns if not rest and columns <= self.window.width else 0

    @property
    def reads(self) -> Reads:
        """When a kernel reads windows, in steps of a pixel or, of windows that are apart, of a row."""
        return Reads.BEFORE if self.apart == 1 else Reads.THROUGHOUT

    @property
    def fields(self) -> Mapping[str, int]:
        """The members of a `struct ferrule_mve_image`."""
        return {"apart": self.apart, "advance": self.advance}

    def columns(self, pixels: int) -> int:
        """Return the columns of the image that are collected."""
        return (pixels - 1) * self.advance + self.window.width if self.advance else pixels * self.window.width

    def sizes(self, width: int, pixels: int) -> list[int]:
        """Return the sizes of the batches in which a row of `width` pixels is computed."""
        turns = (len(range(turn, width, self.apart)) for turn in range(self.apart))
        return [size for together in turns for size in batches(together, pixels)]

    def scratch(self, pixels: int) -> int:
        """Return the bytes of scratch."""
        return self.columns(pixels) * self.window.height * self.channels + VECTOR - 1

    def instructions(self, pixels: int) -> int:
        """Return an estimate for the windows of neighbouring pixels."""
        window, columns = self.window, self.columns(pixels)
        taps, start = 1 if self.advance else window.width, 60
        step = (window.dilation_w if self.advance else window.stride_w) * self.pixel_c
        if step == self.channels and window.height == taps == 1:
            row = 20 + 3 * _vectors(columns * self.channels)
        elif self.channels <= VECTOR // 2:
            step = max(step, window.height * self.channels * taps)
            together = VECTOR // self.channels
            together = together if together * step <= 255 else VECTOR // 2 // self.channels
            row, start = 18 + 6 * (columns // taps // together), 90
        else:
            row = 25 + columns // taps * (5 if self.channels == VECTOR else 7 + 3 * _vectors(self.channels))
        return 80 + taps * (start + window.height * row)


def _fully_connected(layer: Convolution) -> Candidate | str:
    channels = int8_channels(layer)
    if not can_scale(channels):
        return TOO_LARGE
    count, products = channels.matrix.shape
    vectors, blocks, rows = _vectors(products), -(-count // len(EIGHT)), layer.pixels
    whole = products % VECTOR == 0
    kernel = "fully_connected_mve_s8" if whole else "fully_connected_copied_mve_s8"
    half = _has_half(count)
    per_block = 17 * vectors + 2 * -(-vectors // _ROW_PASS) + 28
    return Candidate(
        kernel=kernel,
        code="fully_connected_mve_s8",
        instructions=rows * (blocks * per_block - 7 * half * vectors + 50 + (0 if whole else 3 * vectors)),
        weight_bytes=blocks * len(EIGHT) * (VECTOR * vectors + 9) - half * _LANES * VECTOR * vectors,
        scratch_bytes=0 if whole else VECTOR * vectors,
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/fully_connected_mve.h",
            {
                "stream": layer.context.blob("weights", _row_stream(channels)),
                "first": (vectors - 1) % _ROW_PASS + 1,
                "data_bytes": VECTOR * vectors,
                "output_c": count,
                "general": int(not is_plain(layer)),
                "output": layer.output_fields,
                "input_c": products,
                "rows": rows,
            },
            table="fully_connected_mve_s8_params",
            contribution=KERNELS.part("fully_connected_mve_s8"),
        ),
    )


class _Weights:
    """The weights and scales of a convolution, four channels and two pixels at a time."""

    def __init__(self, channels: Channels, *, listed: bool = False, groups: int = 1) -> None:
        self._channels, self._general = channels, not is_plain(channels.layer)
        count, products = channels.matrix.shape
        self._listed = bool(listed or channels.dead.any() or count % _LANES)
        self._vectors = _vectors(products)
        whole = channels.in_blocks(_LANES)
        self._blocks, self._groups = len(whole.places) // _LANES // groups, groups
        self.stream = _stream(whole, _LANES, whole.places if self._listed else None)

    def instructions(self, sizes: Sequence[int]) -> int:
        """Return an estimate for batches of so many pixels."""
        pairs, calls = sum(-(-size // 2) for size in sizes), sum(1 + (size % 2 and size > 1) for size in sizes)
        block = 14 * self._vectors + 2 * -(-self._vectors // _PASS) + 25 + 6 * self._general + self._listed
        fixed = 3 * len(self._channels.dead) // VECTOR + 8 if self._channels.dead.any() else 0
        return pairs * (self._blocks * block + 19) + 110 * calls + sum(sizes) * fixed

    def fields(self) -> Mapping[str, Member]:
        """Return the members of a `struct ferrule_mve_weights`."""
        layer = self._channels.layer
        return {
            "stream": self.stream,
            "words": self.stream.size // self._groups,
            "vectors": self._vectors,
            "kind": _LISTED * self._listed + _GENERAL * self._general,
            "fixed": self._channels.fixed_pixel,
            "output_c": layer.output.shape[3],
            "output": layer.output_fields,
        }


def _stream(channels: Channels, block: int, positions: Array | None = None) -> Array:
    """Return the words of `struct ferrule_mve_weights` or FULLY_CONNECTED, for whole blocks of channels."""
    matrix = filled(channels.matrix, 1, VECTOR)
    vectors = matrix.shape[1] // VECTOR
    weights = matrix.reshape(-1, block, vectors, VECTOR).transpose(0, 2, 1, 3)
    return stream(channels, weights, block, positions)


def _row_stream(channels: Channels) -> Array:
    """Return the words of FULLY_CONNECTED: whole blocks, and one of which only half the weights are stored."""
    count = len(channels.matrix)
    order = (np.arange(0, count, len(EIGHT))[:, None] + EIGHT).reshape(-1)
    blocks = _stream(channels.chosen(np.minimum(order, count - 1)), len(EIGHT))  # the last channel is repeated
    if not _has_half(count):
        return blocks
    each = blocks.reshape(-(-count // len(EIGHT)), -1)
    start, end = np.cumsum([len(EIGHT), len(EIGHT) * VECTOR // 4 * _vectors(channels.matrix.shape[1])])
    weights = each[-1, start:end].reshape(-1, 2, _LANES, VECTOR // 4)[:, :, : _LANES // 2]  # of even and odd channels
    return np.concatenate([each[:-1].reshape(-1), each[-1, :start], weights.reshape(-1), each[-1, end:]])


def _has_half(count: int) -> bool:
    """Return whether of so many channels of FULLY_CONNECTED, the last block stores the weights of only four."""
    return 0 < count % len(EIGHT) <= _LANES


def stream(channels: Channels, weights: Array, block: int, positions: Array | None = None) -> Array:
    """Return words by block of channels: biases, weights, multipliers and shifts, and the positions if given."""
    multipliers, shifts = factor_arrays(channels.factors)
    parts = [channels.bias.astype(np.int32), weights, multipliers.astype(np.int32), shifts.astype(np.int8)]
    if positions is not None:
        parts.append(positions.astype(np.uint16))
    blocks = len(channels.bias) // block
    return np.concatenate([words(part).reshape(blocks, -1) for part in parts], axis=1).reshape(-1)


def at_once(together: int, scratch: Callable[[int], int]) -> Sequence[int]:
    """Return how many pixels may be collected at once: even numbers, or one if there is only one."""
    most = min(together + together % 2, _MOST_PIXELS)
    return [
        min(number, together) for number in range(2, most + 1, 2) if number == 2 or scratch(number) <= _MOST_COLLECTED
    ]


def ways_at_once(window: Window, channels: int, pixel_c: int, width: int) -> Sequence[tuple[Way, int]]:
    """Return the ways to collect windows for rows of `width` pixels, and how many windows may be collected at once."""
    ways = Way.all(window, channels, pixel_c, width)
    return [(way, pixels) for way in ways for pixels in at_once(-(-width // way.apart), way.scratch)]


def batches(together: int, pixels: int) -> list[int]:
    """Return the sizes of the batches in which a number of neighbouring pixels is computed."""
    return [pixels] * (together // pixels) + [together % pixels] * bool(together % pixels)


def _vectors(products: int) -> int:
    return -(-products // VECTOR)


_TFLM = frozenset({Rounding.TFLM})
MVE_CONV_2D_ROW = weighted_row(_KERNEL, _conv2d, Feature.MVE, rules=_TFLM)
MVE_PARTS: tuple[Row, ...] = part_rows(
    _KERNEL, "ferrule/kernels/conv2d_mve.h", _part, Feature.MVE, sources=("mve_windows", "mve_store_pairs"), rules=_TFLM
)
"""The kernel of CONV_2D for parts of a layer."""
MVE_FULLY_CONNECTED_ROW = weighted_row("fully_connected_mve_s8", _fully_connected, Feature.MVE, rules=_TFLM)
