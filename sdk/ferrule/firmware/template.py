# SPDX-License-Identifier: Apache-2.0
"""The templates of a project's files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ferrule.rendering import Templates

_TEMPLATES = Templates(Path(__file__).parent / "templates")

render = _TEMPLATES.render
render_folder = _TEMPLATES.render_folder


def rendered(values: Mapping[str, object], templates: Mapping[str, str]) -> dict[str, bytes]:
    """Return files by name, each from its template with the same values."""
    return {name: render(template, **values).encode() for name, template in templates.items()}
