# SPDX-License-Identifier: Apache-2.0
"""`ferrule registers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli import completion
from ferrule.cli.console import echo, print_notes, print_rows
from ferrule.cli.options import BOARD, config_option
from ferrule.cli.parameters import PATH, collected, option, several
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.devices import Peripheral
    from ferrule.devices.description import Description

_NOTES = 20
"""Number of notes about a file that are printed."""


@click.command("registers")
@click.argument("source", metavar="FILE|BACKEND")
@several(
    "--peripheral",
    "NAME",
    "A peripheral of the file, or a device of the backend; can be repeated.  [default: all]",
    "names",
)
@several(
    "--prefer",
    "PATTERN",
    "Where registers of an SVD file overlap, read the first one with such a name, such as '*_Output'; can be repeated.",
)
@option(
    "--board",
    f"The board of the devices.  [default: that of ferrule.toml, else {BOARD}]",
    shell_complete=completion.boards,
)
@config_option
@collected(
    "outputs",
    dict,
    option("--svd", "Write the registers as CMSIS-SVD, for debuggers.", kind=PATH),
    option("--header", "Write the C header of one peripheral.", kind=PATH),
    option("--python", "Write the register table of one peripheral as Python.", kind=PATH),
    option("--markdown", "Write the registers as tables in Markdown.", kind=PATH),
)
def command(
    source: str,
    names: tuple[str, ...],
    prefer: tuple[str, ...],
    board: str | None,
    config: Path | None,
    outputs: dict[str, Path | None],
) -> None:
    """Show the registers of a device, or write them for debuggers, drivers, models and people.

    The source is an SVD file (.svd, .xml), a SystemRDL file (.rdl), or the id of a backend, whose devices are taken at
    their places on a board. docs/accelerators.md explains register tables.
    """
    from ferrule.cli.arrays import require_writable, save
    from ferrule.devices import c_header, documentation, svd_text
    from ferrule.devices.description import SUFFIXES, read_description

    wanted = {name: path for name, path in outputs.items() if path is not None}
    for name, path in wanted.items():
        require_writable(f"--{name}", path)
    device = source
    if source.lower().endswith(SUFFIXES):
        description = read_description(Path(source))
        device = description.device
        if not names and not wanted and len(description.names) != 1:
            _list(description, prefer)
            return
        peripherals = [description.peripheral(name, prefer=prefer) for name in names or description.names]
    else:
        if prefer:
            raise FerruleError("--prefer is only valid with an SVD file")
        device, peripherals = _of_backend(source, names, board, config)
    writers: dict[str, Callable[[], str]] = {
        "header": lambda: c_header(_only(peripherals, "--header").table),
        "python": lambda: _module(_only(peripherals, "--python")),
        "markdown": lambda: "\n".join(documentation(each.table) for each in peripherals),
        "svd": lambda: svd_text(peripherals, device=_identifier(Path(device).name or "device")),
    }
    texts = {wanted[name]: write() for name, write in writers.items() if name in wanted}
    for path, text in texts.items():
        save(path, text.encode())
        echo(f"{path}: {_count(peripherals)}")
    if not texts:
        _print(peripherals)
    print_notes([f"{each.name}.{note}" for each in peripherals for note in each.notes], _NOTES)


def _of_backend(
    source: str, names: Sequence[str], board: str | None, config: Path | None
) -> tuple[str, list[Peripheral]]:
    """Return a board and the devices of a backend on it."""
    from ferrule.backends import BackendId
    from ferrule.errors import unknown_name
    from ferrule.firmware import Job
    from ferrule.firmware.peripherals import device_peripherals
    from ferrule.running.configuration import read_configuration

    configuration = read_configuration(config)
    registry = configuration.registry()
    if source not in registry:
        error = unknown_name("backend", source, map(str, registry.ids()))
        raise FerruleError(f"{error}, and it is no file *.svd, *.xml or *.rdl", hint=error.hint)
    chosen = board or configuration.board or BOARD
    job = Job(board=chosen, registry=registry, devices=configuration.devices)
    found = {each.name: each for each in device_peripherals([BackendId(source)], job)}
    for name in names:
        if name not in found:
            raise unknown_name("device", name, found, where=f"of {source}")
    return chosen, [found[name] for name in names or found]


def _module(peripheral: Peripheral) -> str:
    """Return a module with the table of a peripheral."""
    from ferrule.devices.register_source import template_values
    from ferrule.firmware.template import render

    return render("new_model/registers.py.j2", package=peripheral.table.name, **template_values(peripheral))


def _only(peripherals: Sequence[Peripheral], option: str) -> Peripheral:
    tables = {each.table for each in peripherals}
    if len(tables) != 1:
        raise FerruleError(
            f"{option} writes the registers of one peripheral, not of {len(tables)}", hint="choose it with --peripheral"
        )
    return peripherals[0]


def _identifier(name: str) -> str:
    import re

    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{plain}" if plain[0].isdigit() else plain


def _count(peripherals: Sequence[Peripheral]) -> str:
    registers = sum(len(list(each.table)) for each in peripherals)
    fields = sum(len(register.fields) for each in peripherals for register in each.table)
    return f"{len(peripherals)} peripherals, {registers} registers, {fields} fields"


def _list(description: Description, prefer: Sequence[str]) -> None:
    from ferrule.report.sections import names, numbers

    rows = []
    for name in description.names:
        try:
            found = description.peripheral(name, prefer=prefer)
        except FerruleError as error:
            rows.append((name, "", "", f"cannot be read: {error}"))
            continue
        rows.append((name, f"0x{found.base:08x}", str(len(list(found.table))), found.table.doc))
    print_rows(("peripheral", *names("base"), *numbers("registers"), "what"), rows)


def _print(peripherals: Sequence[Peripheral]) -> None:
    from ferrule.report.sections import names, numbers

    for each in peripherals:
        rows = [
            (
                f"0x{register.offset:03x}",
                register.name,
                register.access.value + (", rc" if register.read_clears else ""),
                str(register.size_bits),
                f"{register.reset:#x}",
                ", ".join(field.name for field in register.fields),
                register.doc,
            )
            for register in each.table
        ]
        interrupts = "".join(f", interrupt {line.number}" for line in each.interrupts)
        title = f"{each.name} at 0x{each.base:08x}, {each.table.size_bytes} bytes{interrupts}"
        print_rows((*names("offset"), "register", "access", *numbers("bits", "reset"), "fields", "what"), rows, title)
