# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxDescriptor(Descriptor):
    """One input, one output, over the last axis."""

    beta: float = 1.0
    """Factor of the input, exactly representable in float32."""
