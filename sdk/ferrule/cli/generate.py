# SPDX-License-Identifier: Apache-2.0
"""`ferrule generate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import echo
from ferrule.cli.options import PLATFORMS, JobOptions, job_options, model_argument

if TYPE_CHECKING:
    from ferrule.firmware import Kept


@click.command("generate")
@model_argument
@job_options
@click.option(
    "--platform",
    type=click.Choice(PLATFORMS),
    default=PLATFORMS[0],
    show_default=True,
    help="The platform of the project: bare metal or an RTOS.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace generated files even if you have edited them; your version is kept as NAME.orig.",
)
@click.option(
    "--emit-renode",
    "renode",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also write a platform description (.repl), a script (.resc) and a Robot test to this folder, which run the "
    "project with Renode alone.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The project's folder.")
def command(
    model: Path,
    options: JobOptions,
    platform: str,
    force: bool,
    renode: Path | None,
    out: Path,
) -> None:
    """Write a self-contained firmware project for MODEL (.tflite).

    A folder that already contains such a project is updated, except for files meant for editing, such as main.c, that
    you have changed. Any other folder that is not empty is refused.
    """
    from ferrule import facade

    project = facade.generate(model, options.job(platform=platform, out=out), force=force, renode=renode)
    echo(f"{project.folder}: {len(project.manifest.files)} files; build it with: {project.build_hint}")
    if renode is not None:
        echo(f"{renode}: after the build, run it with: renode {renode / 'ferrule.resc'}")
    for note in project.notes:
        echo(f"note: {note}")
    for kept in project.kept:
        echo(_kept(kept))


def _kept(kept: Kept) -> str:
    if kept.beside is None:
        return f"{kept.name}: edited by you, left unchanged"
    if kept.beside.startswith(f"{kept.name}.orig"):
        return f"{kept.name}: edited by you, renamed to {kept.beside}"
    return f"{kept.name}: edited by you, left unchanged; {kept.beside} has the newly generated contents"
