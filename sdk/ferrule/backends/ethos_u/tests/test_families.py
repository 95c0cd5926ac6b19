# SPDX-License-Identifier: Apache-2.0
"""The shared test families for EthosU on the host."""

from __future__ import annotations

import pytest

from ferrule._typing import override
from ferrule.testing.backends import BackendFamily, Subject


class TestEthosU(BackendFamily):
    @override
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="EthosU")
