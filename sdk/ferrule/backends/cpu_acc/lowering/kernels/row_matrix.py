# SPDX-License-Identifier: Apache-2.0
"""Matrices by which kernels of recurrent layers multiply rows of int8 or int16 (`ferrule/kernels/row_matrix.h`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import Member
from ferrule.backends.cpu_acc.lowering.kernels.choice import Feature
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import pair_weights
from ferrule.backends.cpu_acc.lowering.kernels.mve import EIGHT, VECTOR
from ferrule.backends.cpu_acc.lowering.kernels.packing import words
from ferrule.backends.cpu_acc.lowering.kernels.scalar import OCTET, interleaved
from ferrule.backends.firmware import LoweringContext
from ferrule.dom import Identifier
from ferrule.graph import Array
from ferrule.operators.arithmetic.fixed_point import Factor

_LARGEST_DATA = 128
"""The largest magnitude of an int8."""
_LARGEST_WIDE_DATA = 1 << 15
_TILES = 8, 16, 32, 64
"""Units of a tile; kernels expect multiples of the first."""


@frozen(eq=False)
class RowEngine:
    """The loops that multiply rows on some cores."""

    name: str
    """As in the names of the kernels."""
    source: str
    needs: frozenset[Feature]
    channels: int
    """Channels of a block."""
    group: int
    """Products of a group."""
    stream: Callable[[Array, Array], Array | None]
    """Returns the words of blocks, [blocks, words], of weights and biases; None if those of 16 bits are necessary."""
    block_cost: Callable[[int], int]
    """Returns the instructions of a block for a number of groups."""
    group_cost: int
    """Instructions for a group of a row that is copied."""
    wide: bool = False
    """Whether the data is int16."""

    @property
    def largest_data(self) -> int:
        """The largest magnitude of the data."""
        return _LARGEST_WIDE_DATA if self.wide else _LARGEST_DATA

    @property
    def kernel_suffix(self) -> str:
        """The end of the names of kernels."""
        return f"{self.name}_s{16 if self.wide else 8}"


def slowness(context: LoweringContext) -> int:
    """Return how many times as many instructions plain C takes on a core of Armv6-M as on others."""
    core = context.target.core
    return 2 if core is not None and core.baseline else 1


def tiles(units: int) -> tuple[int, ...]:
    """Return numbers of units that may be computed together, from little scratch to few instructions."""
    whole = -(-units // _TILES[0]) * _TILES[0]
    return (*(tile for tile in _TILES if tile < units), *([whole] if whole <= _TILES[-1] else []))


@frozen(eq=False)
class RowMatrix:
    """A matrix in the form of an engine."""

    engine: RowEngine
    stream: Array
    """[blocks, words]."""
    groups: int
    copy_bytes: int
    """Scratch of a row's copy."""
    function: str = ""
    """What multiplies, if the engine has several functions."""

    @property
    def is_wide(self) -> bool:
        """Whether weights have 16 bits."""
        return "wide" in self.function

    @property
    def instructions(self) -> int:
        """An estimate for a row; those of Armv6-M are `slowness` times as many."""
        copied = self.groups * self.engine.group_cost if self.copy_bytes else 0
        cost = self.engine.block_cost(self.groups) - 6 * self.groups * self.is_wide
        return len(self.stream) * cost + copied + 30

    def fields(self, context: LoweringContext, name: str) -> Mapping[str, Member]:
        """Return the members of a `struct ferrule_row_matrix`."""
        return {
            "stream": context.blob(name, self.stream.reshape(-1)),
            "block_words": self.stream.shape[1],
            "groups": self.groups,
            "multiply": Identifier(self.function) if self.function else None,
        }


def row_matrix(
    engine: RowEngine, matrix: Array, bias: Array, factors: Sequence[Factor], order: Array
) -> RowMatrix | str:
    """Return the channels of a matrix in an order, in which -1 stands for a channel without weights.

    `matrix` is int8, [channels, products], and `bias` int64. Sums of whole channels are scaled by `factors`; the reason
    as a string if one is too large for that.
    """
    reach = np.abs(matrix.astype(np.int64)).sum(axis=1) * engine.largest_data + np.abs(bias)
    if ((reach << [max(factor.shift, 0) for factor in factors]) >> 30).any():
        return "a sum does not fit into 30 bits"
    padded = np.pad(matrix, ((0, 1), (0, -matrix.shape[1] % engine.group)))[order]
    ordered = np.append(bias, 0)[order]
    stream, function = engine.stream(padded, ordered), ""
    if engine.name == BLOCK.name:
        function = f"ferrule_block_row_{'wide_' if stream is None else ''}sums"
    if stream is None:
        stream = _wide_blocks(padded, ordered, in_order=engine.wide)
    copied = engine.name == BLOCK.name or (engine.name == VECTORS.name and padded.shape[1] != matrix.shape[1])
    return RowMatrix(
        engine=engine,
        stream=stream,
        groups=padded.shape[1] // engine.group,
        copy_bytes=(2 if engine.wide or engine.name == BLOCK.name else 1) * padded.shape[1] if copied else 0,
        function=function,
    )


