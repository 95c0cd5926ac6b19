# SPDX-License-Identifier: Apache-2.0
"""Renders the templates of the files that a project has besides its C code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

_FOLDER = Path(__file__).parent / "templates"


def render(template: str, **values: object) -> str:
    """Return a template with its values filled in; a missing value is an error of ours."""
    return _environment().get_template(template).render(values)


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
    environment.tests["match_optimization"] = lambda flag: re.fullmatch(r"-O\w+", flag) is not None
    return environment
