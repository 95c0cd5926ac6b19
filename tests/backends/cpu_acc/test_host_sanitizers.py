# SPDX-License-Identifier: Apache-2.0
"""The tests of all host kernels under sanitizers: no undefined behaviour, and no access outside the tensors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from children import ran
from host_library import sanitizer_environment

FOLDER = Path(__file__).parent


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("sanitizer", ["undefined", "address"])
@pytest.mark.parametrize("module", ["test_host_families.py", "test_host_shapes.py"])
def test_sanitizers_find_nothing(module: str, sanitizer: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / module)]
    done = ran(
        command,
        env=sanitizer_environment(sanitizer),
        timeout=600,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
