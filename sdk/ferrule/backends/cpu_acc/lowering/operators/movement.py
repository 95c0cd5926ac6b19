# SPDX-License-Identifier: Apache-2.0
"""Layers that move elements from one layout to another, such as PAD, TRANSPOSE, SLICE and CONCATENATION, in C.

A movement is reduced to the fewest axes, and the copy kernel that suits it is called.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

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
from ferrule.graph import Array, Descriptor, Shape
from ferrule.operators.join import ConcatenationDescriptor, SplitDescriptor, SplitVDescriptor
from ferrule.operators.pad import PadDescriptor, PadV2Descriptor, fill_value
from ferrule.operators.slice import Range, SliceDescriptor, StridedSliceDescriptor, slice_ranges, strided_ranges
from ferrule.operators.transpose import TransposeDescriptor

D = TypeVar("D", bound=Descriptor)
KERNEL_AXES = 6
"""The value of FERRULE_COPY_AXES in the C kernels."""
MIN_RUN_BYTES = 8
"""Shorter runs are copied element by element, which takes fewer instructions than calling memcpy."""
_NO_FILL_BYTES = 8
"""The size of elements that no kernel fills with; one element is copied to all places instead."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a movement; strides are in elements."""

    extent: int
    input_stride: int
    output_stride: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """A copy of the elements at each index of `axes`, outermost first; offsets are in elements."""

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
    """Return the axes of a movement of `shape`."""
    return tuple(Axis(*axis) for axis in zip(shape, input_strides, output_strides, strict=True))


