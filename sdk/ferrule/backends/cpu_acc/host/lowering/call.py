# SPDX-License-Identifier: Apache-2.0
"""Calls of the kernels for vector instructions, whose work threads may share, and the scales that they use."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.host.instruction_set import InstructionSet
from ferrule.backends.cpu_acc.host.library import HOST
from ferrule.backends.cpu_acc.host.lowering.rounding import float_rule
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Aggregate, Identifier, Integer, Variable
from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import factor_arrays, wrap_int32

HEADER = "ferrule/cpu_acc/host.h"
POOL = Identifier("pool")
"""The identifier of the thread pool in calls; its value may be null."""
PIECES = "pieces"
"""The member of parameter tables with the number of pieces into which the work is divided."""
MIN_PRODUCTS = 4_000_000
"""The fewest multiply-adds in a piece that justify waking a thread: about 20 microseconds of one core with AVX-512."""
MIN_DEPTHWISE_PRODUCTS = 1_000_000
"""The same limit for depthwise convolutions."""


@frozen
class Host:
    """The host for which layers are lowered."""

    instructions: InstructionSet
    threads: int
    """Number of threads that may share the work of one layer."""

    def pieces(self, products: int, least: int, most: int) -> int:
        """Return the number of pieces for `products` multiply-adds: at most `most`, each of at least `least`."""
        return max(1, min(self.threads, products // least, most))


def pieces_of(op: LoweredOp) -> int:
    """Return the number of pieces into which a kernel call is divided; 1 if the kernel cannot divide its work."""
    for declaration in op.declarations:
        if isinstance(declaration, Variable) and isinstance(declaration.value, Aggregate):
            for field in declaration.value.fields:
                if field.name == PIECES and isinstance(field.value, Integer):
                    return field.value.value
    return 1


def host_call(context: LoweringContext, host: Host, call: KernelCall) -> LoweredOp:
    """Return the call of the kernel for the host's instruction set, ferrule_host_<kernel>_<set>."""
    kernel = f"host_{call.kernel}_{host.instructions.suffix}"
    table = call.table or f"host_{call.kernel}_params"
    return replace(call, kernel=kernel, table=table, contribution=HOST).lowered(context)


_UNSIGNED_OFFSET = 128
_LARGEST_DIFFERENCE = 255
"""The largest magnitude of a stored int8 minus its zero point."""


class HostRounding(IntEnum):
    """enum ferrule_host_rounding of ferrule/cpu_acc/host.h."""

    TFLM = 0
    FLOAT = 1
    ONNX = 2
    SINGLE = 3


@frozen(eq=False)
class Int8Scales:
    """The numbers by which an int8 kernel turns the sums of each channel into stored values."""

    rounding: HostRounding
    """How vectors with a channel that is not proved are rounded."""
    rows: Array
    """int32 [4, channels]: the scales for that."""
    float_rows: Array
    """int32 [4, channels]: bias, and scale, offset and drop as float32."""
    proved: Array
    """bool, one per channel: whether the float32 rule may be used."""

    def packed(self, channels: Array) -> tuple[Array, Array]:
        """Return the rows of `channels`, [..., lanes], as [..., 4, lanes], and how each vector is rounded, uint8.

        A channel -1 is none.
        """
        there = channels >= 0
        in_float: Array = np.asarray((self.proved[channels] | ~there).all(axis=-1))
        rows = np.where(in_float[..., np.newaxis], self.float_rows[:, channels], self.rows[:, channels])
        rounding = np.where(in_float, np.uint8(HostRounding.FLOAT), np.uint8(self.rounding))
        return np.moveaxis(np.where(there, rows, 0), 0, -2), np.asarray(rounding, np.uint8)


def int8_scales(layer: Convolution, matrix: Array, instructions: InstructionSet) -> Int8Scales:
    """Return the scales of a layer with the weights `matrix`, [channels, products]."""
    channel_factors = layer.factors()
    bias = layer.bias(np.int64)
    reach = np.abs(matrix.astype(np.int64)).sum(axis=1) * _LARGEST_DIFFERENCE + np.abs(bias)
    if instructions.unsigned:
        # The kernels multiply x + 128 instead of x - zero point; the correction is exact modulo 2**32.
        bias -= (layer.image.zero_point + _UNSIGNED_OFFSET) * matrix.sum(axis=1, dtype=np.int64)
    multipliers, shifts = factor_arrays(channel_factors)
    rounding = layer.context.layer.rounding
    if rounding is Rounding.ONNX:
        exact = np.ldexp(multipliers.astype(np.float64), shifts - 31).astype(np.float32)
        table = np.zeros((4, len(bias)), np.int32)
        table[0], table[1] = wrap_int32(bias), exact.view(np.int32)
        none = np.zeros(len(bias), np.bool_)
        return Int8Scales(rounding=HostRounding.ONNX, rows=table, float_rows=table, proved=none)
    rows = (wrap_int32(bias), multipliers, np.maximum(shifts, 0), np.maximum(-shifts, 0))
    rule = float_rule(channel_factors, reach, **layer.output_fields, rounding=rounding)
    return Int8Scales(
        rounding=HostRounding[rounding.name],
        rows=np.stack(rows).astype(np.int32),
        float_rows=np.stack((wrap_int32(bias + rule.shift), *rule.rows.view(np.int32))).astype(np.int32),
        proved=rule.proved,
    )
