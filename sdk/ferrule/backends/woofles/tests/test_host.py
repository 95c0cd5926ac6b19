# SPDX-License-Identifier: Apache-2.0
"""Woofles on the host, in the form in which every backend is tested."""

from __future__ import annotations

import pytest

from ferrule._typing import override
from ferrule.testing.backends import BackendFamily, Subject


class TestWoofles(BackendFamily):
    @override
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="Woofles")
