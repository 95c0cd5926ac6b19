# SPDX-License-Identifier: Apache-2.0
"""Base classes of the families: the backend under test, and a runtime with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ferrule.backends.backend import Backend
from ferrule.testing.backends.subject import Subject, SubjectRuntime


class SubjectFamily:
    """Tests of a backend; a subclass defines the fixture `subject` and has a name that pytest collects."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        """Return the backend under test."""
        pytest.fail("define the fixture 'subject' (scope class, a class method), which returns a Subject")


class Family(SubjectFamily):
    """Tests of one interface of a backend's host face."""

    @pytest.fixture(scope="class")
    @classmethod
    def runtime(cls, subject: Subject) -> Iterator[SubjectRuntime]:
        """Yield one runtime for all tests of the class."""
        with subject.runtime() as made:
            yield made

    @pytest.fixture
    def backend(self, runtime: SubjectRuntime) -> Backend:
        """Return a new object of the backend."""
        return runtime.backend()
