# SPDX-License-Identifier: Apache-2.0
"""GpuAcc, Woofles and CpuRef in one network, in memory that they import, with a device that works on a copy too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gpu_face import ShadowSession, require_opencl
from mock_backends import registry_of

from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.gpu_acc import GpuAcc
from ferrule.backends.gpu_acc.handle import GpuImportHandle
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.shared.host_memory import TensorImportError
from ferrule.backends.woofles.backend import Woofles
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs

SCALE = Quantization.of(0.1, -4)


@pytest.fixture(autouse=True)
def _opencl_device() -> None:
    require_opencl()


def network() -> Network:
    """Return a network with crossings in all directions, several tensors at one place, and outputs at crossings."""
    made = Network("crossings")
    for name in ("x", "y"):
        made.add_input(TensorInfo(name=name, shape=(1, 3, 5, 7), dtype=DataType.INT8, quantization=SCALE))
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
