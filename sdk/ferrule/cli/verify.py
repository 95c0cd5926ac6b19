# SPDX-License-Identifier: Apache-2.0
"""`ferrule verify`."""

from __future__ import annotations

from pathlib import Path

import click

from ferrule.cli.console import echo
from ferrule.cli.main import EXIT_DIFFERENT
from ferrule.cli.options import (
    PLATFORMS,
    JobOptions,
    arena_option,
    division_options,
    models_argument,
    names_option,
)
from ferrule.cli.reading import ReadingOptions, reading_options


@click.command("verify", short_help="Compare the digests in a firmware with those of a model.")
@click.argument("elf", type=click.Path(dir_okay=False, path_type=Path))
@models_argument
@names_option()
@arena_option
@reading_options
@division_options(None)
@click.option("--platform", type=click.Choice(PLATFORMS), help="The platform; by default the one the firmware states.")
def command(
    elf: Path,
    models: tuple[Path, ...],
    names: tuple[str, ...],
    arena: str,
    options: JobOptions,
    platform: str | None,
    reading: ReadingOptions,
) -> int:
    """Compare the digests that the firmware ELF carries with those of a firmware generated from MODEL.

    Of a firmware with several models, give all, in the order in which they were generated.

    The options must be those that the firmware was generated with; board and platform are by default those that the
    firmware states, and --backends is by default CpuAcc. The digests are of the model, of the plan (the division of the
    layers, their order, the places in memory), and of the sources (all C but the files that users may edit, and the
    linker script). Exit code: 0 if all are equal, 1 if one differs, 2 for an error.
    """
    from dataclasses import replace

    from ferrule.firmware.identification import read_identities, read_identity, verify
    from ferrule.firmware.image import read_image
    from ferrule.firmware.mlperf_tiny import LINK_APP, MLPERF_APP, SERVES

    image = read_image(elf)
    networks = reading.load(models, names)
    stated = read_identity(image, networks[0])
    given = replace(options, backends=options.backends or "CpuAcc", board=options.board or stated.board or None)
    app = MLPERF_APP if image.has(SERVES) else LINK_APP
    job = given.job(platform=platform or stated.platform or PLATFORMS[0], arena=arena, app=app)
    results = verify(image, networks, job)
    for network, result in zip(networks, results, strict=True):
        if len(networks) > 1:
            echo(f"{network.name}:")
        for name, expected in result.expected.items():
            found = getattr(result.found, name)
            echo(f"{name:8} {found} {'equal' if found == expected else f'DIFFERENT: expected {expected}'}")
    count = len(read_identities(image))
    if count != len(networks):
        echo(f"the firmware has {count} models, compared with {len(networks)}: name all, in their order")
    texts = (stated.platform, stated.board, stated.compiler, stated.flags)
    echo(f"built for {' on '.join(filter(None, texts[:2])) or '?'} by {' '.join(filter(None, texts[2:])) or '?'}")
    return EXIT_DIFFERENT if any(result.different for result in results) else 0
