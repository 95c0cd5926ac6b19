# SPDX-License-Identifier: Apache-2.0
"""The family of memory between backends, on shipped backends as they are and with fallback memory required."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gpu_face import require_opencl
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_backends import registry_of
from needs import require_cc, require_module

from ferrule.backends import Backend
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.gpu_acc import GpuAcc
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.woofles.backend import Woofles
from ferrule.graph import DataType
from ferrule.optimizer import OptimizerOptions
from ferrule.runtime import Runtime
from ferrule.testing.backends import FallbackFamily, Subject, check_network
from ferrule.testing.backends.fallback import shared_memory
from ferrule.testing.backends.partners import PartnerGpu, PartnerNpu
from ferrule.testing.backends.random_networks import random_network


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


class RequiringAcc(CpuAcc):
    """CpuAcc with the option for tests that it requires fallback memory."""

    fallback_memory_required = True


SHIPPED: tuple[type[Backend], ...] = (CpuRef, RequiringAcc, GpuAcc, Woofles, PartnerNpu)


@pytest.mark.nightly
@pytest.mark.cc
@settings(max_examples=60)
@given(data=st.data())
def test_any_division_over_shipped_backends(data: st.DataObject) -> None:
    require_opencl()
    require_cc()
    dtype = data.draw(st.sampled_from([DataType.INT8, DataType.INT16]))
    network = random_network(data.draw(st.integers(0, 10_000)), data.draw(st.integers(2, 9)), dtype)
    names = [str(backend.id) for backend in SHIPPED]
    options = OptimizerOptions(
        hints={layer.name: data.draw(st.sampled_from(names)) for layer in network.layers},
        import_enabled=True,
        export_enabled=data.draw(st.booleans()),
        simplify=False,
        fallback_transfers=dict.fromkeys(data.draw(st.sets(st.sampled_from(names), max_size=2)), "copy"),
    )
    before = shared_memory()
    with Runtime(registry=registry_of(*SHIPPED)) as runtime:
        check_network(runtime, network, [CpuRef.id], options)
    assert shared_memory() == before
