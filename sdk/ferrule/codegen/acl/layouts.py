# SPDX-License-Identifier: Apache-2.0
"""Where a tensor's elements lie in the library: its dimensions begin with the innermost, and images are planes.

Networks are NHWC. A tensor with four dimensions is described as (W, H, C, N), the library's NCHW, and every other one
by its extents in reverse order, so that its elements lie as in the network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.graph import Shape

PLANES_TO_PIXELS = (2, 0, 1)
"""PermutationVector from (W, H, C, N) to (C, W, H, N): dimension i of the result is dimension `[i]` of the source."""
PIXELS_TO_PLANES = (1, 2, 0)
"""PermutationVector from (C, W, H, N) to (W, H, C, N)."""
IMAGE_RANK = 4


def order(rank: int) -> tuple[int, ...]:
    """Return the axis of the network for each dimension of the library."""
    return (2, 1, 3, 0) if rank == IMAGE_RANK else tuple(reversed(range(rank)))


def dimension_of(axis: int, rank: int) -> int:
    """Return the dimension in the library of a network's axis."""
    return order(rank).index(axis)


def dimensions(shape: Shape) -> tuple[int, ...]:
    """Return the extents in the library of a tensor of the network; a scalar has one element."""
    return tuple(shape[axis] for axis in order(len(shape))) or (1,)


def pixels(shape: Shape) -> tuple[int, ...]:
    """Return the extents of a tensor whose elements lie as in the network."""
    return tuple(reversed(shape)) or (1,)


def is_moved(shape: Shape) -> bool:
    """Return whether the elements lie otherwise in the library than in the network."""
    if len(shape) != IMAGE_RANK:
        return False
    _, height, width, channels = shape
    return channels > 1 and height * width > 1


def stored(values: NDArray[Any]) -> NDArray[Any]:
    """Return a constant of the network with its elements in the order of the library."""
    return np.ascontiguousarray(values.transpose(tuple(reversed(order(values.ndim)))))


def permutation(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the PermutationVector of a TRANSPOSE; `axes` are the source's axes in the order of the result."""
    rank = len(axes)
    return tuple(dimension_of(axes[axis], rank) for axis in order(rank))
