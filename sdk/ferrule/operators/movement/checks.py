# SPDX-License-Identifier: Apache-2.0
"""Checks that operators share: of types, axes and quantisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import DataType, Descriptor, Quantization, TensorInfo
from ferrule.operators.operator import Operands

Check = Callable[[Any, Operands], None]
MOVABLE = frozenset(DataType) - {DataType.FLOAT16, DataType.UINT32, DataType.UINT64}
"""The types for which TensorFlow Lite Micro or LiteRT has kernels that move elements."""


def check_types(operands: Operands, allowed: frozenset[DataType]) -> None:
    """Raise UnsupportedError unless all tensors have the same, allowed type."""
    source = operands.source
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
    source = operands.source
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


def same_shapes(operands: Operands) -> list[TensorInfo]:
    """Return all inputs, at least one; ModelError unless they have one shape."""
    infos = operands.required(range(max(len(operands.inputs), 1)))
    for info in infos[1:]:
        if info.shape != infos[0].shape:
            raise ModelError(
                f"tensor '{info.name}' has shape {list(info.shape)}, expected {list(infos[0].shape)} as "
                f"'{infos[0].name}' has"
            )
    return infos


def check_axis(info: TensorInfo, axis: int) -> None:
    """Raise ModelError if a tensor does not have an axis."""
    if not 0 <= axis < len(info.shape):
        raise ModelError(f"the axis is {axis}, expected one of tensor '{info.name}' of shape {list(info.shape)}")


def check_count(operands: Operands, count: int) -> None:
    """Raise UnsupportedError for another number of outputs."""
    if len(operands.outputs) != count:
        raise UnsupportedError(f"there are {len(operands.outputs)} outputs, expected {count}")


def expect_type(info: TensorInfo, *wanted: DataType) -> None:
    """Raise UnsupportedError unless a tensor has one of these types."""
    if info.dtype not in wanted:
        *others, last = wanted
        listed = f"{', '.join(others)} or {last}" if others else last
        raise UnsupportedError(f"tensor '{info.name}' is {info.dtype}, expected {listed}")


def expect_types(operands: Operands, inputs: Sequence[DataType], outputs: Sequence[DataType]) -> None:
    """Raise UnsupportedError unless the tensors have exactly these types."""
    found = operands.required(range(len(inputs)))
    for info, wanted in zip((*found, *operands.outputs), (*inputs, *outputs), strict=True):
        expect_type(info, wanted)


def typed(inputs: Sequence[DataType], outputs: Sequence[DataType]) -> Check:
    """Return the check of an operator whose tensors have exactly these types."""
    return lambda _, operands: expect_types(operands, inputs, outputs)


def movable(types: frozenset[DataType] = MOVABLE, *, axes: int | None = None, of_output: bool = False) -> Check:
    """Return the check of an operator whose tensors have one type of `types`, and the input at most `axes` axes.

    With `of_output`, the output has at most so many.
    """

    def check(_: Descriptor, operands: Operands) -> None:
        check_types(operands, types)
        if axes is not None:
            check_axes(operands.output if of_output else operands.source, axes)

    return check


def check_same_type(name: str, operands: Operands, types: Sequence[DataType]) -> None:
    """Raise UnsupportedError unless input and output have the same type of `types`; `name` is the operator's."""
    source, output = operands.ends
    if source.dtype is not output.dtype or source.dtype not in types:
        raise UnsupportedError(
            f"{name} of {source.dtype} to {output.dtype} has no reference kernel, "
            f"expected the same type of {', '.join(types)} on both sides"
        )


def check_same_quantisation(operands: Operands) -> None:
    """Raise UnsupportedError unless input and output have the same quantisation, all scales included."""
    source, output = operands.ends
    if source.quantization != output.quantization:
        raise UnsupportedError(f"'{source.name}' and '{output.name}' differ in quantisation, expected the same")


def check_alike(info: TensorInfo, other: TensorInfo) -> None:
    """Raise UnsupportedError unless a tensor has the type and the quantisation of another."""
    if (info.dtype, info.quantization) != (other.dtype, other.quantization):
        raise UnsupportedError(f"'{info.name}' and '{other.name}' differ in type or quantisation, expected the same")


def check_prescribed(name: str, output: TensorInfo, wanted: Quantization, tolerance: float = 0.0) -> None:
    """Raise UnsupportedError unless an output has the quantisation that TensorFlow Lite prescribes for an operator."""
    if abs(output.scale - wanted.scale) > tolerance * wanted.scale or output.zero_point != wanted.zero_point:
        raise UnsupportedError(
            f"tensor '{output.name}' has scale {output.scale:g} and zero point {output.zero_point}, "
            f"{name} to {output.dtype} needs {wanted.scale:g} and {wanted.zero_point}"
        )


def check_per_tensor(*infos: TensorInfo) -> None:
    """Refuse integer tensors without a scale or with more than one scale."""
    for info in infos:
        if info.dtype.is_float:
            continue
        if info.quantization is None:
            raise UnsupportedError(
                f"tensor '{info.name}' is {info.dtype} without quantisation, expected scale and zero point"
            )
        if info.quantization.per_channel:
            raise UnsupportedError(f"tensor '{info.name}' has {len(info.quantization.scales)} scales, expected one")


def check_activations(*infos: TensorInfo) -> None:
    """Refuse quantised activations that have no scale, scales per channel, or a non-zero zero point in int16."""
    check_per_tensor(*infos)
    for info in infos:
        if info.dtype is DataType.INT16 and info.zero_point != 0:
            raise UnsupportedError(f"tensor '{info.name}' is int16 with zero point {info.zero_point}, expected 0")
