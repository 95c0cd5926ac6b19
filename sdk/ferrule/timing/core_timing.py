# SPDX-License-Identifier: Apache-2.0
"""The cycles of a core's instructions, read from the file that states each of them with its source."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from ferrule._frozen import frozen
from ferrule.documents import convert, read_toml
from ferrule.errors import FerruleError, some_of

FOLDER = Path(__file__).parent / "cores"
MOST_CYCLES = 255
_Cycles = Annotated[int, msgspec.Meta(ge=0, le=MOST_CYCLES)]


class Basis(StrEnum):
    """What a number rests on."""

    PUBLISHED = "published"
    """The maker of the core states it."""
    MEASURED = "measured"
    """Others measured it and published the measurement."""
    COMPILER = "compiler"
    """A compiler's model of the core states it."""
    FITTED = "fitted"
    """Chosen so that published figures come out."""
    ASSUMED = "assumed"
    """Nothing is published; the reason is stated."""


@frozen
class CoreTiming:
    """The cycles of a core's instructions, in memories without wait states."""

    core: str
    """Arm's name in lower case: `cortex-m4`."""


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of one source."""

    source: str
    basis: Basis
    cycles: dict[str, _Cycles]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A core's file."""

    core: str
    group: list[_Group]


PARAMETERS = tuple(each.name for each in fields(CoreTiming) if each.name != "core")
"""The names of the numbers, in the order of `struct ferrule_core_timing`."""


def read_core_timing(path: Path) -> CoreTiming:
    """Read a core's file.

    Raises:
        FerruleError: the file cannot be read, or a key is missing, unknown, stated twice or out of its range.
    """
    file = convert(str(path), read_toml(path), _File)
    found: dict[str, int] = {}
    for group in file.group:
        for name, value in group.cycles.items():
            if name not in PARAMETERS:
                raise FerruleError(f"{path}: unknown key '{name}'", hint=f"known: {', '.join(PARAMETERS)}")
            if name in found:
                raise FerruleError(f"{path}: key '{name}' is stated twice, as {found[name]} and as {value}")
            found[name] = value
    lacking = [name for name in PARAMETERS if name not in found]
    if lacking:
        raise FerruleError(f"{path}: the keys are missing: {some_of(lacking, len(lacking))}")
    return CoreTiming(core=file.core, **found)


@cache
def timed_cores() -> tuple[str, ...]:
    """Return the names of the cores with a model, in alphabetical order."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def core_timing(core: str) -> CoreTiming | None:
    """Return the cycles of a core by Arm's name in lower case; None for a core without a model."""
    return read_core_timing(FOLDER / f"{core}.toml") if core in timed_cores() else None
