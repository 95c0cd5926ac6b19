# SPDX-License-Identifier: Apache-2.0
"""Programs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any


class ExportedProgram:
    """A program: what its file says of it."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts


def load(path: Path) -> ExportedProgram:
    """Return the program in a file."""
    with zipfile.ZipFile(path) as archive:
        facts = json.loads(archive.read("net/models/model.json"))
        return ExportedProgram({**facts, "onnx": archive.read("net/model.onnx")})
