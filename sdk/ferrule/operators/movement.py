# SPDX-License-Identifier: Apache-2.0
"""Checks shared by the operators that only move elements."""

from __future__ import annotations

from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, TensorInfo
from ferrule.operators.operator import Operands

MOVABLE = frozenset(DataType) - {DataType.FLOAT16, DataType.UINT32, DataType.UINT64}
"""The types for which TensorFlow Lite Micro or LiteRT has kernels that move elements."""


def check_types(operands: Operands, allowed: frozenset[DataType]) -> None:
    """Raise UnsupportedError unless all tensors have the same, allowed type."""
    source = operands.input(0)
    if source.dtype not in allowed:
        raise UnsupportedError(
            f"tensor '{source.name}' is {source.dtype}, expected {', '.join(sorted(allowed))}",
        )
    for info in (*operands.inputs, *operands.outputs):
        if info is not None and info.dtype is not source.dtype:
            raise UnsupportedError(
                f"tensor '{info.name}' is {info.dtype}, expected {source.dtype} as '{source.name}' is"
            )


def check_quantisations(operands: Operands) -> None:
    """Raise UnsupportedError unless all tensors have the same quantisation, with at most one scale."""
    source = operands.input(0)
    for info in (*operands.inputs, *operands.outputs):
        if info is None:
            continue
        if info.quantization is not None and info.quantization.per_channel:
            raise UnsupportedError(f"tensor '{info.name}' has {len(info.quantization.scales)} scales, expected one")
        if _scale_and_zero_point(info) != _scale_and_zero_point(source):
            raise UnsupportedError(
                f"tensor '{info.name}' has another quantisation than '{source.name}', expected the same"
            )


def check_axes(info: TensorInfo, limit: int) -> None:
    """Raise UnsupportedError if a tensor has more axes than `limit`, the maximum of the reference kernel."""
    if len(info.shape) > limit:
        raise UnsupportedError(f"tensor '{info.name}' has {len(info.shape)} axes, expected at most {limit}")


def _scale_and_zero_point(info: TensorInfo) -> tuple[float, int] | None:
    return None if info.quantization is None else (info.scale, info.zero_point)
