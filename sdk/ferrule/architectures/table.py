# SPDX-License-Identifier: Apache-2.0
"""The architectures that boards can have."""

from __future__ import annotations

from ferrule.architectures.architecture import Architecture
from ferrule.architectures.cortex_m.architecture import CortexM
from ferrule.architectures.cpu import Core

CORTEX_M = CortexM()
ARCHITECTURES: tuple[Architecture, ...] = (CORTEX_M,)
_BY_CORE = {core: each for each in ARCHITECTURES for core in each.cores}


def core_of(core: str) -> Core:
    """Return what is true of every core of a supported type, by its name."""
    return architecture_of(core).cores[core]


def architecture_of(core: str) -> Architecture:
    """Return the architecture of a supported core, by the core's name."""
    return _BY_CORE[core]
