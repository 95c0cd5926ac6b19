# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the operators that select or accumulate elements along axes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ferrule.formats.tflite import shapes
from ferrule.formats.tflite.emitter import Emitter, Version
from ferrule.formats.tflite.encoder import Options
from ferrule.formats.tflite.node import Node, axis
from ferrule.formats.tflite.row import Row, Write, by_type, first_version
from ferrule.graph import Descriptor, Layer, LayerType
from ferrule.operators.arg_select import ArgSelectDescriptor
from ferrule.operators.cumsum import CumsumDescriptor

_INT32 = 2
"""The value of TensorType.INT32."""


def _reduction(version: Version) -> Row:
    return Row(read=shapes.read_reduce, write=shapes.write_reduce, version=version, inputs=range(2, 3), any_shape=True)


def _arg(table: str) -> Row:
    def read(node: Node) -> Descriptor:
        return ArgSelectDescriptor(axis=axis(node.integer(1, "axis"), len(node.input(0).shape)))

    return Row(
        read=read, write=_write_arg(table), version=by_type(int8=2, bool_=3), inputs=range(2, 3), index_output=True
    )


def _write_arg(table: str) -> Write:
    def write(emitter: Emitter, layer: Layer, descriptor: ArgSelectDescriptor) -> None:
        position = emitter.parameter(layer, "axis", np.array(descriptor.axis, np.int32))
        emitter.emit(layer, Options(table=table, fields={"OutputType": _INT32}), inputs=[*layer.inputs, position])

    return write


def _read_cumsum(node: Node) -> Descriptor:
    options = node.options("CumsumOptions")
    return CumsumDescriptor(
        axis=axis(node.integer(1, "axis"), len(node.input(0).shape)),
        exclusive=bool(options.Exclusive()),
        reverse=bool(options.Reverse()),
    )


def _write_cumsum(emitter: Emitter, layer: Layer, descriptor: CumsumDescriptor) -> None:
    position = emitter.parameter(layer, "axis", np.array(descriptor.axis, np.int32))
    fields = {"Exclusive": descriptor.exclusive, "Reverse": descriptor.reverse}
    emitter.emit(layer, Options(table="CumsumOptions", fields=fields), inputs=[*layer.inputs, position])


_SELECTED = by_type(int8=2, int16=3)

ROWS: Mapping[LayerType, Row] = {
    LayerType.ARG_MAX: _arg("ArgMaxOptions"),
    LayerType.ARG_MIN: _arg("ArgMinOptions"),
    LayerType.CUMSUM: Row(read=_read_cumsum, write=_write_cumsum, inputs=range(2, 3)),
    LayerType.REDUCE_ALL: _reduction(first_version),
    LayerType.REDUCE_ANY: _reduction(first_version),
    LayerType.REDUCE_MAX: _reduction(_SELECTED),
    LayerType.REDUCE_MIN: _reduction(_SELECTED),
}
"""The operators of this module."""
