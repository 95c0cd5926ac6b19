# SPDX-License-Identifier: Apache-2.0
"""`ferrule init`: creates folders in which everything works from the first minute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule._frozen import positional
from ferrule.cli import completion
from ferrule.cli.console import echo
from ferrule.cli.parameters import PATH, option
from ferrule.errors import FerruleError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = re.compile(r"[A-Za-z0-9]+")
_IGNORED = "__pycache__/\n.pytest_cache/\nfirmware/build/\n"


@positional
class _Template:
    text: str
    """What the folder is for."""
    board: str
    """The board, unless the user names another one."""
    elf: str = "firmware/build/firmware.elf"
    options: tuple[str, ...] = ()
    """Options of `ferrule run` and `ferrule generate` in the tasks of the editor."""


TEMPLATES = {
    "model": _Template("a model on a board: run, test, debug, and the firmware as a project", "mps2-an386"),
    "zephyr": _Template(
        "a model in a Zephyr application",
        "mps2-an385",
        elf="firmware/build/zephyr/zephyr.elf",
        options=("--platform", "zephyr"),
    ),
    "accelerator": _Template(
        "an accelerator of your own: registers, model, driver, backend and their tests", "mps2-an386"
    ),
    "npu": _Template("an NPU of your own with a ring of commands, a compiler and both faces", "mps2-an386"),
}
WITH_BACKEND = ("accelerator", "npu")
"""The templates with a backend, whose id a user may choose."""


@click.command("init")
@click.argument("template", required=False)
@click.argument("folder", required=False, type=PATH)
@option("--board", "The board.  [default: mps2-an386, for zephyr mps2-an385]", shell_complete=completion.boards)
@option(
    "--id", "accelerator, npu: the id of its backend, such as AcmeNpu; by default from the folder's name.", "backend"
)
def command(template: str | None, folder: Path | None, board: str | None, backend: str | None) -> None:
    """Create the FOLDER of a project from a TEMPLATE; without arguments, list the templates.

    Its README.md has the first steps. It has tasks and a debugger's configuration for VS Code. Nothing is overwritten:
    the folder must be new or empty.
    """
    from ferrule.firmware.folder import create_folder

    if template is None:
        width = max(map(len, TEMPLATES))
        for name, each in TEMPLATES.items():
            echo(f"{name:<{width}}  {each.text}")
        echo("ferrule init TEMPLATE FOLDER creates one")
        return
    if template not in TEMPLATES:
        raise unknown_name("template", template, TEMPLATES)
    if folder is None:
        raise FerruleError(
            f"ferrule init {template} lacks the folder to create", hint=f"ferrule init {template} my-{template}"
        )
    if backend is not None and template not in WITH_BACKEND:
        raise FerruleError(f"--id is only valid with the templates {' and '.join(WITH_BACKEND)}")
    chosen = TEMPLATES[template]
    files = _files(template, folder, board or chosen.board, backend)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FerruleError(
            f"{folder} exists and is not an empty folder", hint="nothing is overwritten: choose another folder"
        )
    create_folder(folder, files)
    echo(f"{folder}: {template}, {len(files)} files; {folder / 'README.md'} has the first steps")


def _files(template: str, folder: Path, board: str, backend: str | None) -> dict[str, bytes]:
    """Return the files of a project by path."""
    from ferrule.boards import load_board
    from ferrule.firmware.template import render_folder

    load_board(board)
    if Path(board).is_dir():
        board = str(Path(board).resolve())
    chosen = TEMPLATES[template]
    title = folder.resolve().name
    values: dict[str, object] = {
        "title": title,
        "board": board,
        "options": chosen.options,
        "elf": chosen.elf,
        "tests": "tests",
    }
    package = ""
    if template in WITH_BACKEND:
        package, more = _backend(title, backend)
        values |= more
    rendered = render_folder(f"init_{template}", **values)
    editor = render_folder("init_vscode", **values)
    texts = {
        **{path.replace("NAME", package): text for path, text in rendered.items()},
        **{f".vscode/{path}": text for path, text in editor.items()},
        ".gitignore": _IGNORED,
    }
    return {path: text.encode() for path, text in texts.items()}


def _backend(title: str, backend: str | None) -> tuple[str, Mapping[str, object]]:
    """Return the name of a backend's package, and the values of its templates."""
    from ferrule.backends.version import INTERFACE_VERSION
    from ferrule.cli.new import package_name
    from ferrule.rendering.c_text import c_name

    chosen = backend or "".join(word[0].upper() + word[1:] for word in _WORD.findall(title))
    try:
        package = c_name(package_name(chosen))
    except FerruleError as error:
        if backend is None:
            error.hint = f"choose an id: --id AcmeNpu ({error.hint})"
        raise
    options = ("--backends", f"{chosen},CpuAcc")
    return package, {
        "id": chosen,
        "package": package,
        "upper": package.upper(),
        "options": options,
        "tests": package,
        "api": str(INTERFACE_VERSION),
    }
