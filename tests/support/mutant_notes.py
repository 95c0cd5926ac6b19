# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that notes the test that runs, for tests/mutants.py: a test may end or hang the whole process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

STARTED = "FERRULE_MUTANTS_STARTED"
"""The environment variable with the file for the note."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid: str) -> None:
    """Note the test that starts."""
    Path(os.environ[STARTED]).write_text(nodeid, encoding="utf-8")
