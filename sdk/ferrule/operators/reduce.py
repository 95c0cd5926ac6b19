# SPDX-License-Identifier: Apache-2.0
"""MEAN and SUM."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceDescriptor(Descriptor):
    """One input, one output."""

    axes: tuple[int, ...]
    """Non-negative, ascending, without repetition."""
    keep_dims: bool = False
