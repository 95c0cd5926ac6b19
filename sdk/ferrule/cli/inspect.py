# SPDX-License-Identifier: Apache-2.0
"""`ferrule inspect`."""

from __future__ import annotations

from pathlib import Path

import click

from ferrule.cli.console import console
from ferrule.cli.options import model_argument


@click.command("inspect")
@model_argument
@click.option("--plan", "show_plan", is_flag=True, help="Draw where each tensor lies in the arena, and when.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: Path, show_plan: bool, as_json: bool) -> None:
    """Show the layers of MODEL (.tflite): shapes, quantisation, MACs, weights, and the arena that they need."""
    from ferrule import facade
    from ferrule.report.inspection import inspect_network

    network = facade.load(model)
    inspection = inspect_network(network)
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
