# SPDX-License-Identifier: Apache-2.0
"""CONV_2D."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor
from ferrule.operators.activation import Activation
from ferrule.operators.window import NO_PADDING, Padding


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dDescriptor(Descriptor):
    """Inputs: NHWC image, OHWI weights, optional bias [O]. One output, NHWC."""

    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    padding: Padding = NO_PADDING
    activation: Activation = Activation.NONE
