# SPDX-License-Identifier: Apache-2.0
"""RESHAPE, SQUEEZE and EXPAND_DIMS: the bytes stay as they are."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeDescriptor(Descriptor):
    """One input, one output."""

    shape: tuple[int, ...]
    """The new shape; at most one extent is -1 and is inferred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqueezeDescriptor(Descriptor):
    """One input, one output."""

    axes: tuple[int, ...] = ()
    """Axes of extent 1 to remove, non-negative and ascending; () removes all of extent 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandDimsDescriptor(Descriptor):
    """One input, one output."""

    axis: int
    """Where the new axis stands in the output, non-negative."""
