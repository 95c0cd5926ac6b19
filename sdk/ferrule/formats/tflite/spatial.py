# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the operators that resize images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.errors import ModelError
from ferrule.formats.tflite.emitter import Emitter, Version
from ferrule.formats.tflite.encoder import Options
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.row import Read, Row, Write, by_type
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.resize import ResizeDescriptor


def _read_resize(table: str) -> Read:
    def read(node: Node) -> Descriptor:
        size = node.integers(1, "new size")
        if len(size) != 2 or min(size) < 1:
            raise ModelError(f"its new size is {list(size)}, expected two numbers of 1 or more")
        options = node.optional_options(table)
        return ResizeDescriptor(
            height=size[0],
            width=size[1],
            align_corners=options is not None and bool(options.AlignCorners()),
            half_pixel_centers=options is not None and bool(options.HalfPixelCenters()),
        )

    return read


def _write_resize(table: str) -> Write:
    def write(emitter: Emitter, layer: Layer, descriptor: ResizeDescriptor) -> None:
        size = emitter.integers(layer, "size", (descriptor.height, descriptor.width))
        fields = {"AlignCorners": descriptor.align_corners, "HalfPixelCenters": descriptor.half_pixel_centers}
        emitter.emit(layer, Options(table=table, fields=fields), inputs=[*layer.inputs, size])

    return write


def _resize(table: str, *, corners_since_3: bool) -> Row:
    by_first = by_type(int8=2, int16=4)

    def version(descriptor: ResizeDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
        modern = descriptor.half_pixel_centers or (corners_since_3 and descriptor.align_corners)
        if modern and inputs[0].dtype is not DataType.INT16:
            return 3
        return by_first(descriptor, inputs, output)

    known: Version = version
    return Row(read=_read_resize(table), write=_write_resize(table), version=known, inputs=range(2, 3))


ROWS: Mapping[LayerType, Row] = {
    LayerType.RESIZE_BILINEAR: _resize("ResizeBilinearOptions", corners_since_3=False),
    LayerType.RESIZE_NEAREST_NEIGHBOR: _resize("ResizeNearestNeighborOptions", corners_since_3=True),
}
"""The operators of this module."""
