# SPDX-License-Identifier: Apache-2.0
"""`ferrule doctor`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import console, print_json
from ferrule.cli.options import json_option
from ferrule.cli.variables import VariableStatus, variable_statuses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ferrule.firmware.probe import ToolStatus

_STATES = {
    (True, True): "[green]found[/]",
    (True, False): "[red]broken[/]",
    (False, False): "[yellow]missing[/]",
}
"""By whether a tool was found, and whether it works."""


def _brief(version: str) -> str:
    """Return the number in a tool's version text and the square brackets at its end, if any."""
    found = re.search(r"\d+\.\d+[\w.+-]*", re.sub(r"\([^)]*\)", "", version))
    kind = re.search(r" \[[^\[\]]+\]$", version)
    return (found.group() if found else version) + (kind.group() if found and kind else "")


def _with_flavour(tool: ToolStatus) -> ToolStatus:
    """Return Renode's status with its flavour (such as `portable`) added, and that of other tools unchanged."""
    from ferrule.emulation.renode.install import flavour

    if tool.name != "renode" or tool.path is None:
        return tool
    return replace(tool, version=f"{tool.version or 'unknown version'} [{flavour(Path(tool.path).resolve())}]")


def tool_versions() -> list[str]:
    """Return one line, "name version", for each tool found, without OpenCL."""
    from ferrule.firmware import probe_tools

    tools = [_with_flavour(tool) for tool in probe_tools(opencl=False)]
    return [f"{tool.name} {_brief(tool.version or 'of unknown version')}" for tool in tools if tool.found]


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """List the tools that Ferrule can use and the environment variables that it reads.

    Each tool that is found is tried on a small task: a broken one is reported with what it said. Missing and broken
    tools are no errors here: a command that needs them reports that.
    """
    from ferrule.acl.toolchain import probe_acl
    from ferrule.firmware import probe_platforms, probe_tools
    from ferrule.firmware.trial import tried

    tools = [_with_flavour(tool) for tool in tried(probe_tools())]
    known = {tool.name for tool in tools}
    tools += [*(tool for tool in probe_platforms() if tool.name not in known), *probe_acl()]
    variables = variable_statuses()
    if as_json:
        print_json({"schema_version": 1, "tools": tools, "variables": variables})
        return
    _print_tools(tools)
    _print_variables(variables)


def _print_tools(tools: Sequence[ToolStatus]) -> None:
    from rich.markup import escape

    from ferrule.report.tables import print_table

    rows = [
        (
            tool.name,
            _STATES[tool.found, tool.works],
            escape(_brief(tool.version or "")),
            escape(tool.purpose),
            "" if tool.works else escape("; ".join(filter(None, (tool.problem, tool.remedy)))),
        )
        for tool in tools
    ]
    print_table(console(), ("tool", "state", "version", "what for", "how to get it"), rows, whole=("tool", "state"))


def _print_variables(variables: Sequence[VariableStatus]) -> None:
    from rich.markup import escape

    from ferrule.report.tables import print_table

    rows = [
        (
            variable.name,
            "" if variable.value is None else escape(variable.value) or "(empty)",
            escape(variable.reader),
            f"[red]{escape(variable.problem)}[/]" if variable.problem else "",
        )
        for variable in variables
    ]
    print_table(console(), ("variable", "value", "read by", "problem"), rows, whole=("variable",))
