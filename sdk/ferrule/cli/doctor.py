# SPDX-License-Identifier: Apache-2.0
"""`ferrule doctor`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import console

if TYPE_CHECKING:
    from ferrule.firmware.probe import ToolStatus


def _brief(version: str) -> str:
    """Return the number in what a tool says of its version, and what stands in brackets at its end."""
    found = re.search(r"\d+\.\d+[\w.+-]*", re.sub(r"\([^)]*\)", "", version))
    kind = re.search(r" \[[^\[\]]+\]$", version)
    return (found.group() if found else version) + (kind.group() if found and kind else "")


def _with_flavour(tool: ToolStatus) -> ToolStatus:
    """Return Renode's status with what runs it; others as they are."""
    from ferrule.emulation.renode.install import flavour

    if tool.name != "renode" or tool.path is None:
        return tool
    return replace(tool, version=f"{tool.version or 'unknown version'} [{flavour(Path(tool.path).resolve())}]")


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Tell which tools are installed, which are missing, what each is for, and how to get it.

    Nothing that is missing is an error: each command says what it needs when it needs it.
    """
    from ferrule.firmware import probe_tools

    tools = [_with_flavour(tool) for tool in probe_tools()]
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(tools), indent=2).decode())
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for heading in ("tool", "state", "version", "what for", "how to get it"):
        table.add_column(heading)
    for tool in tools:
        state = "[green]found[/]" if tool.found else "[yellow]missing[/]"
        remedy = "" if tool.found else escape(tool.remedy)
        table.add_row(tool.name, state, escape(_brief(tool.version or "")), escape(tool.purpose), remedy)
    console().print(table)
