# SPDX-License-Identifier: Apache-2.0
"""`ferrule artifact`: runs generated classes."""

from __future__ import annotations

from pathlib import Path

import click

from ferrule.cli.console import STDOUT, console, write_json
from ferrule.cli.main import exit_of
from ferrule.cli.options import quiet_option
from ferrule.cli.outputs import report_option
from ferrule.cli.parameters import NATURAL, PATH, flag, option, several
from ferrule.cli.progress import progress
from ferrule.errors import FerruleError


@click.group("artifact")
def command() -> None:
    """Run a C++ class that `ferrule generate --target` wrote."""


@command.command("run")
@click.argument("folder", metavar="DIR", type=PATH)
@several(
    "--input",
    "[NAME=]X.NPY",
    "An input array; for several inputs, repeat the option with their names. Default: the fixed pattern, or "
    "random values with --seed.",
    "inputs",
)
@option("--seed", "Draw the inputs at random, from this seed.", kind=NATURAL)
@option(
    "--sysroot",
    "The folder that scripts/acl_sysroot.sh made, or another arm64 sysroot.  [default: $FERRULE_ACL_SYSROOT]",
    kind=PATH,
)
@option(
    "--stepwise/--chained",
    "Whether each layer gets the reference's values, or the outputs of the layers before it.",
    default=True,
)
@flag("--profile", "Also measure the time of each layer; on an arm64 machine only.")
@report_option
@quiet_option
def run(
    folder: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    sysroot: Path | None,
    stepwise: bool,
    profile: bool,
    json: Path | None,
    quiet: bool,
) -> int:
    """Build the class in DIR, run it, and compare each of its tensors with the numpy reference.

    It runs on this machine if that is arm64, and otherwise under qemu-aarch64. A class for OpenCL runs on NEON, with
    stricter rules, if this machine cannot run it. The report names what ran and the first layer that differs.
    Exit code: 0 if every element is within its own bound, 1 if not, 2 for an error, 3 if nothing was compared.
    """
    from ferrule.acl import load_artifact
    from ferrule.acl.run import print_artifact_report, run_artifact
    from ferrule.cli.arrays import parse_input_options, require_writable
    from ferrule.network.samples import random_sample

    if inputs and seed is not None:
        raise FerruleError("--input and --seed exclude each other")
    if json not in {None, STDOUT}:
        require_writable("--json", json)
    project = load_artifact(folder)
    infos = project.network().inputs
    arrays = parse_input_options(inputs, infos) if inputs else None if seed is None else random_sample(infos, seed)
    with progress(quiet=quiet or json == STDOUT) as say:
        report = run_artifact(
            project,
            arrays,
            sysroot=sysroot,
            stepwise=stepwise,
            profile=profile,
            source=", ".join(inputs) or ("" if seed is None else f"seed {seed}"),
            progress=say,
        )
    write_json(json, report)
    if not quiet and json != STDOUT:
        print_artifact_report(report, console())
    return exit_of([report.verdict])
