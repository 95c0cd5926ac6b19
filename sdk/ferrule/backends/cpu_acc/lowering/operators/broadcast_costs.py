# SPDX-License-Identifier: Apache-2.0
"""What kernels of two tensors take: the instructions of their rows, by how the inputs broadcast to the output.

The figures were measured on shapes of all kinds, for plain C as the middle of zig's and arm-none-eabi-gcc's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.strided_copy import dense_strides, merged_axes
from ferrule.backends.firmware import LoweringContext
from ferrule.backends.target import CoreFeatures
from ferrule.graph import TensorInfo

_BLOCK_BYTES = 128
"""FERRULE_BLOCK_BYTES."""
_PIECE, _LEAST_SINGLE = 32, 4
"""The copies of a single element, as REPEATED in `ferrule/kernels/dense_s16.inc.h`, and the elements of such a row."""


@frozen
class Cost:
    """The instructions per element of a kernel, by the features of the core."""

    mve: float
    dsp: float
    long: float
    """With long multiplication."""
    short: float

    def on(self, core: CoreFeatures | None) -> float:
        """Return those on a core; without a description, with the DSP extension."""
        if core is None or core.dsp:
            return self.mve if core is not None and core.mve else self.dsp
        return self.short if core.baseline else self.long


@frozen
class Rows:
    """How a kernel walks over an output, row by row."""

    count: int
    extent: int
    """Elements of a row."""
    strides: tuple[int, int]
    """Of the inputs in a row: 1, or 0 for an element that is repeated."""
    whole: tuple[bool, bool]
    """Whether each input has all elements of the output."""
    repeated: tuple[bool, bool]
    """Whether each input has the same elements for each row."""

    @property
    def elements(self) -> int:
        """Those of the output."""
        return self.count * self.extent


def merged_with_output(infos: Sequence[TensorInfo], output: TensorInfo) -> list[tuple[int, ...]]:
    """Return the extent of each axis of an output and the strides of tensors that broadcast to it, outermost first."""
    return merged_axes(output.shape, *(_strides_in(info, output) for info in infos))


def _strides_in(info: TensorInfo, output: TensorInfo) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense tensor that broadcasts to an output; 0 on repeated axes."""
    own = zip(info.shape, dense_strides(info.shape), strict=True)
    missing = len(output.shape) - len(info.shape)
    return (0,) * missing + tuple(0 if extent == 1 else stride for extent, stride in own)


def rows_of(context: LoweringContext) -> Rows:
    """Return how a kernel of the layer's two inputs walks over its output."""
    infos, output = [context.input(index) for index in range(2)], context.output
    *outer, (extent, first, second) = merged_with_output(infos, output) or [(1, 1, 1)]
    whole = [info.elements == output.elements for info in infos]
    steps = [[axis[1 + index] for axis in outer] for index in range(2)]
    return Rows(
        count=int(np.prod([axis[0] for axis in outer], dtype=np.int64)),
        extent=extent,
        strides=(first, second),
        whole=(whole[0], whole[1]),
        repeated=(not any(steps[0]), not any(steps[1])),
    )


@frozen
class _BlockSteps:
    """The instructions of `ferrule/kernels/blocks.h` on a core, beside those of elements."""

    start: float
    block: float
    row: float
    """Of each row of an input that is copied."""
    copied: float
    """Of each of its elements."""


_BLOCKS = {
    "mve": _BlockSteps(start=570, block=65, row=36, copied=0.1),
    "dsp": _BlockSteps(start=650, block=95, row=55, copied=1),
    "long": _BlockSteps(start=610, block=60, row=35, copied=6),
    "short": _BlockSteps(start=745, block=65, row=50, copied=6.1),
}


def _class_of(core: CoreFeatures | None) -> str:
    if core is None or core.dsp:
        return "mve" if core is not None and core.mve else "dsp"
    return "short" if core.baseline else "long"


