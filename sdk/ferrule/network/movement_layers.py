# SPDX-License-Identifier: Apache-2.0
"""Methods that add further layers which only move elements."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.errors import ModelError
from ferrule.graph import LayerType
from ferrule.network.builder import LayerBuilder, front_axis
from ferrule.operators.join import SplitVDescriptor
from ferrule.operators.stack import PackDescriptor, UnpackDescriptor


class MovementLayers(LayerBuilder):
    """Methods that add further layers which only move elements; the outputs keep the first input's quantisation.

    See `ShapeLayers` for the names, the axes and the errors.
    """

    def add_split_v_layer(
        self, source: str, axis: int, sizes: Sequence[int], *, name: str | None = None
    ) -> tuple[str, ...]:
        """Add SPLIT_V into parts of the given sizes and return their names: `name` followed by _0, _1..."""
        info = self.info(source)
        descriptor = SplitVDescriptor(axis=front_axis(axis, len(info.shape)), sizes=tuple(sizes))
        return self._append(
            LayerType.SPLIT_V, descriptor, [source], name=name, quantization=info.quantization, outputs=len(sizes)
        )

    def add_pack_layer(self, sources: Sequence[str], axis: int, *, name: str | None = None) -> str:
        """Add PACK of one or more tensors of one shape; `axis` is the index of the new axis in the output."""
        if not sources:
            raise ModelError("a pack got no inputs, expected at least one")
        first = self.info(sources[0])
        descriptor = PackDescriptor(axis=front_axis(axis, len(first.shape) + 1))
        return self._append(LayerType.PACK, descriptor, list(sources), name=name, quantization=first.quantization)[0]

    def add_unpack_layer(self, source: str, axis: int, *, name: str | None = None) -> tuple[str, ...]:
        """Add UNPACK, which removes an axis, and return the names of the parts: `name` followed by _0, _1..."""
        info = self.info(source)
        found = front_axis(axis, len(info.shape))
        return self._append(
            LayerType.UNPACK,
            UnpackDescriptor(axis=found),
            [source],
            name=name,
            quantization=info.quantization,
            outputs=info.shape[found],
        )
