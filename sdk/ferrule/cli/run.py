# SPDX-License-Identifier: Apache-2.0
"""`ferrule run`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli import completion
from ferrule.cli.console import console
from ferrule.cli.main import exit_of
from ferrule.cli.options import (
    ENGINE,
    JobOptions,
    arena_option,
    check_toolchain,
    engine_name,
    job_options,
    models_argument,
    names_option,
    platform_option,
)
from ferrule.cli.outputs import Outputs, outputs_options
from ferrule.cli.progress import progress
from ferrule.cli.reading import ReadingOptions, reading_options
from ferrule.cli.run_elf import check_options, run_elf, split_models
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.devices import Fault
    from ferrule.facade import Firmware
    from ferrule.firmware import Job
    from ferrule.network import Network
    from ferrule.progress import Progress
    from ferrule.report import RunReport

GDB_TIMEOUT_S = 7 * 24 * 3600.0
"""Time-out of one inference while gdb is attached: in effect none."""


@click.command("run", short_help="Run a model, or your own firmware, on a board.")
@models_argument
@names_option()
@arena_option
@reading_options
@job_options
@platform_option("The platform of the firmware: bare metal, or an RTOS, which its own tools build (`ferrule doctor`).")
@click.option(
    "--engine",
    show_default=ENGINE,
    shell_complete=completion.engines,
    help="The engine that runs the firmware: unicorn, qemu, renode (renode:cosimulation attaches device models through "
    "Renode's own co-simulation socket, renode:cosimulation-ticks also lets time pass for them), or serial for a real "
    "board behind a serial port.",
)
@click.option("--port", help="serial: the board's port (/dev/ttyUSB0, COM3), or a URL such as socket://host:port.")
@click.option("--baud", type=click.IntRange(min=1), default=115_200, show_default=True, help="serial: bits per second.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]X.NPY",
    help="An input array; for several inputs, repeat the option with their names. For n samples, the first axis is n "
    "times as long. Default: a fixed pattern (docs/running.md).",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="[NAME=]Y.NPY",
    help="The file for an output array; for several outputs, repeat the option with their names.",
)
@outputs_options("run")
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Keep the generated project and its build in this folder."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.001),
    default=60.0,
    show_default=True,
    help="Time limit for one inference, in seconds in which the engine works or sleeps; for your own firmware, the "
    "time that it runs, in seconds of the board where the engine counts instructions (unicorn, renode).",
)
@click.option(
    "--until",
    metavar="REGEX",
    help="Your own firmware: end the run when the console's text matches; it fails if that does not happen.",
)
@click.option(
    "--gdb",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="unicorn, qemu: build with debug information, and halt the firmware until gdb connects to this TCP port; no "
    "time-out applies.",
)
@click.option(
    "--through-link",
    is_flag=True,
    help="unicorn: transfer inputs and outputs through the link, as on a real board, which takes the firmware more "
    "than a hundred instructions per byte; otherwise the engine accesses the memory directly.",
)
@click.option("--trace-devices", is_flag=True, help="Report every device call: operator, device, call, status.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="DEVICE:FAULT[@N]",
    help="Inject a fault into a device's model, such as npu0:never-done@12 (docs/emulation.md lists the faults).",
)
@click.option("--locate", is_flag=True, help="If the outputs differ, find the first differing layer by a second run.")
@click.option(
    "--check-ownership",
    is_flag=True,
    help="unicorn: compare every access to the workspace, by the core and by devices, with the plan, and end the run "
    "at the first that it does not allow.",
)
@click.option(
    "--reset-each",
    is_flag=True,
    help="Begin each sample with the initial state; otherwise, the samples of a model with state are one sequence.",
)
@click.option(
    "--real",
    is_flag=True,
    help="The arrays of --input and --output are real numbers, which inputs are quantised from and outputs dequantised "
    "to, by each tensor's scale and zero point.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def command(
    context: click.Context,
    models: tuple[Path, ...],
    names: tuple[str, ...],
    arena: str,
    reading: ReadingOptions,
    options: JobOptions,
    platform: str,
    engine: str | None,
    port: str | None,
    baud: int,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    results: Outputs,
    keep: Path | None,
    timeout_s: float,
    gdb: int | None,
    through_link: bool,
    trace_devices: bool,
    faults: tuple[str, ...],
    locate: bool,
    check_ownership: bool,
    reset_each: bool,
    real: bool,
    until: str | None,
    quiet: bool,
) -> int:
    """Import MODEL (.tflite or .onnx), generate and build its firmware, run it on a board and compare its outputs.

    Or run your own firmware: the argument is an ELF file. Its console is printed, the devices of ferrule.toml and
    --device are attached, and it ends with --until, --timeout, an exit by semihosting (unicorn), or when it sleeps
    with nothing that could wake it. With `firmware.elf MODEL`, a model's firmware that is built already runs.

    The table shows each layer and its cost; the verdict states how the outputs compare with the numpy reference.
    Several models are built as one firmware, which runs once for each of them; --json then writes a list.
    Exit code: 0 if they are equal (float32 of other code: within bound), 1 if they differ, 2 for an error, 3 if nothing
    was compared, such as outputs that are all NaN. Of your own firmware: 1 if --until did not match or the firmware
    exits with a status other than 0, 2 for an error or a crash.
    """
    from ferrule import facade
    from ferrule.cli.arrays import parse_input_options, parse_output_options
    from ferrule.emulation import EngineOptions
    from ferrule.facade.configuration import read_configuration
    from ferrule.network.samples import split
    from ferrule.progress import Step

    results.check()
    check_toolchain(options.toolchain, platform)
    injected, timeout_s = _faults(faults), timeout_s if gdb is None else GDB_TIMEOUT_S
    engine_options = EngineOptions(port=port, baud=baud, gdb=gdb, through_link=through_link)
    elf, given = split_models(models)
    if elf is not None and not given:
        check_options(context)
        json = results.paths.get("json")
        return run_elf(elf, options, engine, engine_options, injected, until, timeout_s, json, quiet=quiet)
    models = _without_until(given, until)
    configuration = read_configuration(options.config)
    job = options.job(configuration, platform=platform, arena=arena, out=keep)
    engine = engine_name(engine, configuration, job.board)
    job = replace(job, debug=gdb is not None)
    with (
        results.failures("run", models, board=Path(str(job.board)).name, engine=engine, faults=faults),
        progress(quiet=quiet or results.takes_stdout) as say,
    ):
        say(Step(phase=f"importing {' '.join(map(str, models))}"))
        networks = reading.load(models, names)
        _refuse_arrays(len(networks), (*inputs, *outputs))
        arrays = parse_input_options(inputs, networks[0].inputs) if inputs else None
        if arrays is not None:
            split(networks[0].inputs, arrays, real=real)  # raises before anything is built if the arrays do not fit
        targets = parse_output_options(outputs, networks[0].outputs)
        facade.check_engine(engine, job, engine_options, check_ownership=check_ownership)
        firmwares = _firmwares(networks, elf, job, engine, say)
        if gdb is not None:
            _say_how_to_connect(firmwares[0], gdb)
        reports = [
            firmware.run(
                arrays,
                engine=engine,
                options=engine_options,
                timeout_s=timeout_s,
                progress=say,
                source=", ".join(inputs) or "pattern",
                trace_devices=trace_devices,
                faults=injected,
                locate=locate,
                check_ownership=check_ownership,
                reset_each=reset_each,
                real=real,
            )
            for firmware in firmwares
        ]
    for warning in (warning for firmware in firmwares for warning in firmware.warnings):
        click.echo(f"warning: {warning}", err=True)
    _save_outputs(reports[0], targets)
    results.write([report.document for report in reports], models=models)
    if not quiet and not results.takes_stdout:
        _print(reports)
    return exit_of(report.verdict for report in reports)


def _firmwares(networks: list[Network], elf: Path | None, job: Job, engine: str, say: Progress) -> tuple[Firmware, ...]:
    """Build the firmware of the models, or take the one that is built already."""
    from ferrule import facade

    if elf is None:
        return facade.compile(networks, job, engine=engine, progress=say)
    return (facade.adopt(networks[0], elf, job, engine=engine),)


def _without_until(models: tuple[Path, ...], until: str | None) -> tuple[Path, ...]:
    """Return the models; FerruleError if --until is given for them."""
    if until is not None:
        raise FerruleError("--until is for your own firmware, an ELF file")
    return models


def _refuse_arrays(count: int, options: tuple[str, ...]) -> None:
    if count > 1 and options:
        raise FerruleError(
            "--input and --output are for one model",
            hint="without them, each model runs on the fixed pattern",
        )


def _print(reports: list[RunReport]) -> None:
    from ferrule.report.console import print_report

    for report in reports:
        print_report(report.document, console())


def _faults(options: tuple[str, ...]) -> dict[str, Fault]:
    from ferrule.devices import parse_fault

    faults: dict[str, Fault] = {}
    for option in options:
        device, fault = parse_fault(option)
        if device in faults:
            raise FerruleError(f"--fault {option}: device '{device}' has a fault already, and only one is allowed")
        faults[device] = fault
    return faults


def _say_how_to_connect(firmware: Firmware, port: int) -> None:
    connect = f"-ex 'directory {firmware.project.folder}' -ex 'target remote localhost:{port}'"
    click.echo(f"waiting: gdb-multiarch {firmware.elf} {connect}", err=True)


def _save_outputs(report: RunReport, targets: dict[int, Path]) -> None:
    from ferrule.cli.arrays import save_array

    for index, path in targets.items():
        save_array(path, report.outputs[index])
