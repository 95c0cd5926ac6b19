# SPDX-License-Identifier: Apache-2.0
"""The vector instruction sets for which CpuAcc has kernels, and the choice of a set for this host."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.host.library import HostLibrary
from ferrule.errors import unknown_name
from ferrule.graph import Array

AUTOMATIC = "auto"
PORTABLE = "portable"


@frozen
class InstructionSet:
    """The layout of weights for an instruction set; the numbers match the set's header in src_c/simd."""

    name: str
    """Name of the set."""
    kernels: str = ""
    """The suffix of its kernels, if it is another one."""
    tiles: bool = False
    """Whether products are those of tiles of matrices."""
    feature: int
    """The set's bit in the result of ferrule_host_features."""
    lanes: int
    """Number of sums in a vector."""
    word_elements: int
    """Number of int8 products that each lane adds at once; their weights fill a word of 4 bytes."""
    parts: int
    """Number of vectors of sums that correspond to one vector of depthwise data."""
    group: int
    """Number of taps of a depthwise window that are added at once."""
    unsigned: bool
    """Whether int8 data is multiplied as stored value plus 128; otherwise as stored value minus zero point."""

    @property
    def suffix(self) -> str:
        """The suffix of the kernels' names."""
        return self.kernels or self.name

    @property
    def element_bytes(self) -> int:
        """Bytes per element of an int8 image in scratch memory."""
        return 4 // self.word_elements

    @property
    def vector_elements(self) -> int:
        """Number of neighbouring elements that a depthwise kernel processes at once."""
        return self.lanes * self.parts

    @property
    def order(self) -> Array:
        """Indices, [part, lane], of the elements of a depthwise vector; bytes are unpacked in runs of 4 lanes."""
        part, lane = np.arange(self.parts)[:, np.newaxis], np.arange(self.lanes)
        return 4 * self.parts * (lane // 4) + 4 * part + lane % 4


SETS = (
    InstructionSet(
        name="amx", kernels="avx512", feature=8, lanes=16, word_elements=4, parts=4, group=4, unsigned=True, tiles=True
    ),
    InstructionSet(name="avx512", feature=2, lanes=16, word_elements=4, parts=4, group=4, unsigned=True),
    InstructionSet(name="avx2", feature=1, lanes=8, word_elements=2, parts=2, group=2, unsigned=False),
    InstructionSet(name="neon", feature=4, lanes=4, word_elements=2, parts=2, group=2, unsigned=False),
)
"""All instruction sets, the fastest first."""


def available(library: HostLibrary) -> tuple[InstructionSet, ...]:
    """Return the instruction sets that this host supports, the fastest first."""
    features = library.functions.ferrule_host_features()
    return tuple(item for item in SETS if features & item.feature)


def choose(library: HostLibrary, name: str = AUTOMATIC) -> InstructionSet | None:
    """Return the instruction set of that name, or the fastest for "auto"; None stands for the portable kernels.

    Raises:
        FerruleError: this host does not support the set.
    """
    found = available(library)
    if name == AUTOMATIC:
        return found[0] if found else None
    if name == PORTABLE:
        return None
    for item in found:
        if item.name == name:
            return item
    raise unknown_name(
        "instruction set", name, [AUTOMATIC, PORTABLE, *(item.name for item in found)], where="on this host"
    )
