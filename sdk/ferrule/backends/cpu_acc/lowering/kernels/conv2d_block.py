# SPDX-License-Identifier: Apache-2.0
"""CONV_2D on cores with the DSP extension: four channels of two pixels at a time, as in `ferrule/kernels/block.h`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call, window_value
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_pair,
    channel_words,
    int8_channels,
    pair_weights,
)
from ferrule.backends.cpu_acc.lowering.overlap import pixel_overlaps
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED, proved_channels, proved_words
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext
from ferrule.dom import Aggregate, Expression, Field, Identifier, Integer, Null
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Rounding, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.conv2d import Conv2dDescriptor
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.weighted import WEIGHTED_RULES
from ferrule.operators.window import Window

_KERNEL = "conv2d_block_s8"
_CHANNELS = 4
_PROVED_WORDS = 2
"""Constants of a channel in the proved form; the exact form has 4."""
_WIDE_WORDS = 8
"""Groups of four products for which weights of 16 bits take less cycles."""
_WORTH_LISTING = 0.75


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockWeights:
    """Weights in blocks of four channels, with the constants of their channels."""

    words: int
    """Products per output / 4, rounded up."""
    channels: int
    """Channels in blocks, repetitions included."""
    proved: bool
    """Whether the constants have the proved form, not the exact one."""
    data: Array
    """int32."""
    wide: bool = False
    """Whether the weights have 16 bits."""


def block_weights(channels: Channels, output: TensorInfo, activation: Activation) -> BlockWeights | str:
    """Return the weights of whole blocks, the last channel repeated; the reason as a string if that is impossible."""
    if (output.dtype, *activation_range(activation, output)) != (DataType.INT8, -128, 127):
        return "the output is clamped within int8"
    whole = np.minimum(np.arange(-(-len(channels.matrix) // _CHANNELS) * _CHANNELS), len(channels.matrix) - 1)
    if not can_pair(channels.chosen(whole), output, activation):
        return "a weight or a sum is too large to be paired, or an output is scaled up"
    constants = _constants(channels, output)
    if constants is None:
        return "an output is scaled up" if channels.rounding is Rounding.TFLM else NOT_PROVED
    blocks = len(whole) // _CHANNELS
    weights = pair_weights(channels.matrix[whole], _CHANNELS).reshape(blocks, -1)
    after = constants[whole].reshape(blocks, -1)
    before = after[:, :0]
    if constants.shape[1] == _PROVED_WORDS:
        before, after = after[:, [3, 7]], after[:, [0, 1, 2, 4, 5, 6]]
    data = np.concatenate([before, weights, after], axis=1).reshape(-1)
    return BlockWeights(
        words=weights.shape[1] // _CHANNELS, channels=len(whole), proved=constants.shape[1] == _PROVED_WORDS, data=data
    )


def wide_weights(channels: Channels, output: TensorInfo, activation: Activation) -> BlockWeights | str:
    """Return weights of 16 bits, times 256; the reason as a string if that is impossible or takes longer."""
    narrow = block_weights(channels, output, activation)
    if isinstance(narrow, str):
        return narrow
    constants = _constants(channels, output)
    if constants is None or not narrow.proved:
        return "an output needs two roundings"
    if narrow.words > _WIDE_WORDS:
        return (
            f"more than {_WIDE_WORDS * _CHANNELS} products: loading weights of 16 bits takes more cycles than it saves"
        )
    if narrow.channels != len(channels.matrix):
        return "the channels do not fill blocks of four"
    blocks, words = narrow.channels // _CHANNELS, narrow.words
    products = np.zeros((narrow.channels, 4 * words), np.int32)
    products[:, : channels.matrix.shape[1]] = channels.matrix
    # [block, channel, word, half of a pair, parity] -> [block, word, parity, channel, half of a pair]
    split = (products * 256).astype(np.int16).reshape(blocks, _CHANNELS, words, 2, 2).transpose(0, 2, 4, 1, 3)
    weights = np.ascontiguousarray(split).astype("<i2").view("<i4").reshape(blocks, -1).astype(np.int32)
    each = constants.reshape(blocks, _CHANNELS, _PROVED_WORDS)
    data = np.concatenate([each[:, :, 1], weights, each[:, :, 0]], axis=1).reshape(-1)
    return replace(narrow, data=data, wide=True)


def _constants(channels: Channels, output: TensorInfo) -> Array | None:
    """Return the constants of each channel, in the proved form if there is one, otherwise in TFLM's exact form."""
    if output.zero_point == -128 or channels.rounding is not Rounding.TFLM:
        low, high = _ends(channels)
        proved = proved_words(low, high, channels.factors, output.zero_point, channels.rounding)
        if proved is not None:
            return np.stack([proved[:, 0], (channels.bias << 8) + proved[:, 1]], axis=1).astype(np.int32)
    if channels.rounding is not Rounding.TFLM:
        return None
    words = channel_words(channels, 1).reshape(-1, 3).astype(np.int64)
    if words[:, 2].min() < 1:
        return None
    rounding = ((2 * output.zero_point + 1) << words[:, 2]) >> 1
    return np.concatenate([words, rounding[:, None]], axis=1).astype(np.int32)


