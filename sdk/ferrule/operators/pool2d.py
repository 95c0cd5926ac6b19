# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D and MAX_POOL_2D."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor
from ferrule.operators.activation import Activation
from ferrule.operators.window import NO_PADDING, Padding


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool2dDescriptor(Descriptor):
    """One input and one output, NHWC. Padded pixels do not count."""

    pool_h: int
    pool_w: int
    stride_h: int = 1
    stride_w: int = 1
    padding: Padding = NO_PADDING
    activation: Activation = Activation.NONE
