# SPDX-License-Identifier: Apache-2.0
"""Parts of documents that explain a run: its memory plan, its timeline, where it ran, and how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule._frozen import frozen, positional
from ferrule.report.sections import Code, Facts, Part, joined, page_part, plural


@frozen
class BufferPart:
    """A buffer of a memory plan."""

    name: str
    """The tensor, or the scratch of a layer."""
    kind: str
    """"input", "output", "activation", "scratch" or "state"."""
    offset: int
    """In bytes, from the start of its region."""
    size_bytes: int
    first: int
    """The first step of the schedule during which its bytes must survive."""
    last: int
    """The last such step, included."""


@frozen
class RegionPlanPart:
    """The plan of one memory region over time."""

    name: str
    peak_bytes: int
    bound_bytes: int
    """Proved lower bound on the peak of any plan for this order of layers."""
    certificate: str
    """"optimal", or the most that the peak can exceed the proved lower bound."""
    steps: tuple[str, ...]
    """The layer of each step, in the order of execution."""
    buffers: tuple[BufferPart, ...]

    @property
    def caption(self) -> str:
        """The plan in words."""
        return (
            f"Memory {self.name}: {self.peak_bytes:,} B at the peak for {plural(len(self.buffers), 'buffer')}; "
            f"no plan of these needs less than {self.bound_bytes:,} B ({self.certificate})."
        )


@frozen
class SpanPart:
    """A stretch of time in which the core or a device works on a layer."""

    track: str
    """"core", or the device's name."""
    layer: str
    start: int
    """In the unit of `CountPart`, from the start of the inference."""
    end: int
    exact: bool = True
    """Whether start and end are counted; otherwise they follow from the order of the calls."""


@positional
class Timeline:
    """What the core and the devices work on, for a drawing."""

    spans: Sequence[SpanPart]
    colours: Mapping[str, int]
    """By layer: the number of its colour."""
    unit: str


@positional
class Assigned:
    """A layer with the backend or device that runs it, for a drawing."""

    layer: str
    runner: str
    share: float = 0.0
    """Its share of the counts, 0 to 1."""


@frozen
class HotLayer:
    """A layer with what it takes, for a drawing."""

    name: str
    type: str
    runner: str
    """The backend or device that runs it."""
    colour: int
    """That of what runs it."""
    share: float | None
    """Its share of the time, 0 to 1; None if nothing was counted."""
    used_bytes: int | None
    """The bytes of the memory that are in use while it runs; None if they are not known."""
    sources: tuple[int, ...] = ()
    """The layers that write its inputs, by their place in the order of execution."""


@positional
class HotLayers:
    """The layers in the order of execution, for a drawing."""

    layers: Sequence[HotLayer]
    unit: str
    """What the time is counted in; empty if it is not."""
    memory: str
    """The name of the memory; empty if its plan is not known."""


@frozen
class EnvironmentPart:
    """Where a document was made. It contains no user name, host name or path."""

    ferrule: str
    """Version."""
    python: str
    platform: str
    """Operating system and processor architecture, such as "Linux x86_64"."""
    packages: dict[str, str]
    """Versions of the installed packages that the results may depend on, by name."""
    commands: tuple[str, ...] = ()
    """The commands that make the document again, as a shell would read them."""


def surroundings(environment: EnvironmentPart | None) -> Part | None:
    """Return how to make a document again, and by what it was made; None if that is not known."""
    if environment is None:
        return None
    packages = joined(*(f"{name} {version}" for name, version in environment.packages.items()))
    made = Facts.known(
        {
            "Ferrule": environment.ferrule,
            "Python": environment.python,
            "platform": environment.platform,
            "packages": packages,
        }
    )
    commands = Code("\n".join(environment.commands), "sh") if environment.commands else None
    return page_part("Environment", commands, made)
