# SPDX-License-Identifier: Apache-2.0
"""Rows of the operators that select or accumulate elements along axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.emitter import Emitter, Version
from ferrule.formats.tflite.row import Row, axes_of, axis_of, by_type, first_version
from ferrule.formats.tflite.tensors import TYPE_NUMBERS
from ferrule.graph import DataType, Layer, LayerType


def _write_axes(emitter: Emitter, layer: Layer, descriptor: Any) -> str:  # noqa: ANN401
    if not descriptor.axes:
        raise UnsupportedError(
            f"layer '{layer.name}': {layer.type} over no axis cannot be expressed in TensorFlow Lite"
        )
    return emitter.integers(layer, "axes", descriptor.axes)


def _reduction(version: Version) -> Row:
    vectors = [axes_of(_write_axes)]
    return Row("ReducerOptions", ["keep_dims"], vectors, version, required=False, any_shape=True)


def _arg(table: str) -> Row:
    output = ("output_type", TYPE_NUMBERS[DataType.INT32])
    return Row(table, [output], [axis_of()], by_type(int8=2, bool_=3), index_output=True)


_SELECTED = by_type(int8=2, int16=3)

ROWS: Mapping[LayerType, Row] = {
    LayerType.ARG_MAX: _arg("ArgMaxOptions"),
    LayerType.ARG_MIN: _arg("ArgMinOptions"),
    LayerType.CUMSUM: Row("CumsumOptions", ["exclusive", "reverse"], [axis_of()]),
    LayerType.MEAN: _reduction(_SELECTED),
    LayerType.REDUCE_ALL: _reduction(first_version),
    LayerType.REDUCE_ANY: _reduction(first_version),
    LayerType.REDUCE_MAX: _reduction(_SELECTED),
    LayerType.REDUCE_MIN: _reduction(_SELECTED),
    LayerType.SUM: _reduction(by_type(int8=2)),
}
"""The operators of this module."""
