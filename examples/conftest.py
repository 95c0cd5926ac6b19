# SPDX-License-Identifier: Apache-2.0
"""What the repository's own runs of the examples add: a test on QEMU is skipped where QEMU is missing."""

from __future__ import annotations

import pytest
from needs import require_program


@pytest.fixture(autouse=True)
def _engine(request: pytest.FixtureRequest) -> None:
    if "ferrule_board" in request.fixturenames and request.getfixturevalue("ferrule_board").engine == "qemu":
        require_program("qemu-system-arm", "apt-get install qemu-system-arm")
