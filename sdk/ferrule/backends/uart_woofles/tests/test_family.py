# SPDX-License-Identifier: Apache-2.0
"""The shared test families for UartWoofles on a board."""

from __future__ import annotations

import pytest

from ferrule._typing import override
from ferrule.testing.backends import FirmwareFamily, Subject


class TestUartWoofles(FirmwareFamily):
    @override
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="UartWoofles")
