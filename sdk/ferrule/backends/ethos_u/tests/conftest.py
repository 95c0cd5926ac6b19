# SPDX-License-Identifier: Apache-2.0
"""What the tests of EthosU need."""

from __future__ import annotations

from pathlib import Path

import pytest
from needs import require_module


@pytest.fixture(scope="session")
def ethos_u_vela() -> None:
    """Skip the test if Vela is not installed."""
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FERRULE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
