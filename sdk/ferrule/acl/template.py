# SPDX-License-Identifier: Apache-2.0
"""The templates of the files around a generated class."""

from __future__ import annotations

from pathlib import Path

from ferrule.rendering import Templates

render = Templates(Path(__file__).parent / "templates").render
