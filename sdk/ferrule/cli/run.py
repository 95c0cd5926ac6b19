# SPDX-License-Identifier: Apache-2.0
"""`ferrule run`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.main import exit_of
from ferrule.cli.options import (
    JobOptions,
    arena_option,
    check_toolchain,
    engine_name,
    job_options,
    models_argument,
    names_option,
    platform_option,
    quiet_option,
    run_options,
)
from ferrule.cli.outputs import Outputs, outputs_options
from ferrule.cli.parameters import PATH, flag, option, several
from ferrule.cli.progress import progress
from ferrule.cli.reading import ReadingOptions, reading_options
from ferrule.cli.run_elf import check_options, run_elf, split_models
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.running import RunRequest


@click.command("run")
@models_argument
@names_option()
@arena_option
@reading_options()
@job_options()
@platform_option("The platform of the firmware: bare metal, or an RTOS, which its own tools build (`ferrule doctor`).")
@run_options(
    option(
        "--gdb",
        "unicorn, qemu: build with debug information, and halt the firmware until gdb connects to this TCP port; "
        "no time-out applies.",
        kind=click.IntRange(1, 65535),
        metavar="PORT",
    ),
    flag("--trace-devices", "Report every device call: operator, device, call, status."),
    several(
        "--fault",
        "DEVICE:FAULT[@N]",
        "Inject a fault into a device's model, such as npu0:never-done@12 (docs/emulation.md lists the faults).",
        "faults",
    ),
    flag("--locate", "If the outputs differ, find the first differing layer by a second run."),
    flag(
        "--check-ownership",
        "unicorn: compare every access to the workspace, by the core and by devices, with the plan, and end the "
        "run at the first that it does not allow.",
    ),
    flag(
        "--reset-each",
        "Begin each sample with the initial state; otherwise, the samples of a model with state are one sequence.",
    ),
    flag(
        "--real",
        "The arrays of --input and --output are real numbers, which inputs are quantised from and outputs "
        "dequantised to, by each tensor's scale and zero point.",
    ),
    timeout="; for your own firmware, the time that it runs, in seconds of the board where the engine counts "
    "instructions (unicorn, renode)",
)
@several(
    "--input",
    "[NAME=]X.NPY",
    "An input array; for several inputs, repeat the option with their names. For n samples, the first axis is n "
    "times as long. Default: a fixed pattern (docs/running.md).",
    "inputs",
)
@several(
    "--output",
    "[NAME=]Y.NPY",
    "The file for an output array; for several outputs, repeat the option with their names.",
    "outputs",
)
@outputs_options("run")
@option("--keep", "Keep the generated project and its build in this folder.", kind=PATH)
@option(
    "--until",
    "Your own firmware: end the run when the console's text matches; it fails if that does not happen.",
    metavar="REGEX",
)
@quiet_option
@click.pass_context
def command(
    context: click.Context,
    models: tuple[Path, ...],
    names: tuple[str, ...],
    arena: str,
    reading: ReadingOptions,
    options: JobOptions,
    platform: str,
    request: RunRequest,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    results: Outputs,
    keep: Path | None,
    until: str | None,
    quiet: bool,
) -> int:
    """Import MODEL (.tflite, .onnx, .pt2), generate and build its firmware, run it on a board and compare its outputs.

    Or run your own firmware: the argument is an ELF file. Its console is printed, the devices of ferrule.toml and
    --device are attached, and it ends with --until, --timeout, an exit by semihosting (unicorn), or when it sleeps
    with nothing that could wake it. With `firmware.elf MODEL`, a model's firmware that is built already runs.

    The table shows each layer and its cost; the verdict states how the outputs compare with the numpy reference.
    Several models are built as one firmware, which runs once for each of them; --json then writes a list.
    Exit code: 0 if they are equal (float32 of other code: within bound), 1 if they differ or a --deadline is missed, 2
    for an error, 3 if nothing was compared, such as outputs that are all NaN, 4 if a --deadline is kept by a time whose
    error was not measured. Of your own firmware: 1 if --until did not match or the firmware
    exits with a status other than 0, 2 for an error or a crash.
    """
    from ferrule import running
    from ferrule.cli.arrays import parse_input_options, parse_output_options, save_array
    from ferrule.network.samples import split
    from ferrule.progress import Step
    from ferrule.running.configuration import read_configuration
    from ferrule.running.run import run

    results.check()
    check_toolchain(options.toolchain, platform)
    elf, given = split_models(models)
    if elf is not None and not given:
        check_options(context)
        return run_elf(elf, options, request, until, results.paths.get("json"), quiet=quiet)
    if until is not None:
        raise FerruleError("--until is for your own firmware, an ELF file")
    configuration = read_configuration(options.config)
    gdb = request.options.gdb
    job = replace(options.job(configuration, platform=platform, arena=arena, out=keep), debug=gdb is not None)
    engine = engine_name(request.engine, configuration, job.board)
    with (
        results.failures("run", given, board=Path(str(job.board)).name, engine=engine, faults=context.params["faults"]),
        progress(quiet=quiet or results.takes_stdout) as say,
    ):
        say(Step(phase=f"importing {' '.join(map(str, given))}"))
        networks = reading.load(given, names)
        if len(networks) > 1 and (inputs or outputs):
            raise FerruleError(
                "--input and --output are for one model",
                hint="without them, each model runs on the fixed pattern",
            )
        arrays = parse_input_options(inputs, networks[0].inputs) if inputs else None
        if arrays is not None:
            split(networks[0].inputs, arrays, real=request.real)  # raises before anything is built if they do not fit
        targets = parse_output_options(outputs, networks[0].outputs)
        request = replace(request, engine=engine, source=", ".join(inputs) or "pattern", progress=say)
        request.engine_for(job.load_board())
        if elf is None:
            firmwares = running.compile(networks, job, engine=engine, progress=say)
        else:
            firmwares = (running.adopt(networks[0], elf, job, engine=engine),)
        if gdb is not None:
            connect = f"-ex 'directory {firmwares[0].project.folder}' -ex 'target remote localhost:{gdb}'"
            click.echo(f"waiting: gdb-multiarch {firmwares[0].elf} {connect}", err=True)
        reports = [run(firmware, arrays, request) for firmware in firmwares]
    for warning in (warning for firmware in firmwares for warning in firmware.warnings):
        click.echo(f"warning: {warning}", err=True)
    for info, array in zip(networks[0].outputs, reports[0].outputs, strict=True):
        if info.name in targets:
            save_array(targets[info.name], array)
    results.write([report.document for report in reports], models=given, quiet=quiet)
    return exit_of(judgement for report in reports for judgement in (report.verdict, *report.duration.judgements))
