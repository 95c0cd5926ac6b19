# SPDX-License-Identifier: Apache-2.0
"""`ferrule build`."""

from __future__ import annotations

from pathlib import Path

import click

from ferrule.cli.console import echo
from ferrule.cli.options import OPTIMIZATIONS, quiet_option
from ferrule.cli.parameters import FOLDER, option
from ferrule.cli.progress import progress


@click.command("build")
@click.argument("project", type=FOLDER)
@option("--toolchain", "The compiler; by default the one that the project was generated for.")
@option("-O --optimization", "The compiler's optimization level; by default the project's.", kind=OPTIMIZATIONS)
@quiet_option
def command(project: Path, toolchain: str | None, optimization: str | None, quiet: bool) -> None:
    """Build the generated project in the folder PROJECT; print its path, sizes and bound of the stack."""
    from ferrule.firmware import Group, build_project, load_project

    loaded = load_project(project)
    with progress(quiet=quiet) as say:
        image = build_project(loaded, toolchain_name=toolchain, optimization=optimization, progress=say)
    if not quiet:
        sizes = ", ".join(f"{group} {image.groups[group]:,}" for group in Group if image.groups[group])
        echo(f"{image.path}: {sizes} B")
        bound = image.stack
        if bound.size_bytes is None:
            echo(f"stack: no bound is known: {bound.reason}")
        else:
            reserved = image.address_of("ferrule_stack_top") - image.address_of("ferrule_stack_limit")
            echo(f"stack: at most {bound.size_bytes:,} of {reserved:,} B")
