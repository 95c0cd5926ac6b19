# SPDX-License-Identifier: Apache-2.0
"""LOGISTIC, TANH, HARD_SWISH."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticDescriptor(Descriptor):
    """One input, one output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TanhDescriptor(Descriptor):
    """One input, one output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardSwishDescriptor(Descriptor):
    """One input, one output."""
