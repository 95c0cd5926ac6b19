# SPDX-License-Identifier: Apache-2.0
"""ADD and SUB of int8 with the host's vector instructions: one multiply-add per input, if the result is exact."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.host.lowering.call import HEADER, Host, host_call
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.operators.binary import combination
from ferrule.backends.cpu_acc.lowering.proofs.scaled_sum import TIE_BREAKERS, fitting_constant
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import DataType
from ferrule.operators.elementwise.stored_binary import STORED, Sum, int8_results

_LIMIT = 2**31
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
    if not isinstance(total, Sum):
        return None
    line = linear_sum(total)
    if line is None:
        return None
    limits = {"low": total.result.low, "high": total.result.high}
    fields = {"elements": output.elements, **asdict(line), **limits}
    return host_call(context, host, KernelCall("sum_s8", HEADER, fields, inputs=(0, 1), replaced={0: 0, 1: 0}))


def linear_sum(total: Sum) -> LinearSum | None:
    """Return 32-bit numbers with the exact result for every pair of int8 inputs; None if none were found."""
    parts = total.parts()
    wanted = int8_results(total).reshape(256, 256).astype(np.int64)
    slopes = [float(part[127] - part[128]) * parts.unit / 255 for part in (parts.first, parts.second)]
    reach = 128 * sum(map(abs, slopes)) + abs(float(parts.first[0] + parts.second[0]) * parts.unit + parts.constant) + 1
    most = min(math.floor(math.log2(_LIMIT / reach)), 30)
    for shift, tie_breaker in itertools.product(range(most, max(most - _BITS, 0), -1), TIE_BREAKERS):
        first, second = (round(slope * 2.0**shift * (1 + tie_breaker)) for slope in slopes)
        added = first * STORED, second * STORED
        offset = fitting_constant(*added, wanted, (parts.low, parts.high), shift)
        if offset is not None and sum(int(np.abs(each).max()) for each in added) + abs(offset) < _LIMIT:
            return LinearSum(first=first, second=second, offset=offset, shift=shift)
    return None
