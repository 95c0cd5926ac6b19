# SPDX-License-Identifier: Apache-2.0
"""The templates of a project's files."""

from __future__ import annotations

from pathlib import Path

from ferrule.rendering import Templates

_TEMPLATES = Templates(Path(__file__).parent / "templates")

render = _TEMPLATES.render
render_folder = _TEMPLATES.render_folder
