# SPDX-License-Identifier: Apache-2.0
"""`ferrule new`: creates working skeletons of backends, boards and device models."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import echo, print_notes
from ferrule.cli.parameters import FILE, PATH, option, several

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ferrule.boards import Board

_BACKEND_ID = re.compile(r"[A-Z][A-Za-z0-9]*")
_BOARD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PACKAGE = re.compile(r"[a-z_][a-z0-9_]*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[0-9]+")

out_option = option(
    "--out",
    "The folder in which to create the new one; by default the current folder.",
    kind=PATH,
    default=Path(),
    shown=False,
)


@click.group("new")
def command() -> None:
    """Create a working skeleton of a backend, a board or a device model, with a test that passes."""


@command.command("backend")
@click.argument("name")
@out_option
def backend(name: str, out: Path) -> None:
    """Create the folder of a backend with the id NAME, such as AcmeNpu.

    The backend runs MAXIMUM and MINIMUM on int8 tensors, on this machine and in firmware. docs/backends.md explains its
    files.
    """
    from ferrule.backends.version import INTERFACE_VERSION

    package = package_name(name)
    folder = out / package
    _write(folder, "new_backend", package, {"id": name, "package": package, "api": str(INTERFACE_VERSION)})
    echo(f"{folder}: backend {name}; test it with: pytest {folder}")
    echo(f'to use it, add to ferrule.toml: [backends] folders = ["{folder.as_posix()}"]')


@command.command("board")
@click.argument("name")
@option("--base", "The board on which the new one is based.", default="mps2-an386")
@out_option
def board(name: str, base: str, out: Path) -> None:
    """Create the folder of a board called NAME, such as my-board, based on another board.

    docs/boards.md explains its files and what to change in them.
    """
    from ferrule.boards import board_names, load_board
    from ferrule.boards.description import read_description
    from ferrule.emulation import engine
    from ferrule.errors import FerruleError

    if not _BOARD_NAME.fullmatch(name):
        raise FerruleError(f"'{name}' is not a valid board name", hint="use letters, digits, hyphens and underscores")
    if name in board_names():
        raise FerruleError(f"board '{name}' already exists", hint="choose another name; see: ferrule boards")
    old = load_board(base)
    described = read_description(old.folder / "board.toml")
    values = {
        "name": name,
        "title": f"{name}, based on {old.name}",
        "base": old.name,
        "base_platform": _included(old, out),
        "board": described,
        "energy": described.energy_table,
        "engine": "unicorn" if engine("unicorn").refuses(old) is None else "qemu",
    }
    folder = out / name
    _write(folder, "new_board", name, values)
    echo(f"{folder}: board {name}, based on {old.name}; test it with: pytest {folder}")
    echo(f"to use it: ferrule run MODEL.tflite --board {folder.absolute()}")


@command.command("model")
@click.argument("name", required=False)
@option("--svd", "An SVD file with the registers.", kind=FILE)
@option("--rdl", "A SystemRDL file with the registers.", kind=FILE)
@option("--peripheral", "The peripheral of the file; not needed if the file has only one.")
@several(
    "--prefer",
    "PATTERN",
    "Where registers of an SVD file overlap, read the first one with such a name; can be repeated.",
)
@out_option
def model(
    name: str | None, svd: Path | None, rdl: Path | None, peripheral: str | None, prefer: tuple[str, ...], out: Path
) -> None:
    """Create a device model from an SVD or SystemRDL file, in a folder called NAME, by default as the peripheral.

    It has the register table, a model that stores registers by the table's rules, and a C header for the driver.
    docs/accelerators.md explains how to add what the device does.
    """
    from ferrule.devices import read_rdl, read_svd
    from ferrule.devices.register_source import template_values
    from ferrule.errors import FerruleError
    from ferrule.rendering import one_line

    if (svd is None) is (rdl is None):
        raise FerruleError("expected one of --svd and --rdl")
    description = read_svd(svd) if svd is not None else read_rdl(rdl or Path())
    if peripheral is None:
        if len(description.names) != 1:
            raise FerruleError(
                f"{svd or rdl} has {len(description.names)} peripherals",
                hint=f"choose one: --peripheral {' or '.join(description.names[:5]) or 'NAME'}",
            )
        peripheral = description.names[0]
    found = description.peripheral(peripheral, prefer=prefer)
    package = (name or found.name).lower()
    _check_package(package, f"model '{name or found.name}'")
    words = [word for word in package.split("_") if word]
    values = {
        "package": package,
        "class_name": "".join(word[0].upper() + word[1:] for word in words) + "Model",
        **template_values(found),
    }
    _write(out / package, "new_model", package, values)
    echo(f"{out / package}: {len(list(found.table))} registers; test them with: pytest {out / package}")
    print_notes([one_line(note) for note in found.notes], 10, f", in {out / package / 'model.py'}")


def _check_package(package: str, what: str) -> None:
    """Raise FerruleError for a name that cannot be that of a new Python package."""
    from ferrule.errors import FerruleError

    if _PACKAGE.fullmatch(package) is None:
        raise FerruleError(f"{what} is not a valid name", hint="use letters, digits and underscores")
    if keyword.iskeyword(package) or importlib.util.find_spec(package) is not None:
        raise FerruleError(
            f"{what} would become the Python package '{package}', a name that is in use", hint="choose another name"
        )


def package_name(backend_id: str) -> str:
    """Return the name of the Python package for a backend's id: `acme_npu` for `AcmeNpu`.

    Raises:
        FerruleError: the id is malformed or in use, or Python already has a module of the package's name.
    """
    from ferrule.backends.registry import default_registry
    from ferrule.errors import FerruleError

    if not _BACKEND_ID.fullmatch(backend_id):
        raise FerruleError(
            f"'{backend_id}' is not a valid backend id",
            hint="use letters and digits, with a capital at the start of each word, such as AcmeNpu",
        )
    if backend_id in default_registry():
        raise FerruleError(f"backend '{backend_id}' already exists", hint="choose another id; see: ferrule backends")
    package = "_".join(_WORD.findall(backend_id)).lower()
    _check_package(package, f"backend '{backend_id}'")
    return package


def _included(base: Board, out: Path) -> str:
    """Return the path with which a board in the folder `out` includes the platform description of its base."""
    from ferrule.errors import FerruleError
    from ferrule.resources import root

    around = base.folder.parent
    if around not in {(root() / "boards").resolve(), out.resolve()}:
        raise FerruleError(
            f"a board in {out} cannot include the platform description of {base.name}, which lies in {around}",
            hint=f"create it beside its base: --out {around}",
        )
    return base.platform.resolve().relative_to(around).as_posix()


def _write(folder: Path, template: str, name: str, values: Mapping[str, object]) -> None:
    from ferrule.errors import FerruleError
    from ferrule.firmware.folder import create_folder
    from ferrule.firmware.template import render_folder

    if folder.exists():
        raise FerruleError(f"{folder} already exists", hint="choose another name or another folder (--out)")
    rendered = render_folder(template, **values)
    create_folder(folder, {path.replace("NAME", name): text.encode() for path, text in rendered.items()})
