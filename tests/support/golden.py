# SPDX-License-Identifier: Apache-2.0
"""Texts compared with golden files; `pytest --update-golden` rewrites the files."""

from __future__ import annotations

from pathlib import Path

import pytest


class Golden:
    """The golden files beside one test module."""

    def __init__(self, folder: Path, *, update: bool) -> None:
        self._folder = folder
        self._update = update

    def check(self, name: str, text: str) -> None:
        """Compare a text with a file in the folder `golden`, or write that file when updating."""
        path = self._folder / name
        if self._update:
            self._folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if not path.is_file():
            pytest.fail(f"{path} does not exist; write it with pytest --update-golden and look at it")
        assert text == path.read_text(encoding="utf-8"), f"{name} differs; if it should, run pytest --update-golden"
