# SPDX-License-Identifier: Apache-2.0
"""All engines by name."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.emulation.engine import Engine
from ferrule.emulation.qemu.engine import QemuEngine
from ferrule.emulation.serial.engine import SerialEngine
from ferrule.emulation.unicorn.engine import UnicornEngine
from ferrule.errors import unknown_name

ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (UnicornEngine(), QemuEngine(), SerialEngine())}


def engine_names() -> list[str]:
    """Return the names, the default first."""
    return list(ENGINES)


def engine(name: str) -> Engine:
    """Return an engine by name.

    Raises:
        FerruleError: there is none; the hint lists the near ones.
    """
    try:
        return ENGINES[name]
    except KeyError:
        raise unknown_name("engine", name, ENGINES) from None
