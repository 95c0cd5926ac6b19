# SPDX-License-Identifier: Apache-2.0
"""Methods that add further layers which only move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrule.errors import ModelError
from ferrule.graph import Array
from ferrule.network.builder import Constant, LayerBuilder, adding, front_axes, sides
from ferrule.operators.movement.block import (
    DEPTH_TO_SPACE,
    SPACE_TO_DEPTH,
    BatchToSpaceNdDescriptor,
    SpaceToBatchNdDescriptor,
)
from ferrule.operators.movement.gather import (
    DynamicUpdateSliceDescriptor,
    EmbeddingLookupDescriptor,
    GatherDescriptor,
    GatherNdDescriptor,
)
from ferrule.operators.movement.join import SplitVDescriptor
from ferrule.operators.movement.mirror import MirrorPadDescriptor, ReverseV2Descriptor
from ferrule.operators.movement.repeat import BROADCAST_TO, FILL, TileDescriptor, ZerosLikeDescriptor
from ferrule.operators.movement.stack import PackDescriptor, UnpackDescriptor
from ferrule.operators.operator import Operator


class MovementLayers(LayerBuilder):
    """Methods that add further layers which only move elements; the outputs keep the first input's quantisation.

    See `ShapeLayers` for the names, the axes and the errors.
    """

    def _add_block(self, row: Operator, source: str, block_size: int, *, name: str | None = None) -> str:
        descriptor: Any = row.descriptor
        return self._append_like(source, descriptor(block_size=block_size), name=name)

    def _add_shaped(self, row: Operator, source: str, shape: Sequence[int], *, name: str | None = None) -> str:
        descriptor: Any = row.descriptor
        return self._append_like(source, descriptor(shape=tuple(shape)), name=name)

    add_space_to_depth_layer = adding(
        SPACE_TO_DEPTH, _add_block, "Add SPACE_TO_DEPTH, which makes the pixels of each square block one pixel."
    )
    add_depth_to_space_layer = adding(
        DEPTH_TO_SPACE, _add_block, "Add DEPTH_TO_SPACE, which makes each pixel a square block of pixels."
    )
    add_broadcast_to_layer = adding(BROADCAST_TO, _add_shaped, "Add BROADCAST_TO, by numpy's rules.")
    add_fill_layer = adding(FILL, _add_shaped, "Add FILL: each element of the new shape is the source's only one.")

    def add_split_v_layer(
        self, source: str, axis: int, sizes: Sequence[int], *, name: str | None = None
    ) -> tuple[str, ...]:
        """Add SPLIT_V into parts of the given sizes and return their names: `name` followed by _0, _1..."""
        descriptor = SplitVDescriptor(axis=self._axis(source, axis), sizes=tuple(sizes))
        return self._append_parts(source, descriptor, len(sizes), name)

    def add_pack_layer(self, sources: Sequence[str], axis: int, *, name: str | None = None) -> str:
        """Add PACK of one or more tensors of one shape; `axis` is the index of the new axis in the output."""
        if not sources:
            raise ModelError("a pack got no inputs, expected at least one")
        descriptor = PackDescriptor(axis=self._axis(sources[0], axis, more=1))
        return self._append_like(sources[0], descriptor, *sources[1:], name=name)

    def add_unpack_layer(self, source: str, axis: int, *, name: str | None = None) -> tuple[str, ...]:
        """Add UNPACK, which removes an axis, and return the names of the parts: `name` followed by _0, _1..."""
        found = self._axis(source, axis)
        return self._append_parts(source, UnpackDescriptor(axis=found), self.info(source).shape[found], name)

    def add_gather_layer(
        self, source: str, indices: str | Array, axis: int = 0, *, batch_dims: int = 0, name: str | None = None
    ) -> str:
        """Add GATHER: the parts of the source at the int32 indices of an axis.

        The indices are a tensor, or the data of a new constant. The first `batch_dims` axes of both belong together.
        """
        descriptor = GatherDescriptor(axis=self._axis(source, axis), batch_dims=batch_dims)
        return self._append_like(source, descriptor, _indices(indices), name=name)

    def add_gather_nd_layer(self, source: str, indices: str | Array, *, name: str | None = None) -> str:
        """Add GATHER_ND: the last axis of the int32 indices holds an index for each of the source's leading axes."""
        return self._append_like(source, GatherNdDescriptor(), _indices(indices), name=name)

    def add_embedding_lookup_layer(self, indices: str | Array, source: str, *, name: str | None = None) -> str:
        """Add EMBEDDING_LOOKUP: the rows of the source at a vector of int32 indices."""
        info, inputs = self.info(source), [_indices(indices), source]
        return self._append(
            EmbeddingLookupDescriptor(), inputs, name=name, quantization=info.quantization, dtype=info.dtype
        )[0]

    def add_dynamic_update_slice_layer(
        self, source: str, update: str, starts: str | Array, *, name: str | None = None
    ) -> str:
        """Add DYNAMIC_UPDATE_SLICE: the source with the part that begins at the int32 starts replaced by `update`."""
        return self._append_like(source, DynamicUpdateSliceDescriptor(), update, _indices(starts), name=name)

    def add_tile_layer(self, source: str, multiples: Sequence[int], *, name: str | None = None) -> str:
        """Add TILE, which repeats each axis as a whole."""
        return self._append_like(source, TileDescriptor(multiples=tuple(multiples)), name=name)

    def add_zeros_like_layer(self, source: str, *, name: str | None = None) -> str:
        """Add ZEROS_LIKE: stored zeros in the shape and type of the source."""
        return self._append_like(source, ZerosLikeDescriptor(), name=name)

    def add_reverse_v2_layer(self, source: str, axes: Sequence[int], *, name: str | None = None) -> str:
        """Add REVERSE_V2, which reverses neighbouring axes."""
        descriptor = ReverseV2Descriptor(axes=front_axes(axes, self.info(source)))
        return self._append_like(source, descriptor, name=name)

    def add_mirror_pad_layer(
        self, source: str, paddings: Sequence[tuple[int, int]], *, reflect: bool, name: str | None = None
    ) -> str:
        """Add MIRROR_PAD with (before, after) per axis; with `reflect`, the outermost element is not repeated."""
        before, after = sides(paddings)
        descriptor = MirrorPadDescriptor(before=before, after=after, reflect=reflect)
        return self._append_like(source, descriptor, name=name)

    def add_space_to_batch_nd_layer(
        self, source: str, block: Sequence[int], paddings: Sequence[tuple[int, int]], *, name: str | None = None
    ) -> str:
        """Add SPACE_TO_BATCH_ND with a block extent and (before, after) for each axis between the first and the last.

        The padding has the value zero.
        """
        before, after = sides(paddings)
        descriptor = SpaceToBatchNdDescriptor(block=tuple(block), before=before, after=after)
        return self._append_like(source, descriptor, name=name)

    def add_batch_to_space_nd_layer(
        self, source: str, block: Sequence[int], crops: Sequence[tuple[int, int]], *, name: str | None = None
    ) -> str:
        """Add BATCH_TO_SPACE_ND with a block extent and (before, after) for each axis between the first and the last.

        The crops are removed.
        """
        before, after = sides(crops)
        descriptor = BatchToSpaceNdDescriptor(block=tuple(block), before=before, after=after)
        return self._append_like(source, descriptor, name=name)


def _indices(indices: str | Array) -> str | Constant:
    return indices if isinstance(indices, str) else Constant(role="indices", data=np.asarray(indices, np.int32))
