# SPDX-License-Identifier: Apache-2.0
"""SLICE and STRIDED_SLICE."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDescriptor(Descriptor):
    """One input, one output."""

    begin: tuple[int, ...]
    size: tuple[int, ...]
    """Per axis; -1 means up to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StridedSliceDescriptor(Descriptor):
    """One input, one output; bit i of a mask stands for axis i, as in TensorFlow."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...]
    begin_mask: int = 0
    end_mask: int = 0
    shrink_axis_mask: int = 0
