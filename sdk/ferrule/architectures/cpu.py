# SPDX-License-Identifier: Apache-2.0
"""A board's core, as its architecture makes it of what the board states."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.backends.target import CoreFeatures

NO_FPU = "none"


@frozen
class Core:
    """What is true of every core of a type."""

    interrupts: int
    """The largest number of lines that its interrupt controller can have."""
    has_stack_limit: bool = False
    """Whether a register limits the stack; otherwise start-up guards the addresses below it."""
    has_data_cache: bool = False
    """Whether it can have a data cache that is maintained through the registers of its architecture."""


@frozen
class Cpu:
    """The core that runs the firmware."""

    type: str
    """The designer's name in lower case without suffixes for options: `cortex-m4`."""
    fpu: str
    """GCC's name for the floating-point unit (`fpv4-sp-d16`, `fpv5-sp-d16`, `fpv5-d16`), or `none`."""
    dsp: bool
    """Whether the core has the DSP extension (SMLAD and related instructions)."""
    mve: bool = False
    """Whether code may use the integer vector extension (MVE, Helium)."""
    interrupts: int = 240
    """Number of lines of the chip's interrupt controller, which are counted from 0."""

    @property
    def hard_float(self) -> bool:
        """Whether floats are passed in floating-point registers."""
        return self.fpu != NO_FPU

    @property
    def features(self) -> CoreFeatures:
        """The description of the core that backends receive."""
        return CoreFeatures(name=self.type, fpu=self.hard_float, dsp=self.dsp, mve=self.mve)
