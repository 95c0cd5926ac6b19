# SPDX-License-Identifier: Apache-2.0
"""The input of the planner: buffers, the ones that share storage, and the ones that may overlap."""

from __future__ import annotations

from enum import StrEnum

from ferrule._frozen import frozen
from ferrule.memory.lifetimes import Lifetime


class BufferKind(StrEnum):
    """The kind of data in a buffer; reports list scratch separately from activations."""

    ACTIVATION = "activation"
    SCRATCH = "scratch"


@frozen
class Access:
    """What the bus masters that read or write a buffer need of its place."""

    masters: frozenset[str]
    """Each must reach the buffer's region; see `Region.reachable_by`."""
    alignment: int = 1
    """In bytes."""
    line_bytes: int = 1
    """Bytes per line of a cache between the buffer and one of the masters; 1 if there is none. No line may hold bytes
    of the buffer and of another one, so the buffer starts and ends at a line."""


@frozen
class Request:
    """A buffer to place."""

    name: str
    size_bytes: int
    """At least 1; there is no request for a kernel without scratch."""
    lifetime: Lifetime
    regions: tuple[str, ...]
    """Names of the regions allowed for the buffer, the preferred one first."""
    alignment: int = 1
    """The buffer's offset is a multiple of this, in bytes, and of the region's alignment."""
    kind: BufferKind = BufferKind.ACTIVATION
    access: Access | None = None
    """The masters that use the buffer; None if any region and place that the other fields allow will do."""

    def __post_init__(self) -> None:
        if self.size_bytes < 1 or self.alignment < 1 or not self.regions:
            raise ValueError(
                f"buffer '{self.name}' asks for {self.size_bytes} B at alignment {self.alignment} "
                f"in regions {list(self.regions)}, expected at least 1, 1 and one region"
            )


class AliasKind(StrEnum):
    """How two buffers share their storage."""

    VIEW = "view"
    """The output is the input's bytes under another name and shape: nothing is written, and both stay readable."""
    IN_PLACE = "in_place"
    """The output replaces the input, which is not read afterwards."""
    CARRIED = "carried"
    """The output is the new value of a state, in the place of the old one, which nothing needs when it is written,
    except its layer as far as an overlap allows."""


@frozen
class Alias:
    """A layer's output that shares storage with its input, starting at the same byte."""

    output: str
    input: str
    kind: AliasKind


@frozen
class Overlap:
    """A layer's output that may overlap its input, since the kernel writes only to bytes that it has already read.

    The layer must be the last to read the input's bytes. If it reads them under several names, as a tensor and its
    view, an overlap counts only if one is stated for each. A kernel that runs from the first byte to the last
    states `distance_bytes`: the overlap is safe if `offset(output) + distance_bytes <= offset(input)`. The distance
    is the maximum, over all moments of its run, of the end of the bytes already written minus the start of the
    bytes still to be read, each relative to its own buffer. It may be negative.

    A kernel that also runs from the last byte to the first, if its output lies above its input, states
    `backward_bytes`: the overlap is safe if `offset(input) + backward_bytes <= offset(output)`. This distance is the
    maximum, over all moments of that run, of the end of the bytes still to be read minus the start of the bytes already
    written, each relative to its own buffer.
    """

    output: str
    input: str
    distance_bytes: int | None
    """None if the output may not start below the input."""
    backward_bytes: int | None = None
    """None if the output may not start above the input."""
    step_bytes: int = 1
    """An overlap is safe only if the offsets differ by a multiple of this, as for kernels that compute one channel
    after the other; their distances hold for such offsets."""

    def common_bytes(self, output: int, source: int, alignment: int = 1) -> int:
        """Return the most bytes that an output and an input of these sizes have in common at any allowed places."""
        forward, backward = self.distance_bytes, self.backward_bytes
        below = 0 if forward is None else min(output + min(-forward, 0) // alignment * alignment, source)
        above = 0 if backward is None else min(source + min(-backward, 0) // alignment * alignment, output)
        return max(below, above, 0)


@frozen
class Tie:
    """A layer's input or output that lies at a fixed place inside the layer's scratch while the layer runs."""

    buffer: str
    scratch: str
    offset: int
    """Bytes from the start of the scratch to that of the buffer, which ends inside the scratch."""
    preserved: bool = False
    """Whether the layer leaves the bytes of an input as they were; otherwise, it may overwrite them."""


@frozen
class Untied:
    """A tie that a plan cannot keep: the buffer has a place of its own, and must be copied to or from the scratch."""

    tie: Tie
    reason: str
