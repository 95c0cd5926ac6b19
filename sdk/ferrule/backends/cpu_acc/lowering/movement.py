# SPDX-License-Identifier: Apache-2.0
"""Elements moved from one layout to another: the fewest axes that describe it, and the call of the right kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext, numbers
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
    Call,
    Const,
    Evaluate,
    Expression,
    Field,
    Identifier,
    Integer,
    Statement,
    StructType,
    Variable,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Shape

KERNEL_AXES = 6
"""FERRULE_COPY_AXES of the C kernels."""
MIN_RUN_BYTES = 8
"""Shorter runs are copied element by element, which takes fewer instructions than a call of memcpy."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a movement; strides in elements."""

    extent: int
    input_stride: int
    output_stride: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """Elements that are copied at each index of `axes`, outermost first; offsets in elements."""

    axes: tuple[Axis, ...]
    input_offset: int = 0
    output_offset: int = 0

    def merged(self) -> Movement:
        """Return the same movement with the fewest axes."""
        axes: list[Axis] = []
        for axis in self.axes:
            if axis.extent == 1:
                continue
            outer = axes[-1] if axes else None
            if (
                outer is not None
                and outer.input_stride == axis.input_stride * axis.extent
                and outer.output_stride == axis.output_stride * axis.extent
            ):
                axes[-1] = Axis(outer.extent * axis.extent, axis.input_stride, axis.output_stride)
            else:
                axes.append(axis)
        return Movement(axes=tuple(axes), input_offset=self.input_offset, output_offset=self.output_offset)


def dense_strides(shape: Shape) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def axes_of(shape: Shape, input_strides: Sequence[int], output_strides: Sequence[int]) -> tuple[Axis, ...]:
    """Return the axes of a movement of that shape."""
    return tuple(Axis(*axis) for axis in zip(shape, input_strides, output_strides, strict=True))


class Movements:
    """Collects the movements of one layer and becomes its lowering."""

    def __init__(self, context: LoweringContext) -> None:
        self._context = context
        self._kernels: list[str] = []
        self._statements: list[Statement] = []
        self._declarations: list[Variable] = []
        self._blobs: list[Blob] = []

    def source(self, index: int) -> Expression:
        """Return a pointer to an input's elements, be it a constant or not."""
        data = self._context.constant(index) if self._context.is_constant(index) else None
        if data is None:
            return self._context.input_pointer(index)
        blob = self._context.blob(f"input_{index}", bytes_for_c(data))
        self._blobs.append(blob)
        return Identifier(blob.name)

    def copy(self, movement: Movement, size_bytes: int, source: Expression, target: Expression) -> None:
        """Add the copy of elements of `size_bytes` each."""
        merged = movement.merged()
        axes = merged.axes
        last = axes[-1] if axes else Axis(1, 1, 1)
        together = last.input_stride == last.output_stride == 1
        if together and (last.extent * size_bytes >= MIN_RUN_BYTES or not axes):
            self._copy(
                "copy_runs", merged, axes[:-1], size_bytes, last.extent * size_bytes, source=source, target=target
            )
            return
        # The kernel's inner loop is the fastest part, so it gets the longest axis.
        ordered = sorted(axes, key=lambda axis: axis.extent)
        self._copy(f"copy_{8 * size_bytes}", merged, ordered, 1, 0, source=source, target=target)

    def fill(self, value: Array, count: int, target: Expression) -> None:
        """Add the filling of `count` elements from the start with a value of one element."""
        bits = int.from_bytes(value.tobytes(), "little")
        name = f"fill_{8 * value.itemsize}"
        fields = (Field(Integer(count), "count"), Field(Integer(bits, unsigned=True), "value"))
        pointer = self._table("ferrule_fill_params", fields)
        self._call(name, (pointer, target))

    def lowered(self, what: str) -> LoweredOp:
        """Return the layer as C; `what` and the last kernel name it in reports."""
        kernels = tuple(dict.fromkeys(self._kernels))
        return LoweredOp(
            kernel=f"{what}_{kernels[-1]}",
            statements=tuple(self._statements),
            declarations=tuple(self._declarations),
            blobs=tuple(self._blobs),
            headers=("ferrule/kernels/copy.h",),
            contributions=(KERNELS.part(*kernels),),
        )

    def _copy(
        self,
        kernel: str,
        movement: Movement,
        axes: Sequence[Axis],
        unit: int,
        run_bytes: int,
        *,
        source: Expression,
        target: Expression,
    ) -> None:
        if len(axes) > KERNEL_AXES:
            raise UnsupportedError(
                f"layer '{self._context.layer.name}' moves elements along {len(axes)} axes, "
                f"expected at most {KERNEL_AXES}"
            )
        padded = [Axis(1, 0, 0)] * (KERNEL_AXES - len(axes)) + list(axes)
        fields = (
            Field(_int32s([axis.extent for axis in padded]), "extents"),
            Field(_int32s([axis.input_stride * unit for axis in padded]), "input_strides"),
            Field(_int32s([axis.output_stride * unit for axis in padded]), "output_strides"),
            Field(Integer(movement.input_offset * unit), "input_offset"),
            Field(Integer(movement.output_offset * unit), "output_offset"),
            Field(Integer(run_bytes), "run"),
        )
        pointer = self._table("ferrule_copy_params", fields)
        self._call(kernel, (pointer, source, target))

    def _table(self, struct: str, fields: tuple[Field, ...]) -> Expression:
        name = self._context.symbol(f"params_{len(self._declarations)}")
        self._declarations.append(Variable(name=name, type=Const(StructType(struct)), value=Aggregate(fields)))
        return AddressOf(Identifier(name))

    def _call(self, kernel: str, arguments: tuple[Expression, ...]) -> None:
        self._kernels.append(kernel)
        self._statements.append(Evaluate(Call(Identifier(f"ferrule_{kernel}"), arguments)))


def bytes_for_c(data: Array) -> Array:
    """Return a constant's data in a type that a generated array can have: bool as bytes."""
    return data.view(np.uint8) if data.dtype == np.bool_ else data


def _int32s(values: Sequence[int]) -> ArrayData:
    return numbers(np.array(values, np.int32))
