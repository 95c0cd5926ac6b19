# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ferrule.facade.configuration import Configuration
    from ferrule.facade.division import Division

_F = TypeVar("_F", bound=Callable[..., Any])

OPTIMIZATIONS = ("O3", "O2", "Os")
PLATFORMS = ("bare-metal", "cmsis", "zephyr")
"""Those of ferrule.firmware.PLATFORMS, the default first; a test compares them, so that --help need not import it."""


def model_argument(function: _F) -> _F:
    """MODEL, a .tflite file."""
    return click.argument("model", type=click.Path(dir_okay=False, path_type=Path))(function)


def target_options(function: _F) -> _F:
    """--board, --toolchain and --optimization, and those of `division_options`."""
    for option in (
        click.option(
            "-O",
            "--optimization",
            type=click.Choice(OPTIMIZATIONS),
            default="O3",
            show_default=True,
            help="The compiler's optimization level.",
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
    return division_options("CpuAcc")(function)


def division_options(default: str | None) -> Callable[[_F], _F]:
    """--backends, with a default or without, --hint, --device, --backend-option and --config."""
    return lambda function: _with_division_options(function, default)


def _with_division_options(function: _F, default: str | None) -> _F:
    for option in (
        config_option,
        click.option(
            "--backend-option",
            "backend_options",
            multiple=True,
            metavar="BACKEND.NAME=VALUE",
            help="An option of a backend, such as MyNpu.fast=true; `ferrule backends` lists them. "
            "CpuAcc's num_threads and instructions, and GpuAcc's device, concern runs on the host only.",
        ),
        click.option(
            "--device",
            "devices",
            multiple=True,
            metavar="NAME=BACKEND",
            help="A device: an instance of a backend. A layer goes to the first of its backend, or to its hint's.",
        ),
        click.option(
            "--hint",
            "hints",
            multiple=True,
            metavar="LAYER=BACKEND[/DEVICE]",
            help="Whom to offer a layer first, before the preferences.",
        ),
        click.option(
            "--backends",
            default=default,
            show_default=True,
            help="Backends in order of preference, separated by commas (see `ferrule backends`).",
        ),
    ):
        function = option(function)
    return function


def config_option(function: _F) -> _F:
    """--config."""
    return click.option(
        "--config",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Backends and devices of a project; by default ferrule.toml in the current folder, if there is one.",
    )(function)


def dynamic_path_option(function: _F) -> _F:
    """--dynamic-path."""
    return click.option(
        "--dynamic-path",
        type=click.Path(path_type=Path),
        help="The only folder to look for dynamic backends in; it must be absolute.",
    )(function)


def make_division(
    backends: str,
    hints: Sequence[str],
    devices: Sequence[str],
    backend_options: Sequence[str],
    configuration: Configuration,
) -> Division:
    """Return what the options of `division_options` say; FerruleError if they are malformed."""
    from ferrule.errors import FerruleError

    wishes: dict[str, str] = {}
    for hint in hints:
        layer, separator, backend = hint.rpartition("=")
        if not separator or not backend:
            raise FerruleError(f"--hint {hint}: expected layer=Backend or layer=Backend/device")
        if layer in wishes:
            raise FerruleError(f"--hint {hint}: layer '{layer}' has a hint already")
        wishes[layer] = backend
    names = [name.strip() for name in backends.split(",")]
    return configuration.with_devices(devices).division(names, wishes, backend_options)
