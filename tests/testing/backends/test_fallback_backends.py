# SPDX-License-Identifier: Apache-2.0
"""The family of memory between backends, on shipped backends as they are and with fallback memory required."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gpu_face import require_opencl
from needs import require_cc, require_module

from ferrule.backends import Backend
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.registry import BackendRegistry
from ferrule.testing.backends import FallbackFamily, Subject
from ferrule.testing.backends.partners import PartnerGpu, PartnerNpu


def only(backend: type[Backend], name: str) -> Callable[[], BackendRegistry]:
    """Return a function that registers one backend, under another name if it is a partner, too."""
    chosen = type(name, (backend,), {"id": name})

    def registry() -> BackendRegistry:
        found = BackendRegistry()
        found.register(chosen.id, chosen, origin="test")
        return found

    return registry


def requiring(backend: type[CpuRef | CpuAcc]) -> Callable[[], BackendRegistry]:
    """Return a function that registers a backend with the option for tests that it requires fallback memory."""
    return only(type(backend.__name__, (backend,), {"fallback_memory_required": True}), backend.__name__)


@pytest.mark.nightly
class TestCpuRef(FallbackFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="CpuRef")


class TestCpuRefRequiringIt(FallbackFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="CpuRef", registry=requiring(CpuRef))


@pytest.mark.cc
class TestCpuAccRequiringIt(FallbackFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        require_module("cffi", "pip install 'ferrule[run]'")
        require_cc()
        return Subject(id="CpuAcc", registry=requiring(CpuAcc))


class TestAnNpu(FallbackFamily):
    """Its handles import dma-bufs and are never mapped."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="Npu", registry=only(PartnerNpu, "Npu"))


@pytest.mark.nightly
class TestAGpu(FallbackFamily):
    """It works as late as possible."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="Gpu", registry=only(PartnerGpu, "Gpu"))


class TestGpuAcc(FallbackFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        require_opencl()
        return Subject(id="GpuAcc")


class TestWoofles(FallbackFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="Woofles")
