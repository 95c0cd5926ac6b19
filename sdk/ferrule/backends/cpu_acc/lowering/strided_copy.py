# SPDX-License-Identifier: Apache-2.0
"""Strided copies of elements in C: each is reduced to the fewest axes, and the copy kernel that suits it is called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import input_place, int32s
from ferrule.backends.firmware import Blob, FieldValue, LoweredOp, LoweringContext, struct_value
from ferrule.dom import (
    AddressOf,
    Const,
    Evaluate,
    Expression,
    Identifier,
    Statement,
    StructType,
    Variable,
    call_of,
    unsigned,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Shape

KERNEL_AXES = 6
"""The value of FERRULE_COPY_AXES in the C kernels."""
MIN_RUN_BYTES = 8
"""Shorter runs are copied element by element, which takes fewer instructions than calling memcpy."""
_NO_FILL_BYTES = 8
"""The size of elements that no kernel fills with; one element is copied to all places instead."""
Axes = Sequence[tuple[int, ...]]
"""Extent, and strides of input and output in elements, of each axis, outermost first."""


def dense_strides(shape: Shape) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def merged_axes(shape: Sequence[int], *strides: Sequence[int]) -> list[tuple[int, ...]]:
    """Return extent and strides of each axis, outermost first; neighbours are merged if all strides allow it."""
    merged: list[tuple[int, ...]] = []
    for extent, *steps in zip(shape, *strides, strict=True):
        if extent == 1:
            continue
        if merged and all(outer == step * extent for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (merged[-1][0] * extent, *steps)
        else:
            merged.append((extent, *steps))
    return merged


class Copies:
    """Collects the copies of one layer and returns them as its lowering."""

    def __init__(self, context: LoweringContext) -> None:
        self._context = context
        self._size_bytes = context.operands.outputs[0].dtype.size_bytes
        self._kernels: dict[str, None] = {}
        self._statements: list[Statement] = []
        self._declarations: list[Variable] = []
        self._blobs: dict[str, Blob] = {}

    def source(self, index: int) -> Expression:
        """Return a pointer to an input's elements, whether it is a constant or a tensor."""
        return input_place(self._context, index, self._blobs)

    def copy(
        self,
        shape: Sequence[int],
        input_strides: Sequence[int],
        output_strides: Sequence[int],
        input_offset: int = 0,
        output_offset: int = 0,
        *,
        source: Expression | None = None,
        target: Expression | None = None,
    ) -> None:
        """Add a copy of the elements at each index of `shape`, by default of the first input to the first output.

        Strides and offsets are in elements, which have the size of the output's.
        """
        axes, size_bytes = merged_axes(shape, input_strides, output_strides), self._size_bytes
        offsets = input_offset, output_offset
        if not axes or (axes[-1][1:] == (1, 1) and axes[-1][0] * size_bytes >= MIN_RUN_BYTES):
            kernel, fields = "copy_runs", self.run_fields(axes, offsets)
        else:
            # The longest axis comes last, since the kernel's inner loop is the fastest.
            ordered = sorted(axes, key=lambda axis: axis[0])
            kernel, fields = f"copy_{8 * size_bytes}", self._fields(ordered, offsets, 1, 0)
        where = (source or self.source(0), target or self._context.output_pointer())
        self.call(kernel, "copy_params", fields, *where)

    def fill(self, value: Array, count: int) -> None:
        """Add a call that sets the first `count` elements of the output to `value`, an array of one element."""
        if value.itemsize == _NO_FILL_BYTES:
            blob = self._context.blob("fill", value)
            self._blobs[blob.name] = blob
            self.copy((count,), (0,), (1,), source=Identifier(blob.name))
            return
        bits = unsigned(int.from_bytes(value.tobytes(), "little"))
        fields: dict[str, FieldValue] = {"count": count, "value": bits}
        self.call(f"fill_{8 * value.itemsize}", "fill_params", fields, self._context.output_pointer())

    def call(
        self,
        kernel: str,
        table: str,
        fields: Mapping[str, FieldValue],
        *arguments: Expression,
        uses: tuple[str, ...] = (),
    ) -> None:
        """Add the call of a kernel with a `struct ferrule_<table>`; `uses` are the kernels that it calls itself."""
        name = self._context.symbol(f"params_{len(self._declarations)}")
        type_ = Const(StructType(f"ferrule_{table}"))
        self._declarations.append(Variable(name, type_, value=struct_value(fields)))
        self._kernels |= dict.fromkeys((*uses, kernel))
        call = call_of(f"ferrule_{kernel}", AddressOf(Identifier(name)), *arguments)
        self._statements.append(Evaluate(call))

    def lowered(self, what: str = "", header: str = "ferrule/kernels/copy.h") -> LoweredOp:
        """Return the lowering; reports name it after `what`, by default the layer's type, and the last kernel."""
        return LoweredOp(
            kernel=f"{what or self._context.layer.type.lower()}_{[*self._kernels][-1]}",
            statements=tuple(self._statements),
            declarations=tuple(self._declarations),
            blobs=tuple(self._blobs.values()),
            headers=(header,),
            contributions=(KERNELS.part(*self._kernels),),
        )

    def run_fields(self, axes: Axes, offsets: tuple[int, int] = (0, 0)) -> Mapping[str, FieldValue]:
        """Return the members of a table for `copy_runs`: runs of the elements on the last axis, if they are neighbours.

        `axes` are those that `merged_axes` returns.
        """
        size_bytes = self._size_bytes
        if axes and axes[-1][1:] == (1, 1):
            return self._fields(axes[:-1], offsets, size_bytes, axes[-1][0] * size_bytes)
        return self._fields(axes, offsets, size_bytes, size_bytes)

    def _fields(self, axes: Axes, offsets: tuple[int, int], unit: int, run_bytes: int) -> Mapping[str, FieldValue]:
        if len(axes) > KERNEL_AXES:
            raise UnsupportedError(
                f"layer '{self._context.layer.name}' moves elements along {len(axes)} axes, "
                f"expected at most {KERNEL_AXES}"
            )
        extents, reads, writes = zip(*[(1, 0, 0)] * (KERNEL_AXES - len(axes)), *axes, strict=True)
        return {
            "first": KERNEL_AXES - len(axes),
            "extents": int32s(extents),
            "input_strides": int32s([stride * unit for stride in reads]),
            "output_strides": int32s([stride * unit for stride in writes]),
            "input_offset": offsets[0] * unit,
            "output_offset": offsets[1] * unit,
            "run": run_bytes,
        }
