# SPDX-License-Identifier: Apache-2.0
"""`ferrule inspect`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ferrule.cli.console import console
from ferrule.cli.options import division_options, make_division, model_argument
from ferrule.errors import FerruleError


@click.command("inspect")
@model_argument
@click.option("--plan", "show_plan", is_flag=True, help="Draw where each tensor lies in the arena, and when.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@division_options(None)
def command(
    model: Path,
    show_plan: bool,
    as_json: bool,
    backends: str | None,
    hints: tuple[str, ...],
    devices: tuple[str, ...],
    config: Path | None,
) -> None:
    """Show the layers of MODEL (.tflite): shapes, quantisation, MACs, weights, and the arena that they need.

    With --backends, also who takes each layer and why the others don't.
    """
    from ferrule import facade
    from ferrule.report.inspection import inspect_network

    network = facade.load(model)
    inspection = inspect_network(network)
    if backends is not None:
        from ferrule.facade.explaining import explain_division

        division = explain_division(network, make_division(backends, hints, devices, config))
        inspection = replace(inspection, division=division)
    elif hints or devices:
        raise FerruleError("--hint and --device are of no use without --backends")
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(inspection), indent=2).decode())
        return

    from ferrule.report.inspection_console import print_inspection

    print_inspection(inspection, console())
    if show_plan:
        from ferrule.memory import draw
        from ferrule.report.inspection import activation_plan

        planned = activation_plan(network)
        click.echo(draw(planned.plan, planned.requests))