def _ends(channels: Channels) -> tuple[Array, Array]:
    """Return the lowest and the highest sum of each channel."""
    wide = channels.matrix.astype(np.int64)
    ends = -128 * wide, 127 * wide
    return channels.bias + np.minimum(*ends).sum(axis=1), channels.bias + np.maximum(*ends).sum(axis=1)


def _descriptor(context: LoweringContext) -> Conv2dDescriptor:
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, Conv2dDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return descriptor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """How the kernel runs a layer."""

    channels: Channels
    live: Array
    """Output channels that have weights; at least one."""
    window: Window
    inputs: Array | None
    """Input channels that have weights, of a 1x1 convolution; None for all."""
    line_bytes: int
    weights: BlockWeights

    @property
    def kernel(self) -> str:
        return "conv2d_1x1_block_s8" if self.pointwise else _KERNEL

    @property
    def pointwise(self) -> bool:
        return self.line_bytes == 0 and self.window.is_pointwise

    @property
    def listed(self) -> bool:
        """Whether the stored channels are listed."""
        whole = self.weights.channels == self.live.size == len(self.channels.matrix)
        return not whole or bool(self.channels.dead.any())

    @property
    def scratch_bytes(self) -> int:
        return 16 * self.weights.words + self.window.height * self.line_bytes


def _plan(context: LoweringContext, *, wide: bool, live: Array | None = None) -> _Plan | str:
    """Return how the kernel computes the channels `live`, by default all that are not dead; or why it cannot."""
    descriptor, image, output = _descriptor(context), context.input(0), context.operands.output
    if image.dtype is not DataType.INT8:
        return "the data is not int8"
    channels = int8_channels(context, descriptor.activation, 0)
    if live is None:
        live = np.flatnonzero(~channels.dead) if not channels.dead.all() else np.zeros(1, np.intp)
    window = descriptor.window(context.input(1))
    chosen = channels.chosen(live)
    inputs = _listed_inputs(chosen.matrix) if window.is_pointwise else None
    line_bytes = 0
    if inputs is not None:
        chosen = replace(chosen, matrix=chosen.matrix[:, inputs])
    elif image.shape[3] % 4 != 0:
        if window.dilation_w != 1:
            return "the window is dilated and the input channels are not a multiple of four"
        line_bytes = ((output.shape[2] - 1) * window.stride_w + window.width) * image.shape[3]
        order = _row_order(window.height, window.width * image.shape[3])
        chosen = replace(chosen, matrix=np.pad(chosen.matrix, ((0, 0), (0, 1)))[:, order])
    weights = (wide_weights if wide else block_weights)(chosen, output, descriptor.activation)
    if isinstance(weights, str):
        return weights
    if wide and channels.dead.any():
        return "some channels have no weights"
    return _Plan(channels=channels, live=live, window=window, inputs=inputs, line_bytes=line_bytes, weights=weights)


