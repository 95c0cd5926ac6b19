# SPDX-License-Identifier: Apache-2.0
"""`ferrule backends`."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from ferrule.cli.console import console, print_json
from ferrule.cli.options import config_option, dynamic_options, json_option
from ferrule.cli.parameters import flag


@click.command("backends")
@click.argument("names", nargs=-1, metavar="[BACKEND]...")
@dynamic_options
@config_option
@flag("--memory", "List the tensor handle factories instead: the memory that they map, import and export.")
@json_option
def command(
    names: tuple[str, ...],
    dynamic_path: Path | None,
    isolate: bool,
    config: Path | None,
    memory: bool,
    as_json: bool,
) -> None:
    """List the backends: origin, where each runs (host, firmware), devices, capabilities and options.

    A backend that cannot be used here is listed with the reason, and so is each file refused as a dynamic backend.
    The backends of a ferrule.toml in the current folder are code: they are tried only if they are named as BACKEND.
    With --memory, the table shows the memory that each maps, imports and exports. With names, only these backends are
    listed. docs/backends.md explains how to write a backend.
    """
    from ferrule.report.backend_listing import list_backends
    from ferrule.running.configuration import read_configuration

    logging.getLogger("ferrule").addHandler(logging.NullHandler())  # the listing contains what the log would
    configuration = read_configuration(config)
    registry = configuration.listed_registry(names)
    listing = list_backends(registry, configuration.devices, dynamic_path, names, isolate=isolate)
    if as_json:
        print_json(listing)
        return

    from ferrule.report.console import print_section

    print_section(listing.memory() if memory else listing.sections(), console())
