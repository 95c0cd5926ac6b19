# SPDX-License-Identifier: Apache-2.0
"""`ferrule calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ferrule.cli import completion
from ferrule.cli.console import echo
from ferrule.cli.options import OPTIMIZATIONS, TOOLCHAIN, board_option, config_option, quiet_option
from ferrule.cli.parameters import PATH, POSITIVE, collected, flag, option
from ferrule.cli.progress import progress
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.running.calibration import Calibration, CalibrationRequest

_WORST = 5
"""Programs that are listed with the largest errors."""


def _request(**typed: Any) -> CalibrationRequest:  # noqa: ANN401 click's types
    from ferrule.emulation import EngineOptions
    from ferrule.running.calibration import CalibrationRequest

    options = EngineOptions(port=typed.pop("port"), baud=typed.pop("baud"))
    return CalibrationRequest(options=options, **typed)


@click.command("calibrate")
@config_option
@board_option
@option("--toolchain", "The compiler: zig or arm-none-eabi-gcc.", shown=TOOLCHAIN, shell_complete=completion.toolchains)
@option(
    "-O --optimization",
    "The compiler's optimization level; by default that which measured best: Os for zig, O3 for arm-none-eabi-gcc.",
    kind=OPTIMIZATIONS,
)
@collected(
    "request",
    _request,
    option(
        "--engine",
        "serial for a real board behind a serial port, or unicorn for the emulated one, whose own timing is found.",
        kind=("serial", "unicorn"),
        default="serial",
    ),
    option("--port", "serial: the board's port (/dev/ttyUSB0, COM3), or a URL such as socket://host:port."),
    option("--baud", "serial: bits per second.", kind=POSITIVE, default=115_200),
    option(
        "--timeout",
        "Time limit for one run of all programs, and for a board's first answer, in seconds.",
        "timeout_s",
        kind=click.FloatRange(min=0.001),
        default=60.0,
    ),
    option("--repeats", "Number of runs, of which the least cycles of each program count.", kind=POSITIVE, default=5),
)
@option(
    "--keep",
    "Keep the firmware's project and its build in this folder. Without --port, that is all: load the firmware onto "
    "the board, and repeat the command with --port.",
    kind=PATH,
)
@option(
    "--output",
    "Where the table [timing] goes: a file, the folder of your board, whose board.toml gets it, or a new folder, which "
    "becomes a copy of the board. By default it is printed.",
    kind=PATH,
)
@flag("--programs", "List each program with its measured and its predicted cycles.")
@quiet_option
def command(
    config: Path | None,
    board: str | None,
    toolchain: str | None,
    optimization: str | None,
    request: CalibrationRequest,
    keep: Path | None,
    output: Path | None,
    programs: bool,
    quiet: bool,
) -> None:
    """Measure small programs on a board, and find how its memories wait: the table [timing] of its board.toml.

    The firmware has micro-programs (loads, stores, branches, loops of many sizes) and layers of a model. The board
    counts their cycles; the embedded engine's model of the core predicts them for many candidates of wait states,
    widths, prefetch and caches. The table has the candidate that explains the counts best, and as `residual` the range
    of the errors that remain. docs/calibrate.md shows each step.
    """
    from dataclasses import replace

    from ferrule.running.calibration import calibrate, calibration_firmware, timing_table, write_table
    from ferrule.running.configuration import read_configuration

    configuration = read_configuration(config)
    given = {"board": board, "toolchain": toolchain, "optimization": optimization, "out": keep}
    job = configuration.job({name: value for name, value in given.items() if value is not None}, ())
    with progress(quiet=quiet) as say:
        firmware = calibration_firmware(job, say)
        if request.engine == "serial" and request.options.port is None:
            _explain(firmware.elf, keep)
            return
        calibration = calibrate(firmware, replace(request, progress=say))
    table = timing_table(calibration.timing)
    if output is not None:
        echo(f"{write_table(table, firmware.board, output)} has the table [timing]")
    else:
        echo(table, nl=False)
    if not quiet:
        _report(calibration, programs=programs)


def _explain(elf: Path, keep: Path | None) -> None:
    """Say how the firmware gets onto the board; FerruleError if it is not kept."""
    if keep is None:
        raise FerruleError(
            "the engine serial needs the board's port, and the firmware on the board",
            hint="--keep FOLDER writes the firmware; load it, and repeat the command with --port /dev/ttyUSB0, COM3 or "
            "socket://host:port (list them: python -m serial.tools.list_ports)",
        )
    echo(f"{elf}: load it onto the board, and repeat the command with --port")


def _report(calibration: Calibration, *, programs: bool) -> None:
    """Print what the table cannot say, on standard error."""
    errors = calibration.errors
    listed = list(errors) if programs else sorted(errors, key=lambda name: -abs(errors[name]))[:_WORST]
    low, high = calibration.timing.residual or (0.0, 0.0)
    layers = [error for name, error in errors.items() if name.startswith("layer ")]
    tried = f"{len(errors)} programs, {calibration.candidates} candidates"
    ranges = f"{low:+.1%} to {high:+.1%}, of layers {min(layers):+.1%} to {max(layers):+.1%}"
    click.echo(f"{tried}; the error of the prediction: {ranges}", err=True)
    for name in listed:
        measured, predicted = calibration.measured[name], calibration.predicted[name]
        click.echo(f"  {name:24} {measured:>10,} measured {predicted:>10,} predicted {errors[name]:+7.1%}", err=True)
    if calibration.unexplained:
        number, worst = len(calibration.unexplained), ", ".join(calibration.unexplained[:_WORST])
        note = f"note: no candidate explains {number} programs within 25 %: {worst}; the residual covers them"
        click.echo(note, err=True)
