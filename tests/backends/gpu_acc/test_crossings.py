# SPDX-License-Identifier: Apache-2.0
"""GpuAcc, Woofles and CpuRef in one network, in memory that they import, with a device that works on a copy too."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_face import ShadowSession, require_opencl
from mock_backends import registry_of

from ferrule._typing import override
from ferrule.backends.context import CreationOptions
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.gpu_acc import GpuAcc
from ferrule.backends.gpu_acc.handle import GpuImportHandle, GpuImportHandleFactory
from ferrule.backends.gpu_acc.opencl import dma_buf_refusal
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.shared.allocators import DmaBufAllocator
from ferrule.backends.shared.host_memory import TensorImportError
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.backends.woofles.backend import Woofles
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.optimizer import EdgeStrategy, OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.partners import PartnerNpu

SCALE = Quantization.of(0.1, -4)


@pytest.fixture(autouse=True)
def _opencl_device() -> None:
    require_opencl()


def network() -> Network:
    """Return a network with crossings in all directions, several tensors at one place, and outputs at crossings."""
    made = Network("crossings")
    for name in ("x", "y"):
        made.add_input(TensorInfo(name, (1, 3, 5, 7), DataType.INT8, quantization=SCALE))
    made.add_add_layer("x", "y", quantization=SCALE, name="gpu_sum")
    made.add_mul_layer("x", "gpu_sum", quantization=SCALE, name="gpu_product")
    made.add_add_layer("gpu_sum", "gpu_product", quantization=SCALE, name="npu_sum")
    made.add_mul_layer("gpu_sum", "npu_sum", quantization=SCALE, name="npu_product")
    made.add_max_pool2d_layer("npu_product", (2, 2), padding="same", name="gpu_pool")
    made.add_add_layer("gpu_pool", "npu_sum", quantization=SCALE, name="cpu_sum")
    made.add_mul_layer("cpu_sum", "gpu_product", quantization=SCALE, name="gpu_end")
    made.set_outputs(["gpu_end", "npu_sum", "gpu_product"])
    return made


def divided(runtime: Runtime, transfers: str = "import") -> OptimizedNetwork:
    owners = {"gpu": "GpuAcc", "npu": "Woofles", "cpu": "CpuRef"}
    made = network()
    options = OptimizerOptions(
        simplify=False,
        hints={layer.name: owners[layer.name[:3]] for layer in made.layers},
        import_enabled=True,
        export_enabled=True,
        fallback_transfers=dict.fromkeys(owners.values(), transfers),
    )
    return optimize(made, ["CpuRef"], runtime.registry, options)


def runs(runtime: Runtime, optimized: OptimizedNetwork) -> list[bool]:
    """Return whether each output of three runs equals the reference; the network is loaded and unloaded."""
    made = network()
    number = runtime.load_network(optimized)
    equal = []
    for seed in range(3):
        inputs = random_inputs(made, seed)
        found = runtime.enqueue_workload(number, inputs)
        equal += [np.array_equal(*pair) for pair in zip(found, made.run(inputs), strict=True)]
    runtime.unload_network(number)
    return equal


@pytest.fixture(params=["in place", "on a copy"])
def _session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the device use host memory in place, or work on a copy of it."""
    if request.param == "on a copy":
        monkeypatch.setattr("ferrule.backends.gpu_acc.backend.Session", ShadowSession)


@pytest.mark.usefixtures("_session")
def test_everything_is_imported_and_equals_the_reference() -> None:
    with Runtime(registry=registry_of(CpuRef, GpuAcc, Woofles)) as runtime:
        optimized = divided(runtime)
        types = [layer.type for layer in optimized.graph.layers]
        assert types.count(LayerType.FALLBACK_IMPORT) >= 5
        assert all(runs(runtime, optimized))
        assert all(runs(runtime, optimized)), "after a reload"
        copying = divided(runtime, "copy")
        assert LayerType.FALLBACK_IMPORT not in {layer.type for layer in copying.graph.layers}
        assert all(runs(runtime, copying))


