# SPDX-License-Identifier: Apache-2.0
"""The test families of ferrule.testing.backends, run on each build of a shared object with every table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferrule.testing.backends import BackendFamily, Subject

pytestmark = pytest.mark.cc


def built(folder: Path, compile_backend: Callable[..., Path], *defines: str) -> Subject:
    compile_backend(folder, *defines, name="Test_Full", source="full.c")
    return Subject.dynamic("Full", folder)


class TestPlain(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, tmp_path_factory: pytest.TempPathFactory, compile_backend: Callable[..., Path]) -> Subject:
        return built(tmp_path_factory.mktemp("plain"), compile_backend)


@pytest.mark.nightly
class TestIsolated(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, tmp_path_factory: pytest.TempPathFactory, compile_backend: Callable[..., Path]) -> Subject:
        folder = tmp_path_factory.mktemp("isolated")
        compile_backend(folder, "OWN_HANDLES", "OWN_MEMORY", "ASYNC", name="Test_Full", source="full.c")
        return Subject.dynamic("Full", folder, isolate=True)


@pytest.mark.nightly
class TestOwnHandles(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, tmp_path_factory: pytest.TempPathFactory, compile_backend: Callable[..., Path]) -> Subject:
        return built(tmp_path_factory.mktemp("own_handles"), compile_backend, "OWN_HANDLES")


class TestAsynchronousWithOwnMemory(BackendFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, tmp_path_factory: pytest.TempPathFactory, compile_backend: Callable[..., Path]) -> Subject:
        return built(tmp_path_factory.mktemp("asynchronous"), compile_backend, "OWN_HANDLES", "OWN_MEMORY", "ASYNC")
