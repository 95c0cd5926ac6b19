# SPDX-License-Identifier: Apache-2.0
"""`ferrule inspect`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ferrule.cli.console import console, echo, print_json
from ferrule.cli.options import ClassOptions, JobOptions, class_options, dynamic_options, job_options, model_argument
from ferrule.cli.outputs import Outputs, outputs_options
from ferrule.cli.parameters import flag
from ferrule.cli.reading import ReadingOptions, reading_options
from ferrule.cli.usage import UsageOptions, usage_options
from ferrule.errors import FerruleError

_DRAWING_WIDTH = 100
"""The most characters per line of --plan."""


@click.command("inspect")
@model_argument
@flag("--plan", "Draw the place and lifetime of each tensor, and of each kernel's scratch, in the arena.", "show_plan")
@flag("--schedule", "With --backends: list the firmware's device calls in order.", "show_schedule")
@flag(
    "--kernels",
    "List the kernels considered for each layer of the firmware, with their estimated costs, and why one was chosen.",
    "show_kernels",
)
@flag(
    "--fit",
    "Rank the boards by the planned time of an inference, with its energy where the board states currents, and the "
    "bytes that the firmware's plan needs of their memories, without the code.",
    "show_fit",
)
@usage_options
@outputs_options("inspection")
@dynamic_options
@job_options(build=False, imports=True)
@class_options
@reading_options()
def command(
    model: Path,
    show_plan: bool,
    show_schedule: bool,
    show_kernels: bool,
    show_fit: bool,
    usage: UsageOptions,
    results: Outputs,
    dynamic_path: Path | None,
    isolate: bool,
    options: JobOptions,
    classes: ClassOptions,
    reading: ReadingOptions,
) -> None:
    """Show the layers of MODEL (.tflite, .onnx or .pt2), with shapes, quantisation, MACs and weights, and the arena.

    The arena is that of the firmware for --board and --goal: its tensors with the scratch of its kernels. Its
    certificate says whether it is proved to be the least.

    With --backends, also show which backend takes each layer, why the others do not, and which backend runs it in the
    end, on the host and in firmware, once every backend has optimised its layers, and how tensors pass from one
    backend to another on the host, with the reasons. Dynamic backends are included.
    --schedule also shows when devices are activated, opened, closed and deactivated, what is copied to and from their
    memories, and why the tensors that cross between the core and devices are shared in place or copied.

    With --kernels, also show which kernels can run each layer on --board, what each costs, and which one is best for
    --goal.

    With --fit, also show what the firmware's plan needs of the memories of each board: workspace, weights and stack.
    The code comes on top; only a build knows its size. The boards are ranked by planned costs, without a build.
    --rate marks the boards that are too slow, and --battery states how long it lasts.

    With --target, also show what would become of each layer in a C++ class over the Arm Compute Library, and why if it
    is not possible.

    Of a model that cannot be loaded, show every operator that blocks, the reasons with their counts, and what would
    unblock them; the exit code is 2.
    """
    from ferrule import running

    results.check()
    classes.refuse_without_target()
    try:
        with results.failures("inspect", [model]):
            (network,) = reading.load([model])
    except FerruleError as error:
        raise _refused(model.name, error, as_json="json" in results.paths) from error
    usage.refuse_unless(show_fit, "--fit")
    divided = options.backends is not None
    if not divided:
        of_division = (options.no_fallback, options.import_enabled, options.fallbacks, dynamic_path, isolate)
        if any((*of_division, show_schedule)) and not (show_kernels or show_fit):
            raise FerruleError(
                "--no-fallback, --import, --fallback, --dynamic-path, --isolate-dynamic-backends and --schedule are "
                "only valid with --backends, --kernels or --fit"
            )
        options = replace(options, backends="CpuAcc")
    from ferrule.running.configuration import read_configuration

    with read_configuration(options.config).with_dynamic_backends(dynamic_path, isolate=isolate) as configuration:
        inspection = running.inspect(
            network,
            options.job(configuration),
            schedule=show_schedule,
            kernels=show_kernels,
            target=classes.target,
            acl=classes.acl(),
            fit=show_fit,
            rate=usage.parsed_rate,
            battery=usage.parsed_battery,
            by=usage.rank_by,
            division=divided or bool(options.hints),
        )
    if not divided:
        inspection = replace(inspection, division=None)
    results.write([inspection])
    if show_plan and not results.takes_stdout:
        from ferrule.report.drawing import draw

        echo(draw(inspection.plan, width=min(console().width, _DRAWING_WIDTH)))
    if options.no_fallback and inspection.division is not None:
        problems = [final.problem for final in inspection.division.finals]
        if all(problems):
            raise FerruleError("\n".join(dict.fromkeys(problems)))


def _refused(model: str, error: FerruleError, *, as_json: bool) -> FerruleError:
    """Print everything that blocks a model, and return the error to raise."""
    if not error.problems:
        return error
    from ferrule.report.console import print_report
    from ferrule.report.refusal import refused_model

    refused = refused_model(model, error)
    if as_json:
        print_json(refused)
    else:
        print_report(refused, console())
    if len(refused.problems) == 1:
        return error
    return FerruleError(f"{model}: {len(refused.problems)} places block the model, for {len(refused.reasons)} reasons")
