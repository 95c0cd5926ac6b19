# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposeDescriptor(Descriptor):
    """One input, one output."""

    permutation: tuple[int, ...]
    """Axis i of the output is axis permutation[i] of the input."""
