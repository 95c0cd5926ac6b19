# SPDX-License-Identifier: Apache-2.0
"""A project folder is written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.errors import FerruleError
from ferrule.firmware.folder import create_folder


def test_a_folder_that_cannot_be_filled_leaves_nothing(tmp_path: Path) -> None:
    names = {"first.c": b"1", "first.c/below": b"2"}  # a file cannot be a folder
    with pytest.raises(FerruleError, match="project cannot be written: "):
        create_folder(tmp_path / "project", names)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes

    def interrupt(path: Path, data: bytes) -> int:
        if path.name == "second.c":
            raise KeyboardInterrupt
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        create_folder(tmp_path / "project", {"first.c": b"1", "second.c": b"2"})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_filled_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    create_folder(tmp_path / "project", {"first.c": b"1", "below/second.c": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["project"]
    assert (tmp_path / "project" / "below" / "second.c").read_bytes() == b"2"
