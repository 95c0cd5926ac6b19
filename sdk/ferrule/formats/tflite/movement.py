# SPDX-License-Identifier: Apache-2.0
"""Reads and writes further operators that move elements: PACK, UNPACK and SPLIT_V."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ferrule.errors import ModelError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import Options
from ferrule.formats.tflite.node import Node, axis
from ferrule.formats.tflite.row import MANY, Row, by_type
from ferrule.graph import Descriptor, Layer, LayerType
from ferrule.operators.join import SplitVDescriptor
from ferrule.operators.stack import PackDescriptor, UnpackDescriptor


def _read_pack(node: Node) -> Descriptor:
    options = node.options("PackOptions")
    if options.ValuesCount() != len(node.record.inputs):
        raise ModelError(f"it packs {options.ValuesCount()} values, but has {len(node.record.inputs)} inputs")
    return PackDescriptor(axis=axis(options.Axis(), len(node.input(0).shape) + 1))


def _write_pack(emitter: Emitter, layer: Layer, descriptor: PackDescriptor) -> None:
    options = Options(table="PackOptions", fields={"ValuesCount": len(layer.inputs), "Axis": descriptor.axis})
    emitter.emit(layer, options)


def _read_unpack(node: Node) -> Descriptor:
    options, shape = node.options("UnpackOptions"), node.input(0).shape
    found = axis(options.Axis(), len(shape))
    if not options.Num() == len(node.record.outputs) == shape[found]:
        raise ModelError(
            f"it unpacks {options.Num()} values into {len(node.record.outputs)} outputs, "
            f"expected {shape[found]} of each as axis {found} of its input has"
        )
    return UnpackDescriptor(axis=found)


def _write_unpack(emitter: Emitter, layer: Layer, descriptor: UnpackDescriptor) -> None:
    options = Options(table="UnpackOptions", fields={"Num": len(layer.outputs), "Axis": descriptor.axis})
    emitter.emit(layer, options)


def _read_split_v(node: Node) -> Descriptor:
    splits, shape = node.options("SplitVOptions").NumSplits(), node.input(0).shape
    found = axis(node.integer(2, "axis"), len(shape))
    sizes = node.integers(1, "sizes")
    if not splits == len(sizes) == len(node.record.outputs):
        raise ModelError(f"it splits into {splits} with {len(sizes)} sizes, but has {len(node.record.outputs)} outputs")
    rest = shape[found] - sum(size for size in sizes if size != -1)
    if sizes.count(-1) > 1 or rest < 0 or (rest > 0 and -1 not in sizes):
        raise ModelError(f"its sizes are {list(sizes)}, expected parts of {shape[found]} with at most one -1")
    return SplitVDescriptor(axis=found, sizes=tuple(rest if size == -1 else size for size in sizes))


def _write_split_v(emitter: Emitter, layer: Layer, descriptor: SplitVDescriptor) -> None:
    sizes = emitter.integers(layer, "sizes", descriptor.sizes)
    found = emitter.parameter(layer, "axis", np.array(descriptor.axis, np.int32))
    options = Options(table="SplitVOptions", fields={"NumSplits": len(descriptor.sizes)})
    emitter.emit(layer, options, inputs=[*layer.inputs, sizes, found])


ROWS: Mapping[LayerType, Row] = {
    LayerType.PACK: Row(
        read=_read_pack,
        write=_write_pack,
        version=by_type(int8=2, int16=3),
        data_inputs=range(MANY),
        inputs=range(1, MANY),
    ),
    LayerType.SPLIT_V: Row(
        read=_read_split_v,
        write=_write_split_v,
        version=by_type(int8=2),
        inputs=range(3, 4),
        outputs=range(1, MANY),
    ),
    LayerType.UNPACK: Row(
        read=_read_unpack,
        write=_write_unpack,
        version=by_type(int8=2, bool_=3, int16=4),
        outputs=range(1, MANY),
    ),
}
"""The rows of these operators."""
