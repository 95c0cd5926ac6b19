# SPDX-License-Identifier: Apache-2.0
"""ADD and SUB of int8 with the host's vector instructions: one multiply-add per input, if the result is exact."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.host.library import HOST
from ferrule.backends.cpu_acc.host.lowering.call import HEADER, Host
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.operators.binary import combination
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import DataType
from ferrule.operators.elementwise.stored_binary import Sum, Term, int8_results

_LIMIT = 2**31
_TIE_BREAKERS = (0.0, 2.0**-22, 2.0**-20, 2.0**-18, -(2.0**-20))
"""Relative changes of the factors to try; a small change rounds halves away from zero, as the reference does."""
_NUDGES = (0, -1, 1, -8, 8, -64, 64)
"""Changes of the offset to try, in units of its last bit."""
_BITS = 3
"""The number of fractional bits that may be given up."""


@frozen
class LinearSum:
    """The coefficients of (a * first + b * second + offset) >> shift; the result is then clamped."""

    first: int
    second: int
    offset: int
    shift: int


def lower_sum(context: LoweringContext, host: Host) -> LoweredOp | None:
    """Return the call for int8 tensors of one shape; None for others, or if no exact numbers are found."""
    output = context.output
    if output.dtype is not DataType.INT8 or any(context.input(i).elements != output.elements for i in range(2)):
        return None
    total = combination(context)
    line = linear_sum(total) if isinstance(total, Sum) else None
    if line is None or not isinstance(total, Sum):
        return None
    limits = {"low": total.result.low, "high": total.result.high}
    return KernelCall(
        f"host_sum_s8_{host.instructions.name}",
        HEADER,
        {"elements": output.elements, **asdict(line), **limits},
        table="host_sum_s8_params",
        inputs=(0, 1),
        replaced={0: 0, 1: 0},
        contribution=HOST,
    ).lowered(context)


def linear_sum(total: Sum) -> LinearSum | None:
    """Return 32-bit numbers with the exact result for every pair of int8 inputs; None if none were found."""
    wanted = int8_results(total).reshape(256, 256)
    stored = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
    for line in _candidates(total):
        sums = stored[:, np.newaxis] * line.first + stored * line.second + line.offset
        steps = np.abs(stored[:, np.newaxis] * line.first) + np.abs(stored * line.second) + abs(line.offset)
        if steps.max() < _LIMIT and np.array_equal(
            np.clip(sums >> line.shift, total.result.low, total.result.high), wanted
        ):
            return line
    return None


def _candidates(total: Sum) -> Iterator[LinearSum]:
    result = total.result
    first, second = _slope(total.first, total), _slope(total.second, total)
    if total.subtract:
        second = -second
    constant = total.first.offset * first + total.second.offset * second
    rounding = result.zero_point + 0.5
    reach = 128 * (abs(first) + abs(second)) + abs(constant) + abs(rounding) + 1
    most = min(math.floor(math.log2(_LIMIT / reach)), 30)
    for shift in range(most, max(most - _BITS, 0), -1):
        unit = 2.0**shift
        for tie_breaker in _TIE_BREAKERS:
            scale = unit * (1 + tie_breaker)
            offset = round(constant * scale + rounding * unit)
            for nudge in _NUDGES:
                yield LinearSum(
                    first=round(first * scale), second=round(second * scale), offset=offset + nudge, shift=shift
                )


def _slope(term: Term, total: Sum) -> float:
    """Return the increase of the result per unit of the stored value, without limits and rounding."""
    scaled = math.ldexp(term.multiplier, term.shift - 31 + term.left_shift)
    return scaled * math.ldexp(total.result.multiplier, total.result.shift - 31)
