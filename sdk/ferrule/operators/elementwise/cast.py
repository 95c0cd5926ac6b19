# SPDX-License-Identifier: Apache-2.0
"""CAST: stored values in another element type; quantisations have no meaning for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.operator import Operands, Operator, of_one
from ferrule.operators.sample import LayerSample

_TYPES = frozenset(DataType) - {DataType.FLOAT16, DataType.UINT64}


@frozen
class CastDescriptor(Descriptor):
    """One input, one output of any element type; for the same one, the layer is a copy."""


def check(_: CastDescriptor, operands: Operands) -> None:
    """Raise UnsupportedError for a type that has no conversion; equal types are a copy."""
    source, output = operands.ends
    for info in (source, output):
        if info.dtype not in _TYPES:
            raise UnsupportedError(f"tensor '{info.name}' is {info.dtype}, expected {', '.join(sorted(_TYPES))}")


def kernel(_: CastDescriptor, operands: Operands, data: Array) -> Array:
    """Return the values: integers wrap, floats are cut towards zero and saturate, and NaN becomes 0."""
    dtype = operands.output.dtype.numpy
    if data.dtype.kind == "f" and dtype.kind in "iu":
        return _saturated(data, dtype)
    return data.astype(dtype)


def _saturated(data: Array, dtype: np.dtype[Any]) -> Array:
    limits = np.iinfo(dtype)
    wide = np.trunc(np.nan_to_num(data.astype(np.float64), nan=0.0))
    with np.errstate(invalid="ignore"):
        inside = wide.clip(limits.min, limits.max).astype(dtype)
    # The highest int64 is no float64: the clamp lies one above it.
    return np.where(wide >= 2.0**63, limits.max, inside).astype(dtype)


def _sample(sample: LayerSample) -> Descriptor:
    sample.take(sample.shape())
    sample.output_type = sample.dice.choice([dtype for dtype in DataType if dtype in _TYPES])
    sample.output = sample.quantization(sample.output_type)
    return CastDescriptor()


CAST = Operator(
    descriptor=CastDescriptor,
    type=LayerType.CAST,
    elementwise=True,
    check=check,
    kernel=of_one(kernel),
    sample=_sample,
)
