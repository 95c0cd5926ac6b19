# SPDX-License-Identifier: Apache-2.0
"""RELU, RELU6, RELU_N1_TO_1, LEAKY_RELU and PRELU."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReluDescriptor(Descriptor):
    """One input, one output; for RELU, RELU6 and RELU_N1_TO_1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakyReluDescriptor(Descriptor):
    """One input, one output."""

    alpha: float
    """Factor of the negative values, exactly representable in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreluDescriptor(Descriptor):
    """Inputs: data, and a factor for negative values that broadcasts against it. One output."""