def _blocks(matrix: Array, bias: Array) -> Array | None:
    """Return the blocks for `ferrule_block_row_sums`; None if a weight or a sum is too large to be paired.

    Of each two channels, the second one is the even one.
    """
    first, second = matrix[0::2].astype(np.int64), matrix[1::2]
    reach = np.abs(first).sum(axis=1) * _LARGEST_DATA + np.abs(bias[0::2])
    if reach.max() >> 23 or ((first == -_LARGEST_DATA) & (second < 0)).any():
        return None
    order = np.arange(len(matrix)).reshape(-1, 2)[:, ::-1].reshape(-1)
    blocks = len(matrix) // 4
    starts = np.column_stack([256 * bias[0::2] + bias[1::2], bias[1::2]]).reshape(blocks, 4)
    wrapped = starts.astype(np.uint64).astype(np.uint32).view(np.int32)
    return np.concatenate([wrapped, pair_weights(matrix[order], 4).reshape(blocks, -1)], axis=1)


def _wide_blocks(matrix: Array, bias: Array, *, in_order: bool) -> Array:
    """Return the blocks for `ferrule_block_row_wide_sums`.

    Of four products, 0 and 2 precede 1 and 3 unless they are in order.
    """
    groups = matrix.reshape(-1, 4, matrix.shape[1] // 4, 2, 2).astype(np.int16)
    groups = groups if in_order else groups.swapaxes(3, 4)
    # [block, channel, group, word, half of a word] -> [block, group, word, channel, half of a word]
    weights = words(groups.transpose(0, 2, 3, 1, 4)).reshape(len(groups), -1)
    return np.concatenate([bias.reshape(-1, 4).astype(np.int32), weights], axis=1)


def _no_blocks(matrix: Array, bias: Array) -> None:
    """Return that no two channels can be paired."""
    del matrix, bias


def _octets(matrix: Array, bias: Array) -> Array:
    weights = words(interleaved(matrix, OCTET)).reshape(len(matrix) // OCTET, -1)
    return np.concatenate([bias.reshape(-1, OCTET).astype(np.int32), weights], axis=1)


def _vectors(matrix: Array, bias: Array, products: int = VECTOR) -> Array:
    order = np.arange(len(matrix)).reshape(-1, len(EIGHT))[:, EIGHT].reshape(-1)
    weights = matrix[order].reshape(-1, len(EIGHT), matrix.shape[1] // products, products).transpose(0, 2, 1, 3)
    blocks = words(weights).reshape(len(weights), -1)
    return np.concatenate([bias[order].reshape(len(blocks), -1).astype(np.int32), blocks], axis=1)


VECTORS = RowEngine(
    name="mve",
    source="fully_connected_mve_s8",
    needs=frozenset({Feature.MVE}),
    channels=len(EIGHT),
    group=VECTOR,
    stream=_vectors,
    block_cost=lambda groups: 17 * groups + 2 * -(-groups // 4) + 7,
    group_cost=3,
)
BLOCK = RowEngine(
    name="block",
    source="fully_connected_block_s8",
    needs=frozenset({Feature.LONG_MULTIPLY, Feature.DSP}),
    channels=4,
    group=8,
    stream=_blocks,
    block_cost=lambda groups: 27 * groups + 3 * -(-groups // 4) + 16,
    group_cost=14,
)
PLAIN = RowEngine(
    name="octet",
    source="multiply_octet",
    needs=frozenset(),
    channels=OCTET,
    group=1,
    stream=_octets,
    block_cost=lambda groups: 18 * groups + 90,
    group_cost=0,
)
ENGINES = VECTORS, BLOCK, PLAIN
ENGINES_S16 = (
    replace(VECTORS, group=VECTOR // 2, stream=partial(_vectors, products=VECTOR // 2), wide=True),
    replace(BLOCK, stream=_no_blocks, group_cost=6, wide=True),
)
"""Those for rows of int16."""
