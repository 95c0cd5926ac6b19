# SPDX-License-Identifier: Apache-2.0
"""Makes the folder's package importable, wherever the folder is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.backends import BackendRegistry, read_manifest, registry_with

FOLDER = Path(__file__).parents[1]
read_manifest(FOLDER).load()


@pytest.fixture
def registry() -> BackendRegistry:
    """A registry with all backends, including this one."""
    from ferrule.backends import default_registry

    return default_registry().scope() if "MyCustom" in default_registry() else registry_with([FOLDER])
