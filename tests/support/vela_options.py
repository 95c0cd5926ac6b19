# SPDX-License-Identifier: Apache-2.0
"""Rows of options with which Vela compiles the networks of a campaign, each pair of values in some row."""

from __future__ import annotations

import zlib
from dataclasses import fields
from functools import cache
from pathlib import Path

import vela_legacy
from covering import pairwise

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.device import BackendId, Device
from ferrule.backends.ethos_u.configuration import configuration as configuration_named
from ferrule.backends.ethos_u.settings import _MODES, _SYSTEMS, DEFAULT, settings_of
from ferrule.backends.option import OptionValue
from ferrule.backends.target import Face, Target

OWN_FILE = Path(__file__).with_name("vela_own.ini")
"""A user's configuration file, which gives Ethos-U55 a dedicated SRAM, too."""
LEGACY = "legacy"
DRAWN = "drawn"
"""What stands for a row that is drawn for each case."""
_OWN_SYSTEM = "Own_Dram"
_OWN_MODES = ("Own_Shared", "Own_Dedicated")
_FLASH_ONLY = frozenset({*_SYSTEMS[0], "Ethos_U65_Embedded"})
"""Systems without DRAM, which a dedicated SRAM needs beside it for the tensors."""
_LIMITS = (0, 512, 8192)
"""Without a limit, one that hardly a network keeps, and one that small networks keep."""


@frozen
class OptionRow:
    """The options of a compilation that change Vela's streams: those of the backend, and Vela's code generator.

    The backend's others do not: `fast_memory` is about the board, and `timeout_s` about this machine.
    """

    memory_mode: str = DEFAULT
    system_config: str = DEFAULT
    optimise: str = "Performance"
    arena_cache_bytes: int = 0
    core: str = DEFAULT
    """`LEGACY` for Vela's older code generator, which the backend never asks for."""

    @override
    def __str__(self) -> str:
        """The options that are not the defaults, in the form that `row` reads."""
        given = [(each.name, getattr(self, each.name), each.default) for each in fields(self)]
        return ",".join(f"{name}={value}" for name, value, default in given if value != default) or DEFAULT

    def arguments(self, configuration: str) -> tuple[str, ...]:
        """Return Vela's arguments, as the backend makes them; FerruleError if it refuses the options."""
        options: dict[str, OptionValue] = {
            "memory_mode": self.memory_mode,
            "system_config": self.system_config,
            "config_file": str(OWN_FILE) if self.system_config == _OWN_SYSTEM else "",
            "optimise": self.optimise,
            "arena_cache_bytes": self.arena_cache_bytes,
        }
        npu = Device(name="npu", backend=BackendId("EthosU"), binding={"configuration": configuration})
        settings = settings_of(Target(face=Face.HOST, device=npu, options=options))
        return (*settings.arguments(), *[vela_legacy.ARGUMENT] * (self.core == LEGACY))


def row(text: str) -> OptionRow:
    """Return the row of a text such as "memory_mode=Sram_Only,optimise=Size"; ValueError if it is none."""
    given = dict(each.split("=", 1) for each in text.split(",")) if text != DEFAULT else {}
    if unknown := given.keys() - {each.name for each in fields(OptionRow)}:
        raise ValueError(f"there is no option {', '.join(sorted(unknown))}")
    limit = int(given.pop("arena_cache_bytes", 0))
    return OptionRow(arena_cache_bytes=limit, **given)


@cache
def rows(configuration: str, *, legacy: bool = True) -> tuple[OptionRow, ...]:
    """Return rows that cover each pair of values that go together on an NPU, the defaults first."""
    systems = (*_SYSTEMS[configuration_named(configuration).product], _OWN_SYSTEM)
    cores = (DEFAULT, LEGACY) if legacy else (DEFAULT,)
    chosen = pairwise(
        (*_MODES, *_OWN_MODES), systems, ("Performance", "Size"), _LIMITS, cores, seed=1, allowed=_go_together
    )
    listed = []
    for mode, system, optimise, limit, core in chosen:
        assert isinstance(limit, int)
        listed.append(
            OptionRow(
                memory_mode=str(mode),
                system_config=str(system),
                optimise=str(optimise),
                arena_cache_bytes=limit,
                core=str(core),
            )
        )
    return (OptionRow(), *listed)


def _go_together(mode: str, system: str, *_: object) -> bool:
    if system == _OWN_SYSTEM or mode in _OWN_MODES:
        return system == _OWN_SYSTEM and mode in _OWN_MODES
    return not (mode.startswith("Dedicated") and system in _FLASH_ONLY)


def drawn(label: str, seed: int, configuration: str, *, legacy: bool = True) -> OptionRow:
    """Return a case's row: consecutive seeds of a label have all rows in turn, and labels begin at different ones."""
    among = rows(configuration, legacy=legacy)
    return among[(seed + zlib.crc32(label.encode())) % len(among)]
