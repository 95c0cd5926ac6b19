# SPDX-License-Identifier: Apache-2.0
"""`ferrule verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import echo
from ferrule.cli.main import EXIT_DIFFERENT, EXIT_NOTHING_COMPARED
from ferrule.cli.options import PLATFORMS, JobOptions, arena_option, job_options, models_argument, names_option
from ferrule.cli.parameters import FILE, FOLDER, flag, option
from ferrule.cli.progress import progress
from ferrule.cli.reading import ReadingOptions, reading_options

if TYPE_CHECKING:
    from ferrule.firmware.verification import Check


@click.command("verify")
@click.argument("elf", type=FILE)
@models_argument
@names_option()
@arena_option
@reading_options()
@job_options(build=False)
@option("--platform", "The platform; by default the one the firmware states.", kind=PLATFORMS)
@option(
    "--project",
    "The project of which the firmware was built, for the files that you have edited, such as main.c.",
    kind=FOLDER,
    metavar="FOLDER",
)
@flag("--no-code", "Do not build the firmware again: the code is not checked, and the exit code is that of the rest.")
@flag("-q --quiet", "Print errors and results only.")
def command(
    elf: Path,
    models: tuple[Path, ...],
    names: tuple[str, ...],
    arena: str,
    options: JobOptions,
    platform: str | None,
    project: Path | None,
    no_code: bool,
    reading: ReadingOptions,
    quiet: bool,
) -> int:
    """Compare the firmware ELF with a firmware generated and built from MODEL: its digests, constants and code.

    Of a firmware with several models, give all, in the order in which they were generated.

    The options must be those that the firmware was generated with; board and platform are by default those that the
    firmware states, and --backends is by default CpuAcc. The digests are of the model, of the plan (the division of the
    layers, their order, the places in memory), and of the sources (all C but the files that users may edit, and the
    linker script). The firmware only states them, so that the tables of constants and weights are compared byte by
    byte, too, and the code with a build by the compiler that the firmware states, if it is installed here.

    Exit code: 0 if everything is equal, 1 if something differs, 2 for an error, 3 if the code was not checked.
    """
    from dataclasses import replace

    from ferrule.firmware.identification import read_identities, read_identity
    from ferrule.firmware.image import read_image
    from ferrule.firmware.mlperf_tiny import CALIBRATION_APP, LINK_APP, MICRO_PROGRAMS, MLPERF_APP, SERVES
    from ferrule.firmware.verification import State, verify

    image = read_image(elf)
    networks = reading.load(models, names)
    stated = read_identity(image, networks[0])
    given = replace(options, backends=options.backends or "CpuAcc", board=options.board or stated.board or None)
    app = MLPERF_APP if image.has(SERVES) else CALIBRATION_APP if image.has(MICRO_PROGRAMS) else LINK_APP
    job = given.job(platform=platform or stated.platform or PLATFORMS[0], arena=arena, app=app)
    with progress(quiet=quiet) as say:
        results = verify(image, networks, job, project=project, code=not no_code, progress=say)
    for network, result in zip(networks, results.models, strict=True):
        if len(networks) > 1:
            echo(f"{network.name}:")
        for name, expected in result.expected.items():
            found = getattr(result.found, name)
            echo(f"{name:8} {found} {'equal' if found == expected else f'DIFFERENT: expected {expected}'}")
        _print(result.tables)
    for check in results.checks:
        _print(check)
    count = len(read_identities(image))
    if count != len(networks):
        echo(f"the firmware has {count} models, compared with {len(networks)}: name all, in their order")
    texts = (stated.platform, stated.board, stated.compiler, stated.flags)
    echo(f"built for {' on '.join(filter(None, texts[:2])) or '?'} by {' '.join(filter(None, texts[2:])) or '?'}")
    codes = {State.EQUAL: 0, State.DIFFERENT: EXIT_DIFFERENT, State.NOT_CHECKED: EXIT_NOTHING_COMPARED}
    return codes[results.state]


def _print(check: Check) -> None:
    echo(f"{check.name:8} {check.state}: {check.text}")
