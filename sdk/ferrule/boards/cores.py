# SPDX-License-Identifier: Apache-2.0
"""The core of a board, from its platform description and its board.toml."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ferrule.architectures import ARCHITECTURES, Cpu
from ferrule.boards.description import CpuDescription
from ferrule.boards.repl import Platform
from ferrule.errors import FerruleError

_BY_CLASS = {each.platform.core: each for each in ARCHITECTURES}


def cpu(platform: Platform, description: CpuDescription, file: Path) -> Cpu:
    """Return the core described by a platform description and the table `[cpu]` of `file`.

    Raises:
        FerruleError: there is not one core, it is not supported, or it cannot have a feature that the table states.
    """
    entries = platform.of_type(*_BY_CLASS)
    if len(entries) != 1:
        kinds = " or ".join(_BY_CLASS)
        raise FerruleError(f"{platform.file}: {len(entries)} entries of type {kinds}, exactly one is supported")
    entry = entries[0]
    kind = entry.text("cpuType")
    if kind is None:
        raise FerruleError(f"{entry.place}: '{entry.name}' has no cpuType")
    stated = msgspec.structs.asdict(description)
    return _BY_CLASS[entry.type].cpu(kind, **stated, file=str(file), place=entry.place)
