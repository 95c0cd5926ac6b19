# SPDX-License-Identifier: Apache-2.0
"""UNIDIRECTIONAL_SEQUENCE_LSTM of int8 and int16 by the kernels that multiply rows (`ferrule/kernels/lstm_rows.h`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Found, Row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE
from ferrule.backends.cpu_acc.lowering.kernels.int16_sums import WIDE_SHIFT, once_multipliers
from ferrule.backends.cpu_acc.lowering.kernels.row_matrix import (
    BLOCK,
    ENGINES,
    ENGINES_S16,
    PLAIN,
    VECTORS,
    RowEngine,
    row_matrix,
    slowness,
    tiles,
)
from ferrule.backends.cpu_acc.lowering.overlap import replaced_overlaps
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import Array, DataType
from ferrule.operators.arithmetic.fixed_point import Factor
from ferrule.operators.recurrent.lstm import CELL, GATES, HIDDEN

_HALF = 1 << 30
"""The multiplier of a power of two."""
_WORD_SHIFT = 31
"""By how much a sum times its multiplier is shifted to the right; twice the sum by one more."""
_MULTIPLES: Mapping[str, int] = {VECTORS.name: 8, BLOCK.name: 1, PLAIN.name: 2}
"""The units of a tile are filled up to a multiple of this number, by engine."""
_UNIT_COSTS: Mapping[str, int] = {VECTORS.name: 36, BLOCK.name: 206, PLAIN.name: 220}
_TILE_COSTS: Mapping[str, int] = {VECTORS.name: 400, BLOCK.name: 200, PLAIN.name: 180}
_STEP_COST = 60
_ROUNDED_ONCE = 36
"""What a unit takes less with the DSP extension if sums are rounded once."""


@frozen(eq=False)
class LstmLayer:
    """A layer of integers, with the contributions of zero points in the biases."""

    context: LoweringContext
    steps: int
    """Rows of all batches."""
    weights: Array
    """[4 * units, inputs]."""
    recurrent: Array
    """[4 * units, units]."""
    bias: Array
    """int64."""
    offset: Array
    """Like `bias`, of sums over the hidden state."""
    input_factors: tuple[Factor, ...]
    recurrent_factors: tuple[Factor, ...]
    others: tuple[Factor, ...]
    """Those of the cell and of the hidden state."""
    fields: Mapping[str, Member]
    """`shape` and `scaling`."""

    @property
    def units(self) -> int:
        """Elements of an output row."""
        return int(self.recurrent.shape[1])


def _candidate(layer: LstmLayer, engine: RowEngine, tile: int) -> Candidate | str:
    if any(factor.shift >= 0 for factor in layer.others):
        return "a state is scaled up"
    if any(factor.multiplier != _HALF for factor in layer.others[:2]):
        return "the cell is not scaled by a power of two"
    units, order = layer.units, _order(layer.units, tile, _MULTIPLES[engine.name])
    found = [
        row_matrix(engine, matrix, bias, [each for each in factors for _ in range(units)], order)
        for matrix, bias, factors in (
            (layer.weights, layer.bias, layer.input_factors),
            (layer.recurrent, layer.offset, layer.recurrent_factors),
        )
    ]
    given, kept = found
    if isinstance(given, str):
        return given
    if isinstance(kept, str):
        return kept
    each = _UNIT_COSTS[engine.name] - (_ROUNDED_ONCE if engine.wide and engine.name == BLOCK.name else 0)
    rest = units * each + -(-units // tile) * _TILE_COSTS[engine.name] + _STEP_COST
    kernel = f"lstm_{engine.kernel_suffix}"
    return Candidate(
        kernel=kernel,
        instructions=layer.steps * (given.instructions + kept.instructions + rest) * slowness(layer.context),
        weight_bytes=given.stream.nbytes + kept.stream.nbytes,
        scratch_bytes=(40 if engine.name == VECTORS.name else 32) * tile + given.copy_bytes + kept.copy_bytes,
        overlaps=partial(replaced_overlaps, layer.context, {HIDDEN: 1, CELL: 2}),
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/lstm_rows.h",
            {
                **layer.fields,
                "tile": tile,
                "input": given.fields(layer.context, "weights"),
                "recurrent": kept.fields(layer.context, "recurrent"),
            },
            table="lstm_rows_params",
            inputs=(0, HIDDEN, CELL),
            source=f"lstm_{engine.name}_s8",
            sources=(engine.source,),
        ),
    )


def _order(units: int, tile: int, multiple: int) -> Array:
    """Return the gates' channels by tile and gate; -1 for channels that fill up a tile."""
    parts = []
    for start in range(0, units, tile):
        count = min(tile, units - start)
        for gate in range(len(GATES)):
            own = gate * units + start + np.arange(count)
            parts.append(np.pad(own, (0, -count % multiple), constant_values=-1))
    return np.concatenate(parts)


def once(factors: Sequence[Factor]) -> tuple[Factor, ...] | str:
    """Return the factors of sums that are rounded once, which have the shift in the multiplier; of twice the sums."""
    if any(not WIDE_SHIFT - _WORD_SHIFT <= factor.shift < 0 for factor in factors):
        return TOO_LARGE
    return tuple(Factor(multiplier=int(each), shift=0) for each in once_multipliers(factors, _WORD_SHIFT))


def _row(engine: RowEngine, layer_of: Callable[[LoweringContext], LstmLayer | str]) -> Row:
    dtype = DataType.INT16 if engine.wide else DataType.INT8

    def found(context: LoweringContext) -> Found:
        if context.source.dtype is not dtype:
            return f"the data is not {dtype}"
        layer = layer_of(context)
        if isinstance(layer, str):
            return layer
        several = [_candidate(layer, engine, tile) for tile in tiles(layer.units)]
        able = [each for each in several if isinstance(each, Candidate)]
        return able or next(each for each in several if isinstance(each, str))

    return Row(kernel=f"lstm_{engine.kernel_suffix}", needs=engine.needs, candidate=found)


def lstm_rows(layer_of: Callable[[LoweringContext], LstmLayer | str]) -> tuple[Row, ...]:
    """Return the kernels, each with several tiles, for layers of integers, which `layer_of` returns."""
    return tuple(_row(engine, layer_of) for engine in (*ENGINES, *ENGINES_S16))
