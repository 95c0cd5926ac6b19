# SPDX-License-Identifier: Apache-2.0
"""What a plan is asked for: buffers, which of them share storage, and which may overlap."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferrule.memory.lifetimes import Lifetime


class BufferKind(StrEnum):
    """What a buffer holds; reports list scratch apart from activations."""

    ACTIVATION = "activation"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A buffer to be placed."""

    name: str
    size_bytes: int
    """At least 1; a kernel that needs no scratch makes no request."""
    lifetime: Lifetime
    regions: tuple[str, ...]
    """Names of the regions that it may live in, the preferred one first."""
    alignment: int = 1
    """Its offset is a multiple of this, in bytes, and of the region's alignment."""
    kind: BufferKind = BufferKind.ACTIVATION

    def __post_init__(self) -> None:
        if self.size_bytes < 1 or self.alignment < 1 or not self.regions:
            raise ValueError(
                f"buffer '{self.name}' asks for {self.size_bytes} B at alignment {self.alignment} "
                f"in regions {list(self.regions)}, expected at least 1, 1 and one region"
            )


class AliasKind(StrEnum):
    """How two buffers share their storage."""

    VIEW = "view"
    """The same bytes under another name and shape: nothing is written, and both can be read afterwards."""
    IN_PLACE = "in_place"
    """The output replaces the input, which nothing reads afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A layer's output that starts at the first byte of its input."""

    output: str
    input: str
    kind: AliasKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A layer's output that may lie over its input, since its kernel writes behind its reads.

    It may when `offset(output) + distance_bytes <= offset(input)`, and only where the layer is the last to read the
    input's bytes. The kernel states the distance: the maximum, over all moments of its run, of the end of what it has
    written less the start of what it has still to read, each counted from its own buffer. It may be negative.
    """

    output: str
    input: str
    distance_bytes: int
