# SPDX-License-Identifier: Apache-2.0
"""The version that a program prints, on either output stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.firmware.probe import _printed


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo tool 1.2; echo more", "tool 1.2"),
        ("echo tool 1.2 >&2; echo more >&2", "tool 1.2"),
        ("echo tool 1.2; echo a warning >&2", "tool 1.2"),
        ("echo; echo '  tool 1.2'; exit 3", "tool 1.2"),
        ("test $1 = --version && echo tool 1.2", "tool 1.2"),
        ("exit 0", None),
        (r"printf '\377'", "\ufffd"),
    ],
)
def test_the_first_line_that_a_program_prints(tmp_path: Path, script: str, version: str | None) -> None:
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    assert _printed((str(tool), "--version"), check=False) == version


def test_what_is_no_program_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("")
    assert _printed((str(tmp_path / "tool"), "--version")) is None
