# SPDX-License-Identifier: Apache-2.0
"""The vector instructions that CpuAcc has kernels for, and which of them this host has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ferrule.backends.cpu_acc.host.library import HostLibrary
from ferrule.errors import unknown_name
from ferrule.graph import Array

AUTOMATIC = "auto"
PORTABLE = "portable"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionSet:
    """How weights are packed for a set; the numbers are those of its header in src_c/simd."""

    name: str
    """The suffix of its kernels."""
    feature: int
    """The bit of ferrule_host_features."""
    lanes: int
    """Sums in a vector."""
    word_elements: int
    """int8 products that each lane adds at once; a word of them has 4 bytes."""
    parts: int
    """Vectors of sums that a vector of depthwise data fills."""
    group: int
    """Taps of a depthwise window that are added at once."""
    unsigned: bool
    """Whether int8 data is multiplied as the stored value plus 128; else as the stored value less its zero point."""

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of an int8 image in scratch."""
        return 4 // self.word_elements

    @property
    def vector_elements(self) -> int:
        """Neighbouring elements that a depthwise kernel takes at once."""
        return self.lanes * self.parts

    @property
    def order(self) -> Array:
        """Which element of a depthwise vector each lane of each part has: bytes are unpacked in runs of 4 lanes."""
        part, lane = np.arange(self.parts)[:, np.newaxis], np.arange(self.lanes)
        return 4 * self.parts * (lane // 4) + 4 * part + lane % 4


SETS = (
    InstructionSet(name="avx512", feature=2, lanes=16, word_elements=4, parts=4, group=4, unsigned=True),
    InstructionSet(name="avx2", feature=1, lanes=8, word_elements=2, parts=2, group=2, unsigned=False),
    InstructionSet(name="neon", feature=4, lanes=4, word_elements=2, parts=2, group=2, unsigned=False),
)
"""The fastest first."""


def available(library: HostLibrary) -> tuple[InstructionSet, ...]:
    """Return the sets of this host, the fastest first."""
    features = library.functions.ferrule_host_features()
    return tuple(item for item in SETS if features & item.feature)


def choose(library: HostLibrary, name: str = AUTOMATIC) -> InstructionSet | None:
    """Return a set by name, or the fastest; None for the portable kernels.

    Raises:
        FerruleError: this host has no such set.
    """
    found = available(library)
    if name == AUTOMATIC:
        return found[0] if found else None
    if name == PORTABLE:
        return None
    for item in found:
        if item.name == name:
            return item
    raise unknown_name("instruction set of this host", name, [AUTOMATIC, PORTABLE, *(item.name for item in found)])
