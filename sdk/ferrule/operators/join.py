# SPDX-License-Identifier: Apache-2.0
"""CONCATENATION and SPLIT."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcatenationDescriptor(Descriptor):
    """One or more inputs, one output."""

    axis: int
    """Non-negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDescriptor(Descriptor):
    """One input, `splits` outputs of equal extent along the axis."""

    axis: int
    """Non-negative."""
    splits: int
