# SPDX-License-Identifier: Apache-2.0
"""QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeDescriptor(Descriptor):
    """One input, float or integer; one integer output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DequantizeDescriptor(Descriptor):
    """One integer input, one float32 output."""
