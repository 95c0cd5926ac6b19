# SPDX-License-Identifier: Apache-2.0
"""SVDF of int8 by the kernels that multiply rows (`ferrule/kernels/svdf_rows.h`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Found, Row
from ferrule.backends.cpu_acc.lowering.kernels.row_matrix import (
    BLOCK,
    ENGINES,
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
from ferrule.operators.recurrent.svdf import STATE

_WORD, _VECTOR = 4, 16
"""Bytes."""
_COSTS: Mapping[str, tuple[float, int, int, int]] = {
    VECTORS.name: (0, 14, 3, 120),
    BLOCK.name: (2.4, 28, 14, 140),
    PLAIN.name: (6, 25, 14, 100),
}
"""Instructions per frame, filter, unit and tile, by engine."""


@frozen(eq=False)
class SvdfLayer:
    """A layer of int8, with the contributions of zero points in the biases."""

    context: LoweringContext
    feature: Array
    """int8, [filters, features]."""
    feature_bias: Array
    """int64."""
    time: Array
    """int8 or int16, [filters, frames]."""
    to_state: Factor
    shape: Mapping[str, int]
    """The members of a `struct ferrule_svdf_shape`."""
    fields: Mapping[str, Member]
    """`bias`, and the factors and zero points."""


def _candidate(layer: SvdfLayer, engine: RowEngine, tile: int) -> Candidate | str:
    context, rank, units = layer.context, layer.shape["rank"], layer.shape["units"]
    filters, memory = layer.time.shape
    order = np.concatenate(
        [
            np.pad(part, (0, -len(part) % engine.channels), constant_values=-1)
            for part in np.split(np.arange(filters), range(tile * rank, filters, tile * rank))
        ]
    )
    matrix = row_matrix(engine, layer.feature, layer.feature_bias, [layer.to_state] * filters, order)
    if isinstance(matrix, str):
        return matrix
    per_frame, per_filter, per_unit, per_tile = _COSTS[engine.name]
    frame_bytes = memory * layer.time.itemsize
    if engine is BLOCK and frame_bytes % _WORD:
        per_frame = _COSTS[PLAIN.name][0]
    if engine is VECTORS:
        # two filters may share a vector; sums of several filters are added up by plain C
        per_filter = 11 if frame_bytes == _VECTOR // 2 else per_filter + 7 * -(-frame_bytes // _VECTOR)
        per_unit += 8 * rank if rank > 1 else 0
    elif layer.time.itemsize > 1:
        per_unit += 6
    rest = per_frame * filters * memory + per_filter * filters + per_unit * units + per_tile * -(-units // tile)
    most = -(-tile * rank // engine.channels) * engine.channels
    kernel = f"svdf_{engine.name}_{'s8' if layer.time.dtype == np.int8 else 's16_state'}"
    return Candidate(
        kernel=kernel,
        instructions=int(layer.shape["batches"] * (matrix.instructions + rest)) * slowness(context),
        weight_bytes=matrix.stream.nbytes + layer.time.nbytes,
        scratch_bytes=(6 if engine is VECTORS else 4) * most + matrix.copy_bytes,
        overlaps=partial(replaced_overlaps, context, {STATE: 1}),
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/svdf_rows.h",
            {
                "shape": layer.shape,
                "tile": tile,
                "feature": matrix.fields(context, "feature"),
                "time_weights": context.blob("time", layer.time),
                **layer.fields,
            },
            table="svdf_rows_params",
            inputs=(0, STATE),
            sources=(engine.source,),
        ),
    )


def _row(engine: RowEngine, layer_of: Callable[[LoweringContext], SvdfLayer]) -> Row:
    def found(context: LoweringContext) -> Found:
        if context.source.dtype is not DataType.INT8:
            return "the data is not int8"
        layer = layer_of(context)
        several = [_candidate(layer, engine, tile) for tile in tiles(layer.shape["units"])]
        able = [each for each in several if isinstance(each, Candidate)]
        return able or next(each for each in several if isinstance(each, str))

    return Row(kernel=f"svdf_{engine.name}", needs=engine.needs, candidate=found)


def svdf_rows(layer_of: Callable[[LoweringContext], SvdfLayer]) -> tuple[Row, ...]:
    """Return the kernels, each with several tiles, for layers of int8, which `layer_of` returns."""
    return tuple(_row(engine, layer_of) for engine in ENGINES)
