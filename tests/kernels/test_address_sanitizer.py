# SPDX-License-Identifier: Apache-2.0
"""The tests of kernels called without generated C, under the address sanitizer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from children import ran
from lowered_call import address_sanitizer_environment

FOLDER = Path(__file__).parent


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("module", ["test_elementwise.py", "test_movement.py", "test_onnx_layers.py"])
def test_no_kernel_leaves_its_tensors(module: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / module)]
    done = ran(command, env=address_sanitizer_environment(), timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
