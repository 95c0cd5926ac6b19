# SPDX-License-Identifier: Apache-2.0
"""Renders the templates of a project's files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

COLUMNS = 100
"""Line length of the generated C, as in .clang-format."""
_FOLDER = Path(__file__).parent / "templates"


def render(template: str, **values: object) -> str:
    """Return a template with its values filled in; a missing value is a bug in Ferrule."""
    return _environment().get_template(template).render(values)


def render_folder(folder: str, **values: object) -> dict[str, str]:
    """Return the rendered templates of a folder by relative path without `.j2`."""
    top = _FOLDER / folder
    return {
        path.relative_to(top).with_suffix("").as_posix(): render(path.relative_to(_FOLDER).as_posix(), **values)
        for path in sorted(top.rglob("*.j2"))
    }


def c_call(head: str, *arguments: str) -> str:
    """Return a C call, broken into lines as by clang-format; `head` is the text before the opening parenthesis."""
    lines, column = [f"{head}("], len(head) + 1
    for number, argument in enumerate(arguments, start=1):
        text = argument + (")" if number == len(arguments) else ",")
        room = COLUMNS - (1 if number == len(arguments) else 0)  # a semicolon follows
        if number > 1 and len(lines[-1]) + 1 + len(text) > room:
            lines.append(" " * column + text)
        else:
            lines[-1] += text if number == 1 else f" {text}"
    return "\n".join(lines)


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=False,  # noqa: S701 the output is C, make, Markdown or a linker script, never HTML
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["c_call"] = c_call
    return environment
