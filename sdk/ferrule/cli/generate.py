# SPDX-License-Identifier: Apache-2.0
"""`ferrule generate`."""

from __future__ import annotations

from pathlib import Path

import click

from ferrule.cli.options import make_division, model_argument, target_options


@click.command("generate")
@model_argument
@target_options
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write.")
def command(
    model: Path,
    board: str,
    toolchain: str,
    backends: str,
    hints: tuple[str, ...],
    devices: tuple[str, ...],
    config: Path | None,
    optimization: str,
    out: Path,
) -> None:
    """Write a firmware project for MODEL (.tflite) that builds on its own with make.

    A folder that holds such a project already is updated; any other folder that is not empty is refused.
    """
    from ferrule import facade

    division = make_division(backends, hints, devices, config)
    project = facade.generate(
        facade.load(model),
        board=board,
        toolchain=toolchain,
        backends=division.backends,
        hints=division.hints,
        devices=division.devices,
        registry=division.registry,
        optimization=optimization,
        out=out,
    )
    click.echo(f"{project.folder}: {len(project.manifest.files)} files; build it with: make -C {project.folder}")
