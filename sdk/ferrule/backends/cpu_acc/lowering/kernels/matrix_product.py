# SPDX-License-Identifier: Apache-2.0
"""Products of int8 matrices from run time: the kernels of BATCH_MATMUL that pack the right one into scratch.

The weights of other layers are packed when the lowering writes them. Here the kernel does it, some columns of a matrix
at a time, then multiplies all rows of the left matrix by them with the same assembler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, descriptor_of, int32s, rule_sources
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, Row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.scalar import OCTET
from ferrule.backends.cpu_acc.lowering.proofs.requantization import proved_words
from ferrule.backends.firmware import LoweringContext
from ferrule.dom import Identifier
from ferrule.graph import Array, DataType, LayerType, Rounding, Shape
from ferrule.operators.arithmetic.fixed_point import Factor
from ferrule.operators.weighted.batch_matmul import BatchMatmulDescriptor, depth_of, factor_of
from ferrule.operators.weighted.conv2d import groups_of
from ferrule.operators.weighted.products import WEIGHTED_RULES

_HEADER = "ferrule/kernels/batch_matmul.h"
_BATCH_AXES = 3
"""The value of FERRULE_BATCH_MATMUL_AXES."""
_BLOCK = 4
"""Columns of a block with the DSP extension."""
_LARGEST_SUM = 1 << 30
_LARGEST_RIGHT_SHIFT = 22
_LEAST_SHIFT, _MOST_SHIFT = 3, 8
"""By how much weights of 16 bits may be shifted for the proved form."""
_SCRATCHES = (1 << 15, 4096, 1024, 0)
"""Limits of the scratch, unless a single block needs more."""
_VECTOR = 16
_MOST_ROWS = 32
"""Rows of the left matrix that the kernel with MVE multiplies at once."""
_MOST_LISTED = 1 << 16
_GENERAL, _LISTED = 1, 2
_BIAS = 2
"""The position of the bias among the inputs."""


@frozen(eq=False)
class MatrixProduct:
    """A product of matrices, for each index of the batches."""

    context: LoweringContext
    batches: Shape
    rows: int
    columns: int
    depth: int
    left: Mapping[str, Member]
    """The strides of the left matrices, as a `struct ferrule_batch_matmul_strides`."""
    right: Mapping[str, Member]

    factor: Factor
    """What scales the sums."""
    limits: tuple[int, int] = (-128, 127)
    """The lowest and the highest stored value, of int8."""
    bias: Array | None = None
    """int64, one per column."""
    exchanged: bool = False
    """Whether left and right are exchanged, so that the output is transposed and the bias is that of rows."""

    @property
    def transposed(self) -> MatrixProduct:
        """The same with left and right exchanged."""
        return replace(
            self, rows=self.columns, columns=self.rows, left=self.right, right=self.left, exchanged=not self.exchanged
        )

    @property
    def zero_points(self) -> tuple[int, int]:
        """Those of the left and the right matrix."""
        left, right = (info.zero_point for info in self.context.operands.pair)
        return (right, left) if self.exchanged else (left, right)

    @property
    def inputs(self) -> tuple[int, int]:
        """The inputs of the kernel."""
        return (1, 0) if self.exchanged else (0, 1)

    @classmethod
    def of(cls, context: LoweringContext) -> MatrixProduct:
        """Return the product of a BATCH_MATMUL."""
        descriptor, operands = descriptor_of(context, BatchMatmulDescriptor), context.operands
        left, right, output = *operands.pair, operands.output
        batches, rows = _batches(output.shape), output.shape[-2]
        if not descriptor.adj_x and math.prod(right.shape[:-2]) == 1:  # the matrices are one with more rows
            batches, rows = (1,) * _BATCH_AXES, math.prod(output.shape[:-1])
        return cls(
            context=context,
            batches=batches,
            rows=rows,
            columns=output.shape[-1],
            depth=depth_of(descriptor, left),
            left=_strides(left.shape, depth_first=descriptor.adj_x),
            right=_strides(right.shape, depth_first=not descriptor.adj_y),
            factor=Factor(multiplier=0, shift=0) if output.dtype.is_float else factor_of(operands),
        )

    @classmethod
    def of_weights(cls, context: LoweringContext) -> MatrixProduct | str:
        """Return the product of a layer with weights of a window of one pixel; or why it is none."""
        layer = Convolution.of(context)
        factors = layer.factors()
        data, weights = context.operands.pair
        if context.layer.type is not LayerType.FULLY_CONNECTED and not (
            layer.window.is_pointwise and groups_of(data, weights) == 1
        ):
            return "the window has more than one pixel, or channels have groups"
        if any(factor != factors[0] for factor in factors):
            return "channels have scales of their own"
        given = len(context.layer.inputs) > _BIAS and context.layer.inputs[_BIAS] is not None
        if given and not context.is_constant(_BIAS):
            return "the bias is not a constant"
        columns = layer.output.shape[3]
        depth = weights.elements // columns
        limits = layer.output_fields
        return cls(
            context=context,
            batches=(1,) * _BATCH_AXES,
            rows=layer.pixels,
            columns=columns,
            depth=depth,
            left=_strides((layer.pixels, depth), depth_first=False),
            right=_strides((columns, depth), depth_first=False),
            factor=factors[0],
            limits=(limits["low"], limits["high"]),
            bias=layer.bias(np.int64) if given else None,
        )

    @property
    def shape(self) -> Mapping[str, Member]:
        """The members of a `struct ferrule_batch_matmul_shape`."""
        return {
            "batches": int32s(self.batches),
            "rows": self.rows,
            "columns": self.columns,
            "depth": self.depth,
            "left": self.left,
            "right": self.right,
        }

    @property
    def matrices(self) -> int:
        """The number of matrices of the output."""
        return math.prod(self.batches)

    @property
    def whole_rows(self) -> bool:
        """Whether the elements of a row of the left matrix are adjacent."""
        return self.left["depth"] == 1

    @property
    def sums(self) -> tuple[int, int]:
        """The lowest and the highest sum of products and bias."""
        ends = [np.array([-128, 127], np.int64) - info.zero_point for info in self.context.operands.pair]
        products = np.multiply.outer(*ends)
        least, most = (0, 0) if self.bias is None else (int(self.bias.min()), int(self.bias.max()))
        return self.depth * int(products.min()) + least, self.depth * int(products.max()) + most

    @property
    def has_full_range(self) -> bool:
        """Whether the output is clamped to int8 only."""
        return self.limits == (-128, 127)

    def can_scale(self) -> bool:
        """Return whether `ferrule_store_sums` and the exact form have the results of the layer's rule."""
        return self.sums_fit() and 1 <= -self.factor.shift <= _LARGEST_RIGHT_SHIFT

    def sums_fit(self) -> bool:
        """Return whether twice any sum fits into 32 bits."""
        return max(map(abs, self.sums)) < _LARGEST_SUM

    def fields(self, tile_columns: int, block: int) -> Mapping[str, Member]:
        """Return the members of a table that all kernels fill in the same way."""
        left, right = self.zero_points
        return {
            "shape": self.shape,
            "row_step": 1 if self.exchanged else self.columns,
            "column_step": self.rows if self.exchanged else 1,
            "left_zero_point": left,
            "right_zero_point": right,
            **({} if self.bias is None else {"row_bias" if self.exchanged else "bias": self.bias.astype(np.int32)}),
            "tile_columns": -(-min(tile_columns, self.columns) // block) * block,
        }

    @property
    def constants(self) -> tuple[int, int, int]:
        """Multiplier, right shift and rounding of the exact form."""
        right = -self.factor.shift
        return self.factor.multiplier, right, ((2 * self.context.output.zero_point + 1) << right) >> 1

    @property
    def output(self) -> Mapping[str, Member]:
        """The members of a `struct ferrule_output_s8`."""
        low, high = self.limits
        return {"zero_point": self.context.output.zero_point, "low": low, "high": high}

    @property
    def stored(self) -> Mapping[str, Member]:
        """The members with which sums are stored."""
        rule = self.context.layer.rounding
        return {
            "store": Identifier(f"ferrule_store_sums{'' if rule is Rounding.TFLM else f'_{rule}'}"),
            "scale": int32s([0, *self.constants]),
            "output": self.output,
        }

    @property
    def store_sources(self) -> tuple[str, ...]:
        """The sources of `stored`."""
        rule = self.context.layer.rounding
        return ("store_sums",) if rule is Rounding.TFLM else ("store_sums_once", *rule_sources(rule))


def _batches(shape: Shape) -> Shape:
    """Return the extents of the axes before the last two, with axes of extent 1 in front."""
    return (1,) * (_BATCH_AXES + 2 - len(shape)) + tuple(shape[:-2])


def _strides(shape: Shape, *, depth_first: bool) -> Mapping[str, Member]:
    """Return the members of a `struct ferrule_batch_matmul_strides`."""
    batches = _batches(shape)
    steps = [math.prod(batches[axis + 1 :]) * shape[-2] * shape[-1] for axis in range(_BATCH_AXES)]
    kept = [0 if extent == 1 else step for extent, step in zip(batches, steps, strict=True)]
    line, depth = (1, shape[-1]) if depth_first else (shape[-1], 1)
    return {"batches": int32s(kept), "line": line, "depth": depth}


# ---- with the DSP extension


@frozen
class _Form:
    """How sums of the block kernel become stored values."""

    name: str
    shift: int = 0
    start: int = 0
    constants: tuple[int, ...] = ()
    instructions: int
    """For one element."""


def _form(product: MatrixProduct) -> _Form:
    context = product.context
    output, rounding = context.output, context.layer.rounding
    if product.columns >= _BLOCK and product.has_full_range and not product.exchanged:
        proved = _proved(product) if output.zero_point == -128 or rounding is not Rounding.TFLM else None
        if proved is not None:
            return proved
        if rounding is Rounding.TFLM:
            return _Form(name="exact", shift=1, constants=product.constants, instructions=6)
    each = {Rounding.TFLM: 20, Rounding.SINGLE: 26}.get(rounding, 36)
    return _Form(name="sums", instructions=each)


def _proved(product: MatrixProduct) -> _Form | None:
    context = product.context
    zero_point = product.zero_points[1]
    reach = max(128 + zero_point, 127 - zero_point)
    low, high = (np.array([end], np.int64) for end in product.sums)
    for shift in range(_MOST_SHIFT, _LEAST_SHIFT - 1, -1):
        if reach << shift >= 1 << 15 and zero_point != 0:
            continue
        found = proved_words(
            low, high, [product.factor], context.output.zero_point, context.layer.rounding, sum_shift=shift
        )
        if found is not None:
            multiplier, start = (int(word) for word in found[0])
            return _Form(name="proved", shift=shift, start=start, constants=(multiplier,), instructions=3)
    return None


def _block(product: MatrixProduct, limit: int) -> Candidate | str:
    if not product.can_scale():
        return TOO_LARGE
    if product.exchanged and product.bias is not None:
        return "rows have a bias"
    form, words = _form(product), -(-product.depth // 4)
    common = 16 * words
    per_block = 32 * words + 16 + 4 * len(form.constants) + (8 * _BLOCK if form.name == "sums" else 0)
    blocks = -(-product.columns // _BLOCK)
    together = min(blocks, max(1, (limit - common) // per_block))
    tiles = -(-blocks // together) + (form.name != "sums" and product.columns % _BLOCK > 0 and blocks % together != 1)
    pairs = -(-product.rows // 2)
    block = 22 * words + 3 * -(-(words - 1) // 4) + 8 * form.instructions + 11
    in_place = product.whole_rows and product.depth % 4 == 0
    gather = 8 * words + 18 if in_place else (27 if product.whole_rows else 31) * words + 84
    packing = blocks * ((90 if product.right["depth"] == 1 else 80) * words + 170)
    return Candidate(
        kernel="batch_matmul_block_s8",
        instructions=product.matrices * (packing + pairs * (blocks * block + tiles * gather) + 260 * tiles),
        weight_bytes=0,
        scratch_bytes=common + together * per_block,
        call=lambda: KernelCall(
            "batch_matmul_block_s8",
            _HEADER,
            {
                **product.fields(together * _BLOCK, _BLOCK),
                "words": words,
                "multiply": Identifier(f"ferrule_block_tile_{form.name}"),
                "left_shift": form.shift,
                "start": form.start,
                "constants": int32s([*form.constants, *[0] * (3 - len(form.constants))]),
                "constant_words": len(form.constants),
                **(product.stored if form.name == "sums" else {}),
            },
            table="batch_matmul_tile_s8_params",
            inputs=product.inputs,
            sources=("block", "block_wide", *(product.store_sources if form.name == "sums" else ())),
        ),
    )


def _direct(product: MatrixProduct, limit: int) -> Candidate | str:
    del limit
    if not product.can_scale() or product.exchanged:
        return TOO_LARGE
    words = -(-product.depth // 4)
    along = product.right["depth"] == 1
    each = (15 * words + 40) // 2 if along else (45 * words + 30) // 4
    rest = 90 * words if not along and product.columns % _BLOCK else 0
    rows, rounding = product.matrices * product.rows, product.context.layer.rounding
    stored = {Rounding.TFLM: 22, Rounding.SINGLE: 30}.get(rounding, 40)
    return Candidate(
        kernel="batch_matmul_direct_s8",
        instructions=rows
        * (product.columns * (each + stored) + rest + (14 if product.whole_rows else 40) * words + 60),
        weight_bytes=0,
        scratch_bytes=8 * words,
        call=lambda: KernelCall(
            "batch_matmul_direct_s8",
            _HEADER,
            {**product.fields(_BLOCK, _BLOCK), **product.stored},
            table="batch_matmul_tile_s8_params",
            inputs=product.inputs,
            sources=product.store_sources,
        ),
    )


# ---- with MVE


def _mve(product: MatrixProduct, limit: int) -> Candidate | str:
    output = product.context.output
    plain = output.zero_point == -128 and product.has_full_range
    if not product.can_scale() and not (plain and product.factor.shift == 0 and product.sums_fit()):
        return TOO_LARGE
    if product.columns * (product.rows if product.exchanged else 1) > _MOST_LISTED:
        return f"there are more than {_MOST_LISTED} elements"
    vectors, listed = -(-product.depth // _VECTOR), product.columns % _BLOCK != 0 or product.exchanged
    in_place = product.whole_rows and product.depth % _VECTOR == 0
    together = min(-(-product.rows // 4) * 4, _MOST_ROWS if limit > 0 else 4)
    common = 4 * (together + 1) + (0 if in_place else together * product.depth + _VECTOR - 1)
    blocks, per_block = -(-product.columns // _BLOCK), _BLOCK * _VECTOR * vectors + (44 if listed else 36)
    tile = min(blocks, max(1, (limit - common) // per_block))
    tiles, kind = -(-blocks // tile), _LISTED * listed + _GENERAL * (not plain)
    terms = product.zero_points[1] != 0 or (product.exchanged and product.bias is not None)
    held = not listed and product.depth == _VECTOR and product.has_full_range and product.rows > 1
    terms = terms or held
    block = 33 + 4 * (not plain) if held else 14 * vectors + 2 * -(-vectors // 8) + 23
    block += 0 if held else 6 * (not plain) + listed + 7 * terms
    copied = 0 if in_place else 3 * vectors if product.whole_rows else 5 * product.depth // 4
    each_row = tiles * (copied + (3 * vectors + 6) * terms + 6)
    packing = blocks * (
        (6 * _BLOCK * vectors if product.right["depth"] == 1 else 4 * product.depth + 20 * vectors) + 9 * vectors + 70
    )
    pairs, calls = -(-product.rows // 2), tiles * -(-product.rows // together)
    return Candidate(
        kernel="batch_matmul_mve_s8",
        instructions=product.matrices
        * (packing + pairs * (blocks * block + 19 * tiles) + product.rows * each_row + 150 * calls),
        weight_bytes=0,
        scratch_bytes=common + tile * per_block,
        call=lambda: KernelCall(
            "batch_matmul_mve_s8",
            "ferrule/kernels/batch_matmul_mve.h",
            {
                **product.fields(tile * _BLOCK, _BLOCK),
                "vectors": vectors,
                "rows": together,
                "kind": kind,
                "multiplier": product.factor.multiplier,
                "shift": product.factor.shift,
                "output": product.output,
            },
            inputs=product.inputs,
            sources=("mve_store_pairs",),
        ),
    )


# ---- on any core


def _octet(product: MatrixProduct, limit: int) -> Candidate | str:
    context = product.context
    if product.exchanged:
        return "the rows are not packed"
    if not product.can_scale():
        return TOO_LARGE
    depth, octets = product.depth, -(-product.columns // OCTET)
    per_octet, copied = OCTET * (4 + depth), 0 if product.whole_rows else depth
    together = min(octets, max(1, (limit - copied) // per_octet))
    core = context.target.core
    long_multiply = core is not None and not core.baseline
    per_product, per_element = (17, 22) if long_multiply else (36, 70)
    rows = product.matrices * product.rows
    each_row = octets * (per_product * depth + OCTET * per_element + 50) + -(-octets // together) * 12 * depth
    return Candidate(
        kernel="batch_matmul_octet_s8",
        instructions=rows * each_row + product.matrices * octets * OCTET * 7 * depth,
        weight_bytes=0,
        scratch_bytes=together * per_octet + copied,
        call=lambda: KernelCall(
            "batch_matmul_octet_s8",
            _HEADER,
            {**product.fields(together * OCTET, OCTET), **product.stored},
            table="batch_matmul_tile_s8_params",
            inputs=product.inputs,
            sources=("multiply_octet", *product.store_sources),
        ),
    )


_Of: TypeAlias = Callable[[LoweringContext], MatrixProduct | str]
_Kernel: TypeAlias = Callable[[MatrixProduct, int], Candidate | str]


def _rows(of: _Of) -> Iterator[Row]:
    """Yield the rows of the kernels for the products that `of` returns."""
    kernels: tuple[tuple[str, _Kernel, set[Feature]], ...] = (
        ("batch_matmul_mve_s8", _mve, {Feature.MVE}),
        ("batch_matmul_block_s8", _block, {Feature.LONG_MULTIPLY, Feature.DSP}),
        ("batch_matmul_direct_s8", _direct, {Feature.LONG_MULTIPLY, Feature.DSP}),
        ("batch_matmul_octet_s8", _octet, set()),
    )
    for kernel, candidate, needs in kernels:
        rules = frozenset({Rounding.TFLM}) if Feature.MVE in needs else WEIGHTED_RULES
        found = partial(_candidates, of=of, kernel=candidate)
        yield Row(kernel=kernel, needs=frozenset(needs), rules=rules, candidate=found)


def _candidates(context: LoweringContext, of: _Of, kernel: _Kernel) -> Found:
    """Return a kernel with all columns in a tile, and with fewer, and the same for rows."""
    if context.output.dtype is not DataType.INT8:
        return "the data is not int8"
    product = of(context)
    if isinstance(product, str):
        return product
    return _in_tiles((product, product.transposed), kernel)


def in_column_tiles(product: MatrixProduct, kernel: _Kernel) -> Found:
    """Return a kernel that packs columns, with all of them in a tile, and with fewer.

    A single column is not packed but the rows are: the output is the same, whichever way it is transposed.
    """
    return _in_tiles((product.transposed if product.columns == 1 else product,), kernel)


def _in_tiles(products: Sequence[MatrixProduct], kernel: _Kernel) -> Found:
    made = [kernel(each, limit) for each in products for limit in _SCRATCHES]
    found = {(each.scratch_bytes, each.instructions): each for each in made if isinstance(each, Candidate)}
    return tuple(found.values()) or next(each for each in made if isinstance(each, str))


MATRIX_PRODUCT_ROWS: tuple[Row, ...] = tuple(_rows(MatrixProduct.of))
"""The kernels of BATCH_MATMUL that pack the right matrices at run time."""
PACKED_WEIGHTS_ROWS: tuple[Row, ...] = tuple(_rows(MatrixProduct.of_weights))
"""The same for FULLY_CONNECTED and CONV_2D, with weights from run time or with a zero point."""