@pytest.mark.parametrize("method", ["prepare", "publish"])
def test_a_device_that_works_on_a_copy_finds_a_forgotten_bracket(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.backends.gpu_acc.backend.Session", ShadowSession)
    forgetful: dict[str, Callable[..., object]] = {
        "prepare": lambda handle: None,
        "publish": lambda handle, event: event,
    }
    monkeypatch.setattr(GpuImportHandle, method, forgetful[method])
    with Runtime(registry=registry_of(CpuRef, GpuAcc, Woofles)) as runtime:
        assert not all(runs(runtime, divided(runtime)))


class FailingSession(Session):
    """A session that fails at the host buffer of a given number."""

    fails_at = 0
    made = 0

    def host_buffer(self, memory: Array) -> object:  # type: ignore[override]
        FailingSession.made += 1
        if FailingSession.made > FailingSession.fails_at:
            raise FerruleError("no buffer")
        return super().host_buffer(memory)


def test_a_device_that_refuses_the_memory_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def held() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), Path("/proc/self/maps").read_text().count("memfd:")

    with Runtime(registry=registry_of(CpuRef, GpuAcc, Woofles)) as runtime:
        optimized = divided(runtime)
        assert all(runs(runtime, optimized))
        before = held()
        with monkeypatch.context() as patch:
            patch.setattr("ferrule.backends.gpu_acc.backend.Session", FailingSession)
            with pytest.raises(TensorImportError, match="of GpuAcc") as caught:
                runtime.load_network(optimized)
        del caught
        assert held() == before
        assert all(runs(runtime, optimized))
        assert held() == before


def on_two(first: str, second: str, runtime: Runtime) -> OptimizedNetwork:
    """Return a chain of two layers on two backends, between which only unmapped dma-bufs can be allocated."""
    made = Network("two")
    made.add_input(TensorInfo("x", (1, 3, 5, 7), DataType.INT8, quantization=SCALE))
    made.add_add_layer("x", "x", quantization=SCALE, name="a")
    made.set_outputs([made.add_mul_layer("a", "a", quantization=SCALE, name="b")])
    options = OptimizerOptions(
        simplify=False,
        hints={"a": first, "b": second},
        import_enabled=True,
        export_enabled=True,
        allocators=(MemorySource.DMA_BUF,),
    )
    return optimize(made, ["CpuRef"], runtime.registry, options)


def test_an_unmapped_dma_buf_is_copied_and_the_reason_names_the_extensions() -> None:
    with Runtime(registry=registry_of(CpuRef, GpuAcc, Woofles)) as runtime:
        for first, second in (("Woofles", "GpuAcc"), ("GpuAcc", "Woofles")):
            optimized = on_two(first, second, runtime)
            (crossing,) = (each for each in optimized.crossings if each.source_backend is not None)
            assert crossing.strategy is EdgeStrategy.COPY
            assert crossing.reason.endswith(f"; {dma_buf_refusal()}")


def test_what_can_only_pass_in_an_unmapped_dma_buf_is_refused_by_the_extensions_names() -> None:
    runtime = Runtime(registry=registry_of(CpuRef, GpuAcc, PartnerNpu))
    with runtime, pytest.raises(FerruleError, match=f"can neither map nor import them; {re.escape(dma_buf_refusal())}"):
        on_two("GpuAcc", "PartnerNpu", runtime)


def test_an_allocator_whose_dma_bufs_are_not_mapped_is_refused_by_the_extensions_names() -> None:
    class Unmapped(DmaBufAllocator):
        """Promises mapped memory."""

        @override
        def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
            memory = replace(super().allocate(size_bytes, alignment_bytes), array=None)
            self._held[id(memory)] = memory
            return memory

    creation = CreationOptions(fallback_allocators=(Unmapped(),))
    with (
        Runtime(creation, registry_of(CpuRef, GpuAcc, Woofles)) as runtime,
        pytest.raises(
            TensorImportError,
            match=f"'Ferrule/GpuAcc/Import' .*the memory is not mapped; {re.escape(dma_buf_refusal())}",
        ),
    ):
        runtime.load_network(divided(runtime))


@pytest.mark.parametrize(
    ("extensions", "why"),
    [
        (
            "cl_khr_fp64",
            "no OpenCL device here has cl_khr_external_memory_dma_buf or cl_arm_import_memory",
        ),
        (
            "cl_khr_fp64 cl_arm_import_memory",
            "Ferrule does not use cl_arm_import_memory, which device 0: Mali (Arm) has",
        ),
    ],
)
def test_the_reason_says_whether_a_device_has_an_extension(
    extensions: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(title="0: Mali (Arm)", device=SimpleNamespace(extensions=extensions))
    monkeypatch.setattr("ferrule.backends.gpu_acc.opencl.opencl_devices", lambda: (found,))
    factory = GpuImportHandleFactory()
    for kind in (MemorySource.DMA_BUF, MemorySource.DMA_BUF_PROTECTED):
        assert factory.import_refusal(kind) == f"a dma-buf is imported as its mapping only, since {why}"
    assert factory.import_refusal(MemorySource.MALLOC) == ""
