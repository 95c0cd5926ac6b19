# SPDX-License-Identifier: Apache-2.0
"""Reads and writes operators that move elements: by indices, blocks and repetition; PACK, UNPACK and SPLIT_V."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import ModelError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import Options
from ferrule.formats.tflite.node import Node, axis
from ferrule.formats.tflite.row import MANY, Row, Write, by_type, plain, write_options
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.block import (
    BatchDescriptor,
    BatchToSpaceNdDescriptor,
    DepthToSpaceDescriptor,
    SpaceToBatchNdDescriptor,
    SpaceToDepthDescriptor,
)
from ferrule.operators.gather import (
    DynamicUpdateSliceDescriptor,
    EmbeddingLookupDescriptor,
    GatherDescriptor,
    GatherNdDescriptor,
)
from ferrule.operators.join import SplitVDescriptor
from ferrule.operators.mirror import MirrorPadDescriptor, ReverseV2Descriptor
from ferrule.operators.repeat import BroadcastToDescriptor, FillDescriptor, TileDescriptor, ZerosLikeDescriptor
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


def _read_gather(node: Node) -> Descriptor:
    options = node.optional_options("GatherOptions")
    data, indices = node.input(0).shape, node.input(1).shape
    found = axis(0 if options is None else options.Axis(), len(data))
    batch = 0 if options is None else options.BatchDims()
    if not -len(indices) <= batch <= len(indices):
        raise ModelError(f"it has {batch} batch axes, expected {-len(indices)} to {len(indices)}")
    batch = batch + len(indices) if batch < 0 else batch
    _check_indices(node, 1, data[found])
    return GatherDescriptor(axis=found, batch_dims=batch)


def _read_embedding_lookup(node: Node) -> Descriptor:
    _check_indices(node, 0, node.input(1).shape[0] if node.input(1).shape else 0)
    return EmbeddingLookupDescriptor()


def _check_indices(node: Node, position: int, limit: int) -> None:
    """Refuse constant indices that are out of range; those computed at run time are limited when they are used."""
    if not node.is_constant(position):
        return
    indices = node.constant(position)
    wrong = indices[(indices < 0) | (indices >= limit)]
    if wrong.size:
        raise ModelError(f"its indices contain {wrong.ravel()[0]}, expected 0 to {limit - 1}")


def _gather_version(descriptor: GatherDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del output
    if descriptor.batch_dims:
        return 5
    return {DataType.INT8: 2, DataType.BOOL: 3, DataType.INT16: 4}.get(inputs[0].dtype, 1)


def _broadcast_version(descriptor: BroadcastToDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del descriptor, output
    return 3 if inputs[0].dtype in {DataType.INT8, DataType.INT16} else 2


def _batch_version(descriptor: BatchDescriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    del output
    if inputs[0].dtype is DataType.INT16:
        return 4
    return 3 if len(descriptor.block) != 2 else 2 if inputs[0].dtype is DataType.INT8 else 1


def _read_tile(node: Node) -> Descriptor:
    return TileDescriptor(multiples=node.integers(1, "multiples"))


def _read_broadcast_to(node: Node) -> Descriptor:
    return BroadcastToDescriptor(shape=node.integers(1, "shape"))


def _read_fill(node: Node) -> Descriptor:
    return FillDescriptor(shape=node.integers(0, "dims"))


def _write_fill(emitter: Emitter, layer: Layer, descriptor: FillDescriptor) -> None:
    dims = emitter.integers(layer, "dims", descriptor.shape)
    emitter.emit(layer, Options(table="FillOptions"), inputs=[dims, *layer.inputs])


def _read_reverse(node: Node) -> Descriptor:
    rank = len(node.input(0).shape)
    return ReverseV2Descriptor(axes=tuple(sorted({axis(each, rank) for each in node.integers(1, "axes")})))


def _write_vector(table: str, attribute: str) -> Write:
    """Return a writer of an operator with one attribute, which is its second input."""

    def write(emitter: Emitter, layer: Layer, descriptor: Descriptor) -> None:
        vector = emitter.integers(layer, attribute, getattr(descriptor, attribute))
        emitter.emit(layer, Options(table=table), inputs=[*layer.inputs, vector])

    return write


def _sides(node: Node, position: int, role: str, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pairs = node.integer_array(position, role)
    if pairs.shape not in {(count, 2), (2 * count,)}:
        raise ModelError(f"its {role} have shape {list(pairs.shape)}, expected [{count}, 2]")
    pairs = pairs.reshape(count, 2)
    return tuple(pairs[:, 0].tolist()), tuple(pairs[:, 1].tolist())


def _write_sides(emitter: Emitter, layer: Layer, descriptor: MirrorPadDescriptor | BatchDescriptor) -> str:
    return emitter.parameter(layer, "sides", np.array([descriptor.before, descriptor.after], np.int32).T.copy())


def _read_mirror_pad(node: Node) -> Descriptor:
    mode = node.options("MirrorPadOptions").Mode()
    if mode not in {0, 1}:
        raise ModelError(f"its mode is number {mode}, expected 0 (REFLECT) or 1 (SYMMETRIC)")
    before, after = _sides(node, 1, "paddings", len(node.input(0).shape))
    return MirrorPadDescriptor(before=before, after=after, reflect=mode == 0)


def _write_mirror_pad(emitter: Emitter, layer: Layer, descriptor: MirrorPadDescriptor) -> None:
    options = Options(table="MirrorPadOptions", fields={"Mode": int(not descriptor.reflect)})
    emitter.emit(layer, options, inputs=[*layer.inputs, _write_sides(emitter, layer, descriptor)])


def _read_space_to_depth(node: Node) -> Descriptor:
    return SpaceToDepthDescriptor(block_size=node.options("SpaceToDepthOptions").BlockSize())


def _read_depth_to_space(node: Node) -> Descriptor:
    return DepthToSpaceDescriptor(block_size=node.options("DepthToSpaceOptions").BlockSize())


def _read_space_to_batch(node: Node) -> Descriptor:
    block = node.integers(1, "block shape")
    before, after = _sides(node, 2, "paddings", len(block))
    return SpaceToBatchNdDescriptor(block=block, before=before, after=after)


def _read_batch_to_space(node: Node) -> Descriptor:
    block = node.integers(1, "block shape")
    before, after = _sides(node, 2, "crops", len(block))
    return BatchToSpaceNdDescriptor(block=block, before=before, after=after)


def _write_blocks(table: str) -> Write:
    def write(emitter: Emitter, layer: Layer, descriptor: BatchDescriptor) -> None:
        block = emitter.integers(layer, "block", descriptor.block)
        sides = _write_sides(emitter, layer, descriptor)
        emitter.emit(layer, Options(table=table), inputs=[*layer.inputs, block, sides])

    return write


ROWS: Mapping[LayerType, Row] = {
    LayerType.BATCH_TO_SPACE_ND: Row(
        read=_read_batch_to_space,
        write=_write_blocks("BatchToSpaceNDOptions"),
        version=_batch_version,
        inputs=range(3, 4),
    ),
    LayerType.BROADCAST_TO: Row(
        read=_read_broadcast_to,
        write=_write_vector("BroadcastToOptions", "shape"),
        version=_broadcast_version,
        inputs=range(2, 3),
    ),
    LayerType.DEPTH_TO_SPACE: Row(
        read=_read_depth_to_space,
        write=write_options("DepthToSpaceOptions", BlockSize="block_size"),
        version=by_type(int8=2),
    ),
    LayerType.DYNAMIC_UPDATE_SLICE: replace(
        plain(DynamicUpdateSliceDescriptor, "DynamicUpdateSliceOptions", inputs=3), indices=frozenset({2})
    ),
    LayerType.EMBEDDING_LOOKUP: Row(
        read=_read_embedding_lookup, write=write_options(), data_inputs=range(2), inputs=range(2, 3)
    ),
    LayerType.FILL: Row(
        read=_read_fill,
        write=_write_fill,
        version=by_type(int8=3, int16=3, bool_=2),
        data_inputs=range(1, 2),
        inputs=range(2, 3),
    ),
    LayerType.GATHER: Row(
        read=_read_gather,
        write=write_options("GatherOptions", Axis="axis", BatchDims="batch_dims"),
        version=_gather_version,
        data_inputs=range(2),
        inputs=range(2, 3),
        indices=frozenset({1}),
    ),
    LayerType.GATHER_ND: replace(
        plain(GatherNdDescriptor, "GatherNdOptions", version=by_type(int16=3, bool_=5), inputs=2),
        indices=frozenset({1}),
    ),
    LayerType.MIRROR_PAD: Row(
        read=_read_mirror_pad,
        write=_write_mirror_pad,
        version=by_type(int8=2, int16=3),
        inputs=range(2, 3),
    ),
    LayerType.PACK: Row(
        read=_read_pack,
        write=_write_pack,
        version=by_type(int8=2, int16=3),
        data_inputs=range(MANY),
        inputs=range(1, MANY),
    ),
    LayerType.REVERSE_V2: Row(
        read=_read_reverse,
        write=_write_vector("ReverseV2Options", "axes"),
        version=by_type(int8=3, bool_=2),
        inputs=range(2, 3),
    ),
    LayerType.SPACE_TO_BATCH_ND: Row(
        read=_read_space_to_batch,
        write=_write_blocks("SpaceToBatchNDOptions"),
        version=_batch_version,
        inputs=range(3, 4),
    ),
    LayerType.SPACE_TO_DEPTH: Row(
        read=_read_space_to_depth,
        write=write_options("SpaceToDepthOptions", BlockSize="block_size"),
        version=by_type(int8=2),
    ),
    LayerType.SPLIT_V: Row(
        read=_read_split_v,
        write=_write_split_v,
        version=by_type(int8=2),
        inputs=range(3, 4),
        outputs=range(1, MANY),
    ),
    # int8 is version 3, but LiteRT's resolver of reference kernels has no version above 2, and version 1 runs alike.
    LayerType.TILE: Row(read=_read_tile, write=_write_vector("TileOptions", "multiples"), inputs=range(2, 3)),
    LayerType.UNPACK: Row(
        read=_read_unpack,
        write=_write_unpack,
        version=by_type(int8=2, bool_=3, int16=4),
        outputs=range(1, MANY),
    ),
    LayerType.ZEROS_LIKE: plain(ZerosLikeDescriptor, "ZerosLikeOptions"),
}
"""The rows of these operators."""
