# SPDX-License-Identifier: Apache-2.0
"""The table of docs/memory_between_backends.md is what the tensor handle factories state."""

from __future__ import annotations

import re
from pathlib import Path

from gpu_face import require_opencl

from ferrule.backends.registry import default_registry
from ferrule.report.backend_listing import list_backends

DOCUMENT = Path(__file__).parents[2] / "docs" / "memory_between_backends.md"


def test_the_table_is_that_of_the_factories() -> None:
    require_opencl()
    listing = list_backends(default_registry())
    stated = [row for backend in listing.backends if backend.origin == "shipped" for row in backend.memory_rows()]
    section = DOCUMENT.read_text(encoding="utf-8").partition("## What each backend supports")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    shown = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]]
    assert shown == [tuple(re.sub(r" at \d+ B", "", cell) for cell in row) for row in stated]
