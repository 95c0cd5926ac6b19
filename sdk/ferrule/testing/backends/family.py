# SPDX-License-Identifier: Apache-2.0
"""What all families have: the tested backend, and a runtime with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ferrule.backends.backend import Backend
from ferrule.runtime import Runtime
from ferrule.testing.backends.subject import Subject, backend_of


class SubjectFamily:
    """Tests of a backend; a subclass has the fixture `subject`, and a name that pytest looks for."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        """The backend to be tested."""
        pytest.fail("define the fixture 'subject' (scope class, a class method), which returns a Subject")


class Family(SubjectFamily):
    """Tests of one interface of a backend's host face."""

    @pytest.fixture(scope="class")
    @classmethod
    def runtime(cls, subject: Subject) -> Iterator[Runtime]:
        """A runtime for all tests of the class."""
        with subject.runtime() as made:
            yield made

    @pytest.fixture
    def backend(self, subject: Subject, runtime: Runtime) -> Backend:
        """A new object of the backend."""
        return backend_of(runtime, subject)
