# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin for tests/mutants.py.

It notes the running test, which may end or hang the process, and runs cheap tests first, by the marks of lanes.py.
"""

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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the fast tests first and the slow ones last; otherwise the order stays."""
    items.sort(key=lambda item: 0 if "fast" in item.keywords else 2 if "slow" in item.keywords else 1)