class Movements:
    """Collects the movements of one layer and returns them as its lowering."""

    def __init__(self, context: LoweringContext) -> None:
        self._context = context
        self._kernels: list[str] = []
        self._statements: list[Statement] = []
        self._declarations: list[Variable] = []
        self._blobs: list[Blob] = []

    def source(self, index: int) -> Expression:
        """Return a pointer to an input's elements, whether it is a constant or a tensor."""
        data = self._context.constant(index) if self._context.is_constant(index) else None
        if data is None:
            return self._context.input_pointer(index)
        blob = self._context.blob(f"input_{index}", bytes_for_c(data))
        self._blobs.append(blob)
        return Identifier(blob.name)

    def copy(self, movement: Movement, size_bytes: int, source: Expression, target: Expression) -> None:
        """Add a copy of elements from `source` to `target`; each element has `size_bytes`."""
        merged = movement.merged()
        axes = merged.axes
        last = axes[-1] if axes else Axis(1, 1, 1)
        together = last.input_stride == last.output_stride == 1
        if together and (last.extent * size_bytes >= MIN_RUN_BYTES or not axes):
            self._copy(
                "copy_runs", merged, axes[:-1], size_bytes, last.extent * size_bytes, source=source, target=target
            )
            return
        # The longest axis comes last, since the kernel's inner loop is the fastest.
        ordered = sorted(axes, key=lambda axis: axis.extent)
        self._copy(f"copy_{8 * size_bytes}", merged, ordered, 1, 0, source=source, target=target)

    def fill(self, value: Array, count: int, target: Expression) -> None:
        """Add a call that sets the first `count` elements of `target` to `value`, an array of one element."""
        if value.itemsize == _NO_FILL_BYTES:
            blob = self._context.blob("fill", value)
            self._blobs.append(blob)
            self.copy(Movement(axes=(Axis(count, 0, 1),)), value.itemsize, Identifier(blob.name), target)
            return
        bits = int.from_bytes(value.tobytes(), "little")
        name = f"fill_{8 * value.itemsize}"
        fields = (Field(Integer(count), "count"), Field(Integer(bits, unsigned=True), "value"))
        self.call(name, "ferrule_fill_params", fields, target)

    def call(
        self, kernel: str, struct: str, fields: tuple[Field, ...], *arguments: Expression, uses: tuple[str, ...] = ()
    ) -> None:
        """Add the call of a kernel with a parameter table; `uses` are the kernels that it calls itself."""
        pointer = self._table(struct, fields)
        self._kernels += (*uses, kernel)
        self._statements.append(Evaluate(Call(Identifier(f"ferrule_{kernel}"), (pointer, *arguments))))

    def run_fields(self, movement: Movement, size_bytes: int) -> tuple[Field, ...]:
        """Return the members of a table for `copy_runs`, for a caller that calls it from another kernel."""
        axes = movement.merged().axes
        if axes and axes[-1].input_stride == axes[-1].output_stride == 1:
            return self._fields(movement, axes[:-1], size_bytes, axes[-1].extent * size_bytes)
        return self._fields(movement, axes, size_bytes, size_bytes)

    def lowered(self, what: str, header: str = "ferrule/kernels/copy.h") -> LoweredOp:
        """Return the lowering; reports name it after `what` and the last kernel."""
        kernels = tuple(dict.fromkeys(self._kernels))
        return LoweredOp(
            kernel=f"{what}_{kernels[-1]}",
            statements=tuple(self._statements),
            declarations=tuple(self._declarations),
            blobs=tuple(self._blobs),
            headers=(header,),
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
        fields = self._fields(movement, axes, unit, run_bytes)
        self.call(kernel, "ferrule_copy_params", fields, source, target)

    def _fields(self, movement: Movement, axes: Sequence[Axis], unit: int, run_bytes: int) -> tuple[Field, ...]:
        if len(axes) > KERNEL_AXES:
            raise UnsupportedError(
                f"layer '{self._context.layer.name}' moves elements along {len(axes)} axes, "
                f"expected at most {KERNEL_AXES}"
            )
        padded = [Axis(1, 0, 0)] * (KERNEL_AXES - len(axes)) + list(axes)
        return (
            Field(int32s([axis.extent for axis in padded]), "extents"),
            Field(int32s([axis.input_stride * unit for axis in padded]), "input_strides"),
            Field(int32s([axis.output_stride * unit for axis in padded]), "output_strides"),
            Field(Integer(movement.input_offset * unit), "input_offset"),
            Field(Integer(movement.output_offset * unit), "output_offset"),
            Field(Integer(run_bytes), "run"),
        )

    def _table(self, struct: str, fields: tuple[Field, ...]) -> Expression:
        name = self._context.symbol(f"params_{len(self._declarations)}")
        self._declarations.append(Variable(name=name, type=Const(StructType(struct)), value=Aggregate(fields)))
        return AddressOf(Identifier(name))


def descriptor_of(context: LoweringContext, kind: type[D]) -> D:
    """Return the layer's descriptor; UnsupportedError if it is of another kind."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, kind):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return descriptor


def bytes_for_c(data: Array) -> Array:
    """Return a constant's data in a type that generated arrays can have; bool becomes uint8."""
    return data.view(np.uint8) if data.dtype == np.bool_ else data


def int32s(values: Sequence[int]) -> ArrayData:
    """Return the initial value of an array member of type int32_t."""
    return numbers(np.array(values, np.int32))


def lower_view(context: LoweringContext) -> LoweredOp:
    """Return RESHAPE, SQUEEZE or EXPAND_DIMS as a view of the input, or as a copy if the input is a constant."""
    if not context.is_constant(0):
        return LoweredOp(kernel="view", view_of=context.input(0).name)
    return lower_copy(context, "reshape")


def lower_copy(context: LoweringContext, what: str = "copy") -> LoweredOp:
    """Return a copy of the first input's elements to the output; `what` names the lowering."""
    source, movements = context.input(0), Movements(context)
    movement = Movement(axes=(Axis(source.elements, 1, 1),))
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered(what)


def lower_pad(context: LoweringContext) -> LoweredOp:
    """Return the calls for PAD or PADV2: the output is filled, then the input is copied into it."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, PadDescriptor | PadV2Descriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    source, output = context.input(0), context.operands.output
    strides = dense_strides(output.shape)
    movements = Movements(context)
    if source.elements != output.elements:
        value = np.array([fill_value(descriptor, context.operands)], output.dtype.numpy)
        movements.fill(value, output.elements, context.output_pointer())
    offset = sum(before * stride for before, stride in zip(descriptor.before, strides, strict=True))
    movement = Movement(axes=axes_of(source.shape, dense_strides(source.shape), strides), output_offset=offset)
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered("pad")


def lower_transpose(context: LoweringContext) -> LoweredOp:
    """Return the copy for TRANSPOSE, which reads the input with its strides permuted."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, TransposeDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    source, output = context.input(0), context.operands.output
    own = dense_strides(source.shape)
    strides = tuple(own[axis] for axis in descriptor.permutation)
    movements = Movements(context)
    movement = Movement(axes=axes_of(output.shape, strides, dense_strides(output.shape)))
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered("transpose")


def lower_constant_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy for SLICE with a constant begin."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, SliceDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return _lower_ranges(context, "slice", slice_ranges(descriptor, context.input(0)))


def lower_strided_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy for STRIDED_SLICE."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, StridedSliceDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    return _lower_ranges(context, "strided_slice", strided_ranges(descriptor, context.input(0)))


def _lower_ranges(context: LoweringContext, kernel: str, ranges: Sequence[Range]) -> LoweredOp:
    source = context.input(0)
    own = dense_strides(source.shape)
    counts = tuple(taken.count for taken in ranges)
    strides = tuple(taken.step * stride for taken, stride in zip(ranges, own, strict=True))
    offset = sum(taken.start * stride for taken, stride in zip(ranges, own, strict=True))
    movements = Movements(context)
    movement = Movement(axes=axes_of(counts, strides, dense_strides(counts)), input_offset=offset)
    movements.copy(movement, source.dtype.size_bytes, movements.source(0), context.output_pointer())
    return movements.lowered(kernel)


def lower_concatenation(context: LoweringContext) -> LoweredOp:
    """Return the copies for CONCATENATION, one per input."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, ConcatenationDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    output = context.operands.output
    strides = dense_strides(output.shape)
    movements = Movements(context)
    offset = 0
    for index in range(len(context.layer.inputs)):
        source = context.input(index)
        movement = Movement(axes=axes_of(source.shape, dense_strides(source.shape), strides), output_offset=offset)
        movements.copy(movement, source.dtype.size_bytes, movements.source(index), context.output_pointer())
        offset += source.shape[descriptor.axis] * strides[descriptor.axis]
    return movements.lowered("concatenation")


def lower_split(context: LoweringContext) -> LoweredOp:
    """Return the copies for SPLIT or SPLIT_V, one per output."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, SplitDescriptor | SplitVDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    source = context.input(0)
    strides = dense_strides(source.shape)
    movements = Movements(context)
    origin = movements.source(0)
    offset = 0
    for index, output in enumerate(context.operands.outputs):
        movement = Movement(axes=axes_of(output.shape, strides, dense_strides(output.shape)), input_offset=offset)
        movements.copy(movement, source.dtype.size_bytes, origin, context.output_pointer(index))
        offset += output.shape[descriptor.axis] * strides[descriptor.axis]
    return movements.lowered("split")
