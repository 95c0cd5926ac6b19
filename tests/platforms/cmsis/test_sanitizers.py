# SPDX-License-Identifier: Apache-2.0
"""The tests beside this one, with sanitizers in the C."""

from __future__ import annotations

from pathlib import Path

import pytest
from needs import require_module, require_sanitizers

from ferrule.testing.sanitizers import run_sanitized

FOLDER = Path(__file__).parent


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["test_adapter.py", "test_usart.py", "test_cmsdk_driver.py"])
def test_nothing_is_undefined(name: str) -> None:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_sanitizers("address", "undefined")
    assert " passed" in run_sanitized(FOLDER / name)


@pytest.mark.cc
@pytest.mark.nightly
def test_threads_do_not_race() -> None:
    """Two threads contend for a device under the thread sanitizer."""
    require_module("cffi", "pip install 'ferrule[run]'")
    require_sanitizers("thread")
    run_sanitized([str(FOLDER / "test_adapter.py"), "-k", "threads or waiting"], sanitizers=["thread"])
