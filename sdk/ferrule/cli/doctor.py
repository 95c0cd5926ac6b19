# SPDX-License-Identifier: Apache-2.0
"""`ferrule doctor`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import print_json, print_rows
from ferrule.cli.options import json_option
from ferrule.cli.variables import VariableStatus, variable_statuses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ferrule.firmware.probe import ToolStatus


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
    from ferrule.report.sections import Cell, State, names

    states = {
        (True, True): Cell("found", State.GOOD),
        (True, False): Cell("broken", State.BAD),
        (False, False): Cell("missing", State.WARN),
    }
    rows = [
        (
            tool.name,
            states[tool.found, tool.works],
            _brief(tool.version or ""),
            tool.purpose,
            "" if tool.works else "; ".join(filter(None, (tool.problem, tool.remedy))),
        )
        for tool in tools
    ]
    print_rows((*names("tool", "state"), "version", "what for", "how to get it"), rows)


def _print_variables(variables: Sequence[VariableStatus]) -> None:
    from ferrule.report.sections import Cell, State, names

    rows = [
        (
            variable.name,
            "" if variable.value is None else variable.value or "(empty)",
            variable.reader,
            Cell(variable.problem, State.BAD) if variable.problem else "",
        )
        for variable in variables
    ]
    print_rows((*names("variable"), "value", "read by", "problem"), rows)
