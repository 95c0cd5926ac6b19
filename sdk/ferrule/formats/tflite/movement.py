# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that move elements: by indices, blocks and repetition; PACK, UNPACK and SPLIT_V."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ferrule.errors import ModelError
from ferrule.formats.tflite.emitter import Emitter, Written
from ferrule.formats.tflite.node import Node, axis
from ferrule.formats.tflite.row import MANY, TWO, Row, Vector, axes_of, axis_of, by_type
from ferrule.graph import DataType, Descriptor, Layer, LayerType
from ferrule.operators.movement.gather import GatherDescriptor
from ferrule.operators.movement.join import SplitVDescriptor
from ferrule.operators.movement.mirror import MirrorPadDescriptor
from ferrule.operators.movement.stack import PackDescriptor, UnpackDescriptor


def _sides(role: str) -> Vector:
    """Return the tensor of what is added or removed before and after each axis, or each axis with a block."""

    def read(node: Node, position: int, _: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        count = len(node.source.shape) if position == 1 else node.input(1).elements
        pairs = node.integer_array(position, role)
        if pairs.shape not in {(count, 2), (2 * count,)}:
            raise ModelError(f"its {role} have shape {list(pairs.shape)}, expected [{count}, 2]")
        before, after = pairs.reshape(count, 2).T.tolist()
        return tuple(before), tuple(after)

    return Vector(["before", "after"], read, "sides")


def _read_pack(node: Node) -> Descriptor:
    options = node.options("PackOptions")
    if options.values_count != len(node.record.inputs):
        raise ModelError(f"it packs {options.values_count} values, but has {len(node.record.inputs)} inputs")
    return PackDescriptor(axis=axis(options.axis, len(node.source.shape) + 1))


def _read_unpack(node: Node) -> Descriptor:
    options, shape = node.options("UnpackOptions"), node.source.shape
    found = axis(options.axis, len(shape))
    if not options.num == len(node.record.outputs) == shape[found]:
        raise ModelError(
            f"it unpacks {options.num} values into {len(node.record.outputs)} outputs, "
            f"expected {shape[found]} of each as axis {found} of its input has"
        )
    return UnpackDescriptor(axis=found)


def _read_split_v(node: Node) -> Descriptor:
    splits, shape = node.options("SplitVOptions").num_splits, node.source.shape
    found = axis(node.integer(2, "axis"), len(shape))
    sizes = node.integers(1, "sizes")
    if not splits == len(sizes) == len(node.record.outputs):
        raise ModelError(f"it splits into {splits} with {len(sizes)} sizes, but has {len(node.record.outputs)} outputs")
    rest = shape[found] - sum(size for size in sizes if size != -1)
    if sizes.count(-1) > 1 or rest < 0 or (rest > 0 and -1 not in sizes):
        raise ModelError(f"its sizes are {list(sizes)}, expected parts of {shape[found]} with at most one -1")
    return SplitVDescriptor(axis=found, sizes=tuple(rest if size == -1 else size for size in sizes))


def _read_gather(node: Node) -> Descriptor:
    options = node.optional_options("GatherOptions")
    data, indices = node.source.shape, node.input(1).shape
    found, batch = axis(options.axis, len(data)), options.batch_dims
    if not -len(indices) <= batch <= len(indices):
        raise ModelError(f"it has {batch} batch axes, expected {-len(indices)} to {len(indices)}")
    batch = batch + len(indices) if batch < 0 else batch
    _check_indices(node, 1, data[found])
    return GatherDescriptor(axis=found, batch_dims=batch)


def _check_embedding_lookup(node: Node) -> None:
    _check_indices(node, 0, node.input(1).shape[0] if node.input(1).shape else 0)


def _check_indices(node: Node, position: int, limit: int) -> None:
    """Refuse constant indices that are out of range; those computed at run time are limited when they are used."""
    if not node.is_constant(position):
        return
    indices = node.constant(position)
    wrong = indices[(indices < 0) | (indices >= limit)]
    if wrong.size:
        raise ModelError(f"its indices contain {wrong.ravel()[0]}, expected 0 to {limit - 1}")


def _gather_version(written: Written) -> int:
    return 5 if written.descriptor.batch_dims else by_type(int8=2, bool_=3, int16=4)(written)


def _batch_version(written: Written) -> int:
    if written.dtype is DataType.INT16:
        return 4
    return 3 if len(written.descriptor.block) != 2 else _INT8_2(written)


def _read_mirror_pad(node: Node) -> Descriptor:
    mode = node.options("MirrorPadOptions").mode
    if mode not in {0, 1}:
        raise ModelError(f"its mode is number {mode}, expected 0 (REFLECT) or 1 (SYMMETRIC)")
    return MirrorPadDescriptor(**_PADDINGS.values(node, 1), reflect=mode == 0)


def _reflects(_: Emitter, layer: Layer) -> int:
    return int(not cast(MirrorPadDescriptor, layer.descriptor).reflect)


def _blocks(table: str, role: str) -> Row:
    return Row(table, vectors=[_BLOCK, _sides(role)], version=_batch_version)


_PADDINGS = _sides("paddings")
_BLOCK = Vector(["block"], lambda node, position, _: node.integers(position, "block shape"))
_INT8_2, _INT8_2_INT16_3 = by_type(int8=2), by_type(int8=2, int16=3)

ROWS: Mapping[LayerType, Row] = {
    LayerType.BATCH_TO_SPACE_ND: _blocks("BatchToSpaceNDOptions", "crops"),
    LayerType.BROADCAST_TO: Row(
        "BroadcastToOptions",
        vectors=[Vector(["shape"])],
        version=lambda written: 3 if written.dtype in {DataType.INT8, DataType.INT16} else 2,
    ),
    LayerType.DEPTH_TO_SPACE: Row("DepthToSpaceOptions", ["block_size"], version=_INT8_2),
    LayerType.DYNAMIC_UPDATE_SLICE: Row("DynamicUpdateSliceOptions", data_inputs=range(3), indices=frozenset({2})),
    LayerType.EMBEDDING_LOOKUP: Row(data_inputs=TWO, check=_check_embedding_lookup),
    LayerType.FILL: Row(
        "FillOptions",
        vectors=[Vector(["shape"], role="dims")],
        version=by_type(int8=3, int16=3, bool_=2),
        data_inputs=range(1, 2),
    ),
    LayerType.GATHER: Row(
        "GatherOptions",
        ["axis", "batch_dims"],
        version=_gather_version,
        data_inputs=TWO,
        reader=_read_gather,
        indices=frozenset({1}),
    ),
    LayerType.GATHER_ND: Row(
        "GatherNdOptions", version=by_type(int16=3, bool_=5), data_inputs=TWO, indices=frozenset({1})
    ),
    LayerType.MIRROR_PAD: Row(
        "MirrorPadOptions", [("mode", _reflects)], [_PADDINGS], _INT8_2_INT16_3, reader=_read_mirror_pad
    ),
    LayerType.PACK: Row(
        "PackOptions",
        [("values_count", lambda _, layer: len(layer.inputs)), "axis"],
        version=_INT8_2_INT16_3,
        data_inputs=range(MANY),
        inputs=range(1, MANY),
        reader=_read_pack,
    ),
    LayerType.REVERSE_V2: Row("ReverseV2Options", vectors=[axes_of()], version=by_type(int8=3, bool_=2)),
    LayerType.SPACE_TO_BATCH_ND: _blocks("SpaceToBatchNDOptions", "paddings"),
    LayerType.SPACE_TO_DEPTH: Row("SpaceToDepthOptions", ["block_size"], version=_INT8_2),
    LayerType.SPLIT_V: Row(
        "SplitVOptions",
        [("num_splits", lambda _, layer: len(layer.outputs))],
        [Vector(["sizes"]), axis_of()],
        _INT8_2,
        outputs=range(1, MANY),
        reader=_read_split_v,
    ),
    # int8 is version 3, but LiteRT's resolver of reference kernels has no version above 2, and version 1 runs alike.
    LayerType.TILE: Row("TileOptions", vectors=[Vector(["multiples"])]),
    LayerType.UNPACK: Row(
        "UnpackOptions",
        [("num", lambda _, layer: len(layer.outputs)), "axis"],
        version=by_type(int8=2, bool_=3, int16=4),
        outputs=range(1, MANY),
        reader=_read_unpack,
    ),
    LayerType.ZEROS_LIKE: Row("ZerosLikeOptions"),
}
"""The rows of these operators."""
