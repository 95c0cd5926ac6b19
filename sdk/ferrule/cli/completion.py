# SPDX-License-Identifier: Apache-2.0
"""Completion of names in a shell: boards, backends, toolchains and engines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from ferrule.errors import FerruleError

VARIABLE = "_FERRULE_COMPLETE"
"""The environment variable by which a shell requests completion; see docs/running.md."""


def complete(command: click.Command, instruction: str) -> int:
    """Print what the shell requests, its script or the completions of a word; return the exit code."""
    from click.shell_completion import shell_complete

    return shell_complete(command, {}, "ferrule", VARIABLE, instruction)


def boards(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the boards whose names begin so; folders are left to the shell."""
    from ferrule.boards import board_names

    return _beginning(board_names(), incomplete)


def toolchains(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the toolchains whose names begin so."""
    from ferrule.firmware.toolchain import TOOLCHAINS

    return _beginning([each.name for each in TOOLCHAINS], incomplete)


def engines(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the engines whose names begin so."""
    from ferrule.emulation.table import ENGINES, VARIANTS

    return _beginning([*ENGINES, *VARIANTS], incomplete)


def backends(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the lists of backends that complete the last one in a list; dynamic backends are not loaded for it."""
    from ferrule.running.configuration import read_configuration

    config = context.params.get("config")
    done, comma, last = incomplete.rpartition(",")
    try:
        known = read_configuration(Path(config) if config else None).registry().ids()
    except FerruleError:
        return []
    return [f"{done}{comma}{name}" for name in _beginning([str(each) for each in known], last)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
