# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin for tests/mutants.py that notes the running test, since a test may end or hang the process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

STARTED = "FERRULE_MUTANTS_STARTED"
"""The environment variable that names the file for the note."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid: str) -> None:
    """Write the name of the starting test to the file."""
    Path(os.environ[STARTED]).write_text(nodeid, encoding="utf-8")
