# SPDX-License-Identifier: Apache-2.0
"""The micro-programs of a calibration: small loops, each of which makes one property of a memory visible.

A program is a function with the address of an area of RAM as its first argument and that of one of flash as its second,
both aligned to `ALIGNMENT`. Its loop begins at a multiple of `ALIGNMENT`, so that its place in lines of a cache is the
same on each board. Fitted properties are those of `ferrule.timing.MemoryTiming`.
"""

from __future__ import annotations

from enum import StrEnum

from ferrule._frozen import frozen

ALIGNMENT = 64
"""Bytes, the longest line of a cache that a loop can make visible."""


@frozen
class Assembly:
    """The directives of the assembler around a function."""

    before: tuple[str, ...]
    """Those before all else."""
    function: tuple[str, ...]
    """Those before the name of a function."""


class Group(StrEnum):
    """What a program spends its time with."""

    FETCH = "fetch"
    """Instructions from the memory of the code."""
    FLASH = "flash"
    """Loads from the memories of the code and of the weights."""
    RAM = "ram"
    """Loads from and stores to the memory of the workspace, or of the stack."""
    CORE = "core"
    """The core's own work."""
    LAYERS = "layers"
    """All of it, as the layers of a model do."""


@frozen
class MicroProgram:
    """A program of a calibration."""

    name: str
    """A C identifier."""
    what: str
    """A short description."""
    group: Group
    lines: tuple[str, ...]
    """Its assembler, from the first instruction to the return."""
    before_loop: int = 4
    """Bytes of instructions before its loop."""


@frozen
class Areas:
    """The areas of memory that the programs of a board use."""

    ram_bytes: int
    flash_bytes: int
    code_bytes: int
    """Of the longest loop."""
