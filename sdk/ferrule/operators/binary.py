# SPDX-License-Identifier: Apache-2.0
"""ADD, SUB, MUL, MAXIMUM and MINIMUM, with broadcasting."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor
from ferrule.operators.activation import Activation


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryDescriptor(Descriptor):
    """Two inputs that broadcast as numpy's do, one output; for ADD, SUB and MUL."""

    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremumDescriptor(Descriptor):
    """Two inputs that broadcast as numpy's do, one output; for MAXIMUM and MINIMUM."""
