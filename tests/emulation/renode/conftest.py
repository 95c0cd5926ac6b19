# SPDX-License-Identifier: Apache-2.0
"""A Renode that runs firmware: the real one if RENODE points to it, otherwise a stand-in."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import fake_renode
import pytest
from needs import require_module
from renode_install import renode_program


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in for Renode, regardless of RENODE."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    program = tmp_path / "renode"
    command = f"{shlex.quote(sys.executable)} {shlex.quote(fake_renode.__file__)}"
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("RENODE", str(program))
    return program


@pytest.fixture
def renode(request: pytest.FixtureRequest) -> Path:
    """The real Renode, or the stand-in if there is none."""
    program = renode_program()
    if program is None or os.environ.get("FERRULE_FAKE_RENODE") == "1":
        program = Path(request.getfixturevalue("stand_in"))
    return program
