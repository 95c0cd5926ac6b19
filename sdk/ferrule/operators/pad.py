# SPDX-License-Identifier: Apache-2.0
"""PAD and PADV2."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class PadDescriptor(Descriptor):
    """One input, one output. PAD fills with zero, as stored the output's zero point."""

    before: tuple[int, ...]
    """Elements added before, per axis."""
    after: tuple[int, ...]
    """Elements added after, per axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PadV2Descriptor(Descriptor):
    """One input, one output."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    value: int | float
    """The fill, as stored (an int for integer tensors, in the output's quantisation)."""
