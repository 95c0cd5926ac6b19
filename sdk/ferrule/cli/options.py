# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

OPTIMIZATIONS = ("O3", "O2", "Os")


def model_argument(function: _F) -> _F:
    """MODEL, a .tflite file."""
    return click.argument("model", type=click.Path(dir_okay=False, path_type=Path))(function)


def target_options(function: _F) -> _F:
    """--board, --toolchain, --backends and --optimization."""
    for option in (
        click.option(
            "-O",
            "--optimization",
            type=click.Choice(OPTIMIZATIONS),
            default="O3",
            show_default=True,
            help="The compiler's optimization level.",
        ),
        click.option(
            "--backends",
            default="CpuAcc",
            show_default=True,
            help="Backends in order of preference, separated by commas.",
        ),
        click.option("--toolchain", default="zig", show_default=True, help="The compiler: zig or arm-none-eabi-gcc."),
        click.option(
            "--board",
            default="mps2-an386",
            show_default=True,
            help="A board's name (see `ferrule boards`), or the path of a board's folder.",
        ),
    ):
        function = option(function)
    return function
