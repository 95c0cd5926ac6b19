# SPDX-License-Identifier: Apache-2.0
"""Layers with weights and int16 data on cores with the DSP extension, as in `ferrule/kernels/dual_s16.h`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, limit_fields
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution, weights_of
from ferrule.backends.cpu_acc.lowering.kernels.int16_sums import WIDE_SHIFT, largest_sums, once_multipliers, taps_inside
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.kernels.parts import Part, PlannedPart, part_fields, part_rows
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import product_matrix
from ferrule.dom import Identifier
from ferrule.graph import Array, DataType, Rounding
from ferrule.memory.request import Overlap
from ferrule.operators.arithmetic.fixed_point import factor_arrays, reduced_multiplier
from ferrule.operators.arithmetic.window import Window
from ferrule.operators.weighted.products import is_wide

_HEADER = "ferrule/kernels/dual_s16.h"
_TABLE, _SOURCES = "conv2d_dual_s16_params", ("dual_block_s16",)
_BLOCK = 4
_WORD_SHIFT = 32
"""SMMULR shifts a product to the right by this."""
_LARGEST_NARROW_SHIFT = 22
_STRIPS = 1, 4, 16
"""Rows of an output computed from the same copy of a part of the image."""
_MOST_STEPS = 8
"""The value of FERRULE_POINTS_MOST_STEPS."""


class _Sums(IntEnum):
    """How sums are kept and rounded: the FERRULE_DUAL_* of the header."""

    ONCE = 0
    TWICE = 1
    LONG = 2


@frozen(eq=False)
class _Channels:
    """The weights of a layer or of a part of it: those of all groups, one group after the other."""

    layer: Convolution
    matrix: Array
    """[channels, products]."""
    owners: Array
    """[channels]: the layer's output channel, which has the bias and the scale."""
    groups: int = 1

    @classmethod
    def of(cls, layer: Convolution) -> _Channels:
        """Return those of a whole layer without groups."""
        matrix = product_matrix(layer.context.layer, weights_of(layer.context))
        return cls(layer=layer, matrix=matrix, owners=np.arange(len(matrix)))

    @classmethod
    def of_part(cls, layer: Convolution, part: Part) -> _Channels:
        weights = np.append(weights_of(layer.context).reshape(-1), np.int8(0))
        owners = part.owners.reshape(-1)
        return cls(layer=layer, matrix=weights[part.taps].reshape(owners.size, -1), owners=owners, groups=part.groups)

    @property
    def count(self) -> int:
        """The channels of a group."""
        return len(self.matrix) // self.groups

    @property
    def blocks(self) -> int:
        """The blocks of a group."""
        return -(-self.count // _BLOCK)

    @property
    def steps(self) -> int:
        """Pairs of products."""
        return -(-int(self.matrix.shape[1]) // 2)

    @property
    def bias(self) -> Array:
        """int64, one per channel."""
        return self.layer.bias(np.int64)[self.owners]

    @property
    def factors(self) -> tuple[Array, Array]:
        """Multipliers and shifts."""
        multipliers, shifts = factor_arrays(self.layer.factors())
        return multipliers[self.owners], shifts[self.owners]

    @property
    def once_multipliers(self) -> Array:
        """The multipliers of sums that are rounded once, which include the shifts."""
        return once_multipliers(self.layer.factors(), _WORD_SHIFT)[self.owners]

    @property
    def sums(self) -> _Sums | str:
        """The cheapest exact form of the sums; the reason if there is none."""
        reach, (_, shifts) = int(largest_sums(self.bias, self.matrix).max()), self.factors
        if is_wide(self.layer.context.operands):
            whole = shifts.max() < 0 and shifts.min() >= WIDE_SHIFT - _WORD_SHIFT
            return _Sums.ONCE if reach < 1 << 31 and whole else _Sums.LONG
        if reach >= 1 << 30:
            return "a sum does not fit into 30 bits"
        if shifts.max() > -1 or shifts.min() < -_LARGEST_NARROW_SHIFT:
            return "an output is scaled by 1/2 or more, or by less than 2**-22"
        return _Sums.TWICE

    def stream(self, sums: _Sums, *, unpacked: bool, long: bool) -> Array:
        """Return the words of `struct ferrule_conv2d_dual_s16_params`."""
        count, blocks = self.count, self.blocks
        if count < _BLOCK:
            places = np.arange(_BLOCK)[None, :]
        else:
            places = np.minimum(np.arange(0, count, _BLOCK), count - _BLOCK)[:, None] + np.arange(_BLOCK)

        def chosen(values: Array) -> Array:
            """Return the values of the channels by block of all groups, zeros for missing channels."""
            grouped = values.reshape(self.groups, count, *values.shape[1:])
            missing = [(0, 0), (0, max(_BLOCK - count, 0)), *[(0, 0)] * (values.ndim - 1)]
            found: Array = np.ascontiguousarray(np.pad(grouped, missing)[:, places])
            return found.reshape(self.groups * blocks, _BLOCK, *values.shape[1:])

        multipliers, shifts = self.factors
        bias, matrix = chosen(self.bias), chosen(self.matrix)
        # [block, pair or channel, step, channel of the pair, product]
        steps = filled(matrix.reshape(len(matrix) * _BLOCK, -1), 1, 2).reshape(len(matrix), 2, 2, -1, 2)
        ordered = steps.transpose(0, 3, 1, 2, 4).astype(np.int16) if unpacked else steps.transpose(0, 3, 1, 4, 2)
        parts = [bias.astype("<i8").view("<i4") if long else bias, words(ordered)]
        match sums:
            case _Sums.ONCE:
                parts.append(chosen(self.once_multipliers))
            case _Sums.TWICE:
                # missing channels have shifts of 0, too
                parts += [chosen(multipliers), chosen(1 << (-shifts - 1)), chosen(-shifts)]
            case _Sums.LONG:
                parts += [chosen(reduced_multiplier(multipliers)), chosen(shifts)]
        by_block = np.concatenate([part.reshape(len(matrix), -1) for part in parts], axis=1)
        return by_block.reshape(-1).astype(np.int32)

    def weight_bytes(self, sums: _Sums, *, unpacked: bool, long: bool) -> int:
        """Return the bytes of the stream."""
        scales = 16 if long or sums is _Sums.TWICE else 8
        return self.groups * self.blocks * _BLOCK * ((4 if unpacked else 2) * self.steps + scales)

    def instructions(self, pixels: int, sums: _Sums, *, unpacked: bool, long: bool) -> int:
        """Return an estimate of the products of so many pixels."""
        passes = 3 * -(-self.steps // 4)
        if long:
            each = 40 if sums is _Sums.LONG else 12
            block = (7 if unpacked else 10) * self.steps + passes + 40
            return pixels * (self.groups * self.blocks * block + each * len(self.matrix))
        block = (11 if unpacked else 15) * self.steps + passes + (54 if sums is _Sums.ONCE else 88)
        return -(-pixels // 2) * self.groups * (self.blocks * block + 90)

    def fields(self, sums: _Sums, stream: Member, words_: int, kernel: str) -> Mapping[str, Member]:
        """Return the members of the table but for the window and the view; `kernel` is that of a convolution, or ''."""
        layer = self.layer
        part = f"{kernel}_{'whole' if self.groups == 1 else 'groups'}_s16"
        return {
            "convolve": Identifier(f"ferrule_{part}") if kernel else None,
            "stream": stream,
            "sums": int(sums),
            "steps": self.steps,
            "words": words_ // self.groups,
            "output_c": self.count,
            **limit_fields(layer.output, layer.activation),
        }


def _convolution(layer: Convolution, *, unpacked: bool) -> Candidate | str:
    channels = _Channels.of(layer)
    sums = _sums_of_pairs(channels, unpacked=unpacked)
    if isinstance(sums, str):
        return sums
    return _candidate(
        channels,
        f"conv2d_{_form(unpacked)}_s16",
        sums,
        unpacked=unpacked,
        long=sums is _Sums.LONG,
        gathered=layer.pixels * _gathered(layer.window, channels),
        scratch_bytes=_scratch(channels, sums),
        overlaps=partial(layer.overlaps, pixels=1 if sums is _Sums.LONG else 2),
    )


def _sums_of_pairs(channels: _Channels, *, unpacked: bool) -> _Sums | str:
    sums = channels.sums
    return "sums of 32 bits are rounded twice" if unpacked and sums is _Sums.TWICE else sums


def _gathered(window: Window, channels: _Channels) -> int:
    """Return an estimate for the collection of a pixel's products."""
    each = 60 + 12 * window.width + window.height * 40 + 5 * int(channels.matrix.shape[1]) // 2
    taps = window.height * window.width if channels.groups > 1 else 0  # they are not neighbours
    return channels.groups * (each + 20 * taps)


def _scratch(channels: _Channels, sums: _Sums) -> int:
    if sums is _Sums.LONG:
        return 4 * channels.steps
    return 8 * channels.steps + (16 if channels.count < _BLOCK else 0)


def _part(layer: Convolution, part: Part, *, unpacked: bool) -> Sequence[PlannedPart] | str:
    if not part.is_dense:
        return "the outputs of a pixel are not neighbours"
    channels = _Channels.of_part(layer, part)
    sums = _sums_of_pairs(channels, unpacked=unpacked)
    if isinstance(sums, str):
        return sums
    long, pixels = sums is _Sums.LONG, layer.image.shape[0] * part.height * part.width

    def fields(more: bool) -> Mapping[str, Member]:
        kernel = f"conv2d_{_form(unpacked)}"
        stream = channels.stream(sums, unpacked=unpacked, long=long)
        return {**part_fields(layer, part, more=more), **channels.fields(sums, stream, len(stream), kernel)}

    planned = PlannedPart(
        instructions=channels.instructions(pixels, sums, unpacked=unpacked, long=long)
        + pixels * _gathered(part.window, channels),
        weight_bytes=channels.weight_bytes(sums, unpacked=unpacked, long=long),
        scratch_bytes=_scratch(channels, sums),
        overlaps=partial(
            layer.overlaps,
            pixels=(1 if long else 2) * part.together(layer),
            reads=Reads.BEFORE if part.groups == 1 else Reads.THROUGHOUT,
        ),
        fields=fields,
    )
    return [planned]


def _fully_connected(layer: Convolution, *, unpacked: bool) -> Candidate | str:
    channels = _Channels.of(layer)
    if not is_wide(layer.context.operands):
        return "sums of 32 bits are rounded twice"
    if channels.matrix.shape[1] % 2:
        return "the number of inputs is odd"
    sums = channels.sums
    if isinstance(sums, str):
        return sums
    return _candidate(channels, f"fully_connected_{_form(unpacked)}_s16", sums, unpacked=unpacked, long=True)


def _form(unpacked: bool) -> str:
    return "unpacked" if unpacked else "dual"


def _candidate(
    channels: _Channels,
    kernel: str,
    sums: _Sums,
    *,
    unpacked: bool,
    long: bool,
    gathered: int = 0,
    scratch_bytes: int = 0,
    overlaps: Callable[[], tuple[Overlap, ...]] = tuple,
) -> Candidate:
    """Return a kernel that multiplies rows of data by blocks of channels; `gathered` is for collecting the rows."""
    layer = channels.layer

    def call() -> KernelCall:
        stream = channels.stream(sums, unpacked=unpacked, long=long)
        blob = layer.context.blob("weights", stream)
        convolution = kernel.removesuffix("_s16") if kernel.startswith("conv2d_") else ""
        members = channels.fields(sums, blob, len(stream), convolution)
        fields = {"window": layer.window_fields, **layer.view_fields, **members}
        return KernelCall(kernel, _HEADER, fields, table=_TABLE, sources=_SOURCES)

    return Candidate(
        kernel=kernel,
        instructions=channels.instructions(layer.pixels, sums, unpacked=unpacked, long=long) + gathered,
        weight_bytes=channels.weight_bytes(sums, unpacked=unpacked, long=long),
        scratch_bytes=scratch_bytes,
        overlaps=overlaps,
        call=call,
    )


def _points(layer: Convolution) -> Candidate | str:
    """Return the kernel for windows of one pixel over the channels of few groups, four output channels at a time."""
    channels, (inputs, outputs) = _Channels.of(layer), (layer.image.shape[3], layer.output.shape[3])
    if not layer.window.is_pointwise:
        return "the window is more than a pixel, or pixels are left out"
    if outputs < _BLOCK or inputs == 1:
        return "there are few channels"
    if not is_wide(layer.context.operands) or channels.sums is not _Sums.ONCE:
        return TOO_LARGE
    products = int(channels.matrix.shape[1])
    of_group = outputs * products // inputs
    blocks = []
    for first in np.minimum(np.arange(0, outputs, _BLOCK), outputs - _BLOCK):
        own = np.arange(first, first + _BLOCK)
        start = int(own[0]) // of_group * products
        end = min(start + -(-((int(own[-1]) // of_group + 1) * products - start) // 2) * 2, inputs)
        start -= (end - start) % 2
        if end - start > 2 * _MOST_STEPS or start < 0:
            return "there are many channels in a group"
        weights = np.zeros((_BLOCK, end - start), np.int16)
        for row, channel in zip(weights, own, strict=True):
            at = int(channel) // of_group * products - start
            row[at : at + products] = channels.matrix[channel]
        steps = words(weights.reshape(_BLOCK, -1, 2).swapaxes(0, 1))
        constants = np.array([start, first, (end - start) // 2]), channels.bias[own], channels.once_multipliers[own]
        blocks.append(np.concatenate([*constants[:2], steps.reshape(-1), constants[2]]).astype(np.int32))
    stream = np.concatenate(blocks)
    steps_of_all = sum(int(block[2]) for block in blocks)
    return Candidate(
        kernel="conv2d_points_s16",
        instructions=layer.pixels * (22 * len(blocks) + 6 * steps_of_all) + 70 * len(blocks) + 40,
        weight_bytes=stream.nbytes,
        call=lambda: KernelCall(
            "conv2d_points_s16",
            _HEADER,
            {
                "pixels": layer.pixels,
                "input_c": inputs,
                "output_c": outputs,
                "blocks": len(blocks),
                "stream": layer.context.blob("weights", stream),
                **limit_fields(layer.output, layer.activation),
            },
        ),
    )


def _depthwise(layer: Convolution) -> Candidate | str:
    count = layer.output.shape[3]
    if layer.depth_multiplier != 1 or count == 1:
        return "the channels are multiplied, or there is one"
    channels = _Channels.of(layer)
    if channels.sums is not _Sums.ONCE:
        return TOO_LARGE
    stream, (rows, columns), window = _depthwise_stream(channels), taps_inside(layer), layer.window
    pairs, output = -(-count // 2), layer.output.shape
    places = np.arange(output[2]) * window.stride_w - window.padding.left
    last = layer.image.shape[2] - 1 - (window.width - 1) * window.dilation_w
    inside = int(np.count_nonzero((places >= 0) & (places <= last)))
    single = output[2] - inside // 2 * 2  # these take the time of two
    taps = output[0] * rows * (9 * columns + 8 * output[2]) // 2
    pairwise = pairs * (taps + 20 * layer.pixels)

    return Candidate(
        kernel="depthwise_conv2d_dual_s16",
        instructions=pairwise * (output[2] + single) // output[2] + output[0] * output[1] * (300 + 150 * single),
        weight_bytes=stream.nbytes,
        overlaps=partial(_pair_overlaps, layer),
        call=lambda: KernelCall(
            "depthwise_conv2d_dual_s16",
            _HEADER,
            {
                "window": layer.window_fields,
                "stream": layer.context.blob("weights", stream),
                **limit_fields(layer.output, layer.activation),
            },
            sources=("dual_depthwise_s16",),
        ),
    )


def _repeated(layer: Convolution) -> Found:
    """Return the same kernel for repeated channels, with few and with many rows at a time."""
    times, count, window = layer.depth_multiplier, layer.output.shape[3], layer.window
    if times == 1:
        return "the channels are not multiplied"
    batches, height, width, _ = layer.image.shape
    whole = replace(layer, image=replace(layer.image, shape=(batches, height, width, count)), depth_multiplier=1)
    found = _depthwise(whole)
    if isinstance(found, str):
        return found

    def candidate(rows: int) -> Candidate:
        lines = min((rows - 1) * window.stride_h + (window.height - 1) * window.dilation_h + 1, height)
        strips = batches * -(-layer.output.shape[1] // rows)
        fields = found.call().fields
        return Candidate(
            kernel="depthwise_conv2d_repeated_s16",
            instructions=found.instructions + strips * (lines * width * count * (6 + 4 * times) // (2 * times) + 80),
            weight_bytes=found.weight_bytes,
            scratch_bytes=2 * lines * width * count,
            call=lambda: KernelCall(
                "depthwise_conv2d_repeated_s16",
                _HEADER,
                {"whole": fields, "depth_multiplier": times, "rows": rows},
                source="depthwise_conv2d_dual_s16",
                sources=("dual_depthwise_s16",),
            ),
        )

    heights = {min(rows, layer.output.shape[1]) for rows in _STRIPS}
    return [candidate(rows) for rows in sorted(heights)]


def _depthwise_stream(channels: _Channels) -> Array:
    """Return the words of `struct ferrule_depthwise_conv2d_dual_s16_params`."""
    matrix, count, window = channels.matrix, channels.count, channels.layer.window
    places = np.minimum(np.arange(0, count, 2), count - 2)[:, None] + np.arange(2)
    taps = matrix.reshape(count, window.height, window.width)[places]
    columns = np.pad(taps, [(0, 0), (0, 0), (0, 0), (0, window.width % 2)])
    by_word = columns.reshape(len(places), 2, window.height, -1, 2).transpose(0, 2, 3, 1, 4)
    parts = [channels.bias[places], words(by_word).reshape(len(places), -1), channels.once_multipliers[places]]
    return np.concatenate(parts, axis=1).reshape(-1).astype(np.int32)


def _pair_overlaps(layer: Convolution) -> tuple[Overlap, ...]:
    """Return the overlap of a kernel that computes a pixel along with its neighbour, two channels at a time.

    Its neighbour is written before the window of the pixel is read in full, so the distance is larger by the step from
    one window to the next. Of an odd number of channels, the last but one is read again after it was written.
    """
    step = layer.window.stride_w * layer.image.shape[3] * layer.image.dtype.size_bytes
    reads = Reads.PER_ELEMENT if layer.image.shape[3] % 2 else Reads.PER_CHANNEL
    return tuple(
        replace(each, distance_bytes=each.distance_bytes + step)
        for each in layer.overlaps(reads=reads)
        if each.distance_bytes is not None
    )


_RULES = frozenset({Rounding.TFLM})
_ROW = partial(weighted_row, rules=_RULES, dtype=DataType.INT16)
CONV_2D_DUAL_S16 = (
    _ROW("conv2d_dual_s16", partial(_convolution, unpacked=False), Feature.DSP),
    _ROW("conv2d_unpacked_s16", partial(_convolution, unpacked=True), Feature.DSP),
)
"""The kernels of FULLY_CONNECTED, too."""
PARTS_DUAL_S16 = tuple(
    row
    for unpacked in (False, True)
    for row in part_rows(
        f"conv2d_{_form(unpacked)}_s16",
        _HEADER,
        partial(_part, unpacked=unpacked),
        Feature.DSP,
        sources=_SOURCES,
        rules=_RULES,
        table=_TABLE,
        dtype=DataType.INT16,
    )
)
"""The same for parts of a layer."""
FULLY_CONNECTED_DUAL_S16 = (
    _ROW("fully_connected_dual_s16", partial(_fully_connected, unpacked=False), Feature.DSP),
    _ROW("fully_connected_unpacked_s16", partial(_fully_connected, unpacked=True), Feature.DSP),
)
CONV_2D_POINTS_S16 = _ROW("conv2d_points_s16", _points, Feature.DSP)
DEPTHWISE_CONV_2D_DUAL_S16 = _ROW("depthwise_conv2d_dual_s16", _depthwise, Feature.DSP)
DEPTHWISE_CONV_2D_REPEATED_S16 = _ROW("depthwise_conv2d_repeated_s16", _repeated, Feature.DSP)
