# SPDX-License-Identifier: Apache-2.0
"""UartWoofles on a board, in the form in which every backend is tested."""

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
