# SPDX-License-Identifier: Apache-2.0
"""Points of several objectives, each of which is to be small: how good they are together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ferrule.report.tradeoff import Points, front


def hypervolume(points: Points, reference: Sequence[float]) -> float:
    """Return the volume that points dominate, up to a reference point; points beyond it count as nothing.

    It is computed by slices along the last objective (Zitzler, "Evolutionary algorithms for multiobjective
    optimization", 1999), whose number grows exponentially with that of objectives: for a few of them.
    """
    limit = np.asarray(reference, np.float64)
    inside = points[(points < limit).all(axis=1)]
    if not len(inside):
        return 0.0
    if inside.shape[1] == 1:
        return float(limit[0] - inside.min())
    inside = inside[np.argsort(inside[:, -1], kind="stable")]
    heights = np.diff(inside[:, -1], append=limit[-1])
    if inside.shape[1] == 2:
        return float(np.sum(heights * (limit[0] - np.minimum.accumulate(inside[:, 0]))))
    inside = inside[front(inside)]
    heights = np.diff(inside[:, -1], append=limit[-1])
    volumes = (hypervolume(inside[: index + 1, :-1], reference[:-1]) for index in np.flatnonzero(heights > 0))
    return float(sum(height * volume for height, volume in zip(heights[heights > 0], volumes, strict=True)))


def gain(point: Points, known: Points, reference: Sequence[float]) -> float:
    """Return the hypervolume that a point adds to that of known points."""
    limit = np.asarray(reference, np.float64)
    if (point >= limit).any():
        return 0.0
    own = float(np.prod(limit - point))
    return own - hypervolume(np.maximum(known, point), reference)


def margins(points: Points, known: Points) -> NDArray[np.float64]:
    """Return by how much points improve on known ones: the least shift in all objectives by which one dominates each.

    It is the additive epsilon indicator (Zitzler et al., "Performance assessment of multiobjective optimizers", 2003)
    with its sign turned: above 0 for a point that no known point dominates weakly.
    """
    return np.asarray(np.min(np.max(known[None, :, :] - points[:, None, :], axis=2), axis=1))