def blocks_instructions(context: LoweringContext, per_element: float) -> int:
    """Return the instructions of a kernel of blocks that takes so many for an element."""
    rows, steps = rows_of(context), _BLOCKS[_class_of(context.target.core)]
    found = steps.start + per_element * rows.elements
    if not all(rows.whole):
        limit = _BLOCK_BYTES if any(rows.whole) else _BLOCK_BYTES // 2
        short = rows.extent <= limit
        copied = rows.count * (2 - sum(rows.whole))
        if short:
            together = limit // rows.extent
            blocks = -(-rows.count // together)
            if all(whole or again for whole, again in zip(rows.whole, rows.repeated, strict=True)):
                copied = min(together, rows.count)
        else:
            blocks = rows.count * -(-rows.extent // limit)
        found += steps.block * blocks + copied * (steps.row + steps.copied * min(rows.extent, limit))
    return round(found)


@frozen
class RowCost:
    """The instructions of a kernel that walks over rows."""

    start: float
    row: float
    element: float
    vector: float = 0
    """Of so many elements that are computed together."""
    width: int = 0
    """The elements of a vector; 0 if there are none."""
    least: int = 1
    """The elements of a row that has vectors."""
    single: float = 0
    """Of a row in which an element of an input is repeated; for kernels that copy it, of each of its pieces."""
    pieces: bool = False

    def instructions(self, rows: Rows) -> int:
        """Return those for an output."""
        vectors = single = 0
        least = _LEAST_SINGLE if self.pieces and not all(rows.strides) else self.least
        if self.width and rows.extent >= least and any(rows.strides):
            vectors = rows.extent // self.width
            single = 0 if all(rows.strides) else -(-rows.extent // _PIECE) if self.pieces else 1
        rest = rows.extent - vectors * self.width
        row = self.row + self.single * single + self.vector * vectors + self.element * rest
        return round(self.start + rows.count * row)


@frozen
class RowCosts:
    """The costs of a kernel that walks over rows, by the features of the core."""

    mve: RowCost
    dsp: RowCost
    """In float32, with an FPU."""
    long: RowCost
    """In float32, without one."""
    short: RowCost

    def on(self, context: LoweringContext) -> int:
        """Return the instructions of the context's layer on its core."""
        core, floats = context.target.core, context.output.dtype.is_float
        kind = _class_of(core)
        if floats and core is not None:
            kind = "mve" if core.fpu and core.mve else "dsp" if core.fpu else "short" if core.baseline else "long"
        cost: RowCost = getattr(self, kind)
        return cost.instructions(rows_of(context))


def element_instructions(context: LoweringContext, per_element: float) -> int:
    """Return about those of a kernel that walks over rows, and takes so many for an element on any core."""
    return RowCost(start=250, row=50, element=per_element).instructions(rows_of(context))


FLOAT_ROWS = RowCosts(
    mve=RowCost(start=229, row=61, element=5.7, vector=27.8, width=16, least=8, single=42),
    dsp=RowCost(start=269, row=40, element=14.2, vector=23.2, width=8, least=8, single=62),
    long=RowCost(start=100, row=60, element=140),
    short=RowCost(start=100, row=90, element=175),
)
"""Of ADD, SUB and MUL in float32; without an FPU, they depend on the values."""
SUM_ROWS_S16 = RowCosts(
    mve=RowCost(start=257, row=76, element=34.5, vector=4.6, width=1, single=48, pieces=True),
    dsp=RowCost(start=243, row=115, element=27, vector=26.3, width=2, single=120, pieces=True),
    long=RowCost(start=237, row=23, element=54.5),
    short=RowCost(start=325, row=29, element=138),
)
"""Of ADD and SUB of int16."""
PRODUCT_ROWS_S16 = RowCosts(
    mve=RowCost(start=210, row=45, element=28, vector=2.75, width=1, single=39, pieces=True),
    dsp=RowCost(start=277, row=83, element=28, vector=24.2, width=2, single=91, pieces=True),
    long=RowCost(start=216, row=22, element=38.5),
    short=RowCost(start=288, row=37, element=75),
)
"""Of MUL of int16."""
