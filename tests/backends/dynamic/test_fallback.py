# SPDX-License-Identifier: Apache-2.0
"""Memory between backends in C and others: imported by reference, exported, and isolated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferrule.backends.shared.allocators import DmaBufAllocator, MallocAllocator
from ferrule.optimizer import EdgeStrategy
from ferrule.testing.backends import FallbackFamily, Subject, check_network
from ferrule.testing.backends.fallback import CountingAllocator, fan, shared_memory, some_link
from ferrule.testing.backends.partners import PARTNERS, PartnerCpu

pytestmark = pytest.mark.cc
Compile = Callable[..., Path]
EXPORT, IMPORT, COPY = EdgeStrategy.EXPORT, EdgeStrategy.FALLBACK_IMPORT, EdgeStrategy.COPY


def full(folder: Path, compile_backend: Compile, *defines: str) -> Subject:
    compile_backend(folder, "OWN_HANDLES", "BY_REF", "REQUIRED", *defines, name="Test_Full", source="full.c")
    return Subject.dynamic("Full", folder)


@pytest.mark.nightly
class TestImportOnly(FallbackFamily):
    """Its handles import plain memory and dma-bufs by `import_ref`, and cannot be mapped."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, tmp_path_factory: pytest.TempPathFactory, compile_backend: Compile) -> Subject:
        return full(tmp_path_factory.mktemp("import_only"), compile_backend, "NO_MAP")


@pytest.mark.nightly
class TestImportOnlyAsynchronous(FallbackFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, tmp_path_factory: pytest.TempPathFactory, compile_backend: Compile) -> Subject:
        return full(tmp_path_factory.mktemp("asynchronous"), compile_backend, "NO_MAP", "ASYNC")


@pytest.mark.nightly
class TestMapped(FallbackFamily):
    """Its handles are mapped, and import by `import_ref`."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, tmp_path_factory: pytest.TempPathFactory, compile_backend: Compile) -> Subject:
        return full(tmp_path_factory.mktemp("mapped"), compile_backend)


@pytest.mark.nightly
class TestExample(FallbackFamily):
    """The example's handles are mapped, and import and export plain memory."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, examples: Path) -> Subject:
        return Subject.dynamic("Sample", examples)


@pytest.mark.nightly
class TestIsolatedExample(FallbackFamily):
    """Its handles are the host's; each layer's tensors are copied to and from the other process."""

    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, examples: Path) -> Subject:
        return Subject.dynamic("Sample", examples, isolate=True)


@pytest.mark.parametrize(
    ("kind", "strategies"),
    [
        ("import only", {IMPORT, COPY}),
        ("example", {IMPORT, EXPORT, COPY}),
        pytest.param("isolated example", {IMPORT, EXPORT, COPY}, marks=pytest.mark.nightly),
    ],
)
def test_several_tensors_cross(
    kind: str, strategies: set[EdgeStrategy], examples: Path, compile_backend: Compile, tmp_path: Path
) -> None:
    """From and to all partners; only what the mapped partner's handles cannot import or export is copied."""
    if kind == "import only":
        subject = full(tmp_path, compile_backend, "NO_MAP")
    else:
        subject = Subject.dynamic("Sample", examples, isolate=kind == "isolated example")
    allocators = [CountingAllocator(MallocAllocator()), CountingAllocator(DmaBufAllocator())]
    before = shared_memory()
    with subject.runtime(partners=PARTNERS, fallback_allocators=allocators) as runtime:
        network, hints = fan(some_link(runtime), subject.id)
        options = subject.optimizer_options(hints=hints, simplify=False, import_enabled=True, export_enabled=True)
        optimized = check_network(runtime, network, [PartnerCpu.id], options)
        own = [each for each in optimized.crossings if subject.id in (each.source_backend, each.target_backend)]
        assert {each.strategy for each in own} == strategies
        copied = [each for each in own if each.strategy is COPY and each.source_backend is not None]
        assert all("PartnerMapper" in (each.source_backend, each.target_backend) for each in copied)
    assert [allocator.held for allocator in allocators] == [0, 0]
    assert shared_memory() == before