def _listed_inputs(matrix: Array) -> Array | None:
    """Return the inputs that have weights if at least a quarter has none: collecting listed inputs takes longer."""
    used = np.flatnonzero(matrix.any(axis=0)) if matrix.any() else np.zeros(1, np.intp)
    return None if -(-used.size // 4) * 4 > _WORTH_LISTING * matrix.shape[1] else used


def _row_order(rows: int, row_bytes: int) -> Array:
    """Return the products in the order of `ferrule_block_gather`; -1 for none."""
    whole = row_bytes // 4 * 4
    index = np.arange(rows * row_bytes).reshape(rows, row_bytes)
    rest = index[:, whole:].reshape(-1)
    padded = np.pad(rest, (0, -rest.size % 4), constant_values=-1).reshape(-1, 4)[:, [0, 2, 1, 3]]
    return np.concatenate([index[:, :whole].reshape(-1), padded.reshape(-1)])


def _narrow(context: LoweringContext) -> Candidate | str:
    return _candidate(context, wide=False)


def _wide(context: LoweringContext) -> Candidate | str:
    return _candidate(context, wide=True)


def proved_live(context: LoweringContext) -> tuple[Channels, Array]:
    """Return a layer's channels, and whether each one is alive and has proved constants."""
    channels, output = int8_channels(context, _descriptor(context).activation, 0), context.operands.output
    low, high = _ends(channels)
    found = proved_channels(low, high, channels.factors, output.zero_point, channels.rounding)
    return channels, found & ~channels.dead


def block_part(context: LoweringContext, live: Array) -> Candidate | str:
    """Return the kernel for some channels of a layer, which writes the dead ones, too; or why it cannot."""
    return _candidate(context, wide=False, live=live)


def _candidate(context: LoweringContext, *, wide: bool, live: Array | None = None) -> Candidate | str:
    plan = _plan(context, wide=wide, live=live)
    if isinstance(plan, str):
        return plan
    return Candidate(
        grows=wide,
        kernel=plan.kernel,
        instructions=_instructions(plan, context.operands.output),
        weight_bytes=plan.weights.data.nbytes + (2 * plan.weights.channels if plan.listed else 0),
        scratch_bytes=plan.scratch_bytes,
        lower=lambda: _lower(context, plan),
    )


def _instructions(plan: _Plan, output: TensorInfo) -> int:
    weights = plan.weights
    pairs = -(-output.elements // output.shape[3] // 2)
    if weights.wide:
        requantize, step = 30, 22
    else:
        requantize, step = (37 if weights.proved else 64) + (4 if plan.listed else 0), 24
    block = step * weights.words + 3 * (-(-(weights.words - 1) // 8)) + requantize + 8
    if plan.inputs is not None:
        gather = 24 * weights.words + 60
    else:
        gather = 8 * weights.words + 15 if plan.pointwise else 9 * weights.words + 4 * plan.window.height + 60
    fixed = output.shape[3] if plan.channels.dead.any() else 0
    return pairs * (weights.channels // _CHANNELS * block + gather + fixed)


def _lower(context: LoweringContext, plan: _Plan) -> LoweredOp:
    image, output = context.input(0), context.operands.output
    inputs = None
    if plan.inputs is not None:
        inputs = context.blob("inputs", np.pad(plan.inputs, (0, -plan.inputs.size % 4)).astype(np.int16))
    block, blobs = _block_value(context, plan)
    row_bytes = plan.window.width * image.shape[3]
    return kernel_call(
        context,
        plan.kernel,
        header="conv2d",
        table="conv2d_block_s8_params",
        overlaps=pixel_overlaps(context, plan.window, image, output, pixels=2),
        scratch_bytes=plan.scratch_bytes,
        window=window_value(plan.window, image, output),
        input_zero_point=image.zero_point,
        inputs=inputs,
        line_bytes=plan.line_bytes,
        rows=_rows_value(plan, image),
        gather=Identifier(f"ferrule_block_gather{'_rgb' if plan.window.height == 3 and row_bytes == 9 else ''}"),
        block=block,
        extra_blobs=blobs,
        contribution=KERNELS.part(plan.kernel, "block"),
    )


def _rows_value(plan: _Plan, image: TensorInfo) -> Expression:
    row_bytes = plan.window.width * image.shape[3]
    distance = plan.line_bytes or plan.window.dilation_h * image.shape[2] * image.shape[3]
    values = {
        "count": plan.window.height,
        "words": row_bytes // 4,
        "rest": row_bytes % 4,
        "step_bytes": distance - row_bytes // 4 * 4,
    }
    return Aggregate(tuple(Field(Integer(value), name) for name, value in values.items()))


def _block_value(context: LoweringContext, plan: _Plan) -> tuple[Expression, tuple[Blob, ...]]:
    weights = context.blob("weights", plan.weights.data)
    blobs = [weights]
    positions: Expression = Null()
    fixed: Expression = Null()
    if plan.listed:
        whole = np.minimum(np.arange(plan.weights.channels), plan.live.size - 1)
        blobs.append(context.blob("positions", plan.live[whole].astype(np.int16)))
        positions = Identifier(blobs[-1].name)
    if plan.channels.dead.any():
        blobs.append(context.blob("fixed", plan.channels.fixed))
        fixed = Identifier(blobs[-1].name)
    form = "wide" if plan.weights.wide else "proved" if plan.weights.proved else "exact"
    values: dict[str, Expression] = {
        "weights": Identifier(weights.name),
        "weight_bytes": Integer(plan.weights.data.nbytes),
        "words": Integer(plan.weights.words),
        "output_c": Integer(len(plan.channels.matrix)),
        "positions": positions,
        "fixed": fixed,
        "store": Identifier(f"ferrule_block_{form}{'_listed' if plan.listed else ''}"),
    }
    return Aggregate(tuple(Field(value, name) for name, value in values.items())), tuple(blobs)


_NEEDS = frozenset({Feature.LONG_MULTIPLY, Feature.DSP})
BLOCK_ROWS: tuple[Row, ...] = (
    Row(kernel=_KERNEL, needs=_NEEDS, rules=WEIGHTED_RULES, candidate=_narrow),
    Row(kernel=f"{_KERNEL} with weights of 16 bits", needs=_NEEDS, rules=WEIGHTED_RULES, candidate=_wide),
)
"""The kernel for windows of all sizes, which has an entry of its own for windows of one pixel."""
