# SPDX-License-Identifier: Apache-2.0
"""Shared objects in processes of their own: the same results, and an error in place of a crash."""

from __future__ import annotations

import gc
import math
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ferrule.backends.context import CreationOptions
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.dynamic.isolation import HostProcess, IsolatedBackend
from ferrule.backends.dynamic.isolation_child import Reply
from ferrule.backends.dynamic.library import DynamicLibraryError
from ferrule.backends.registry import BackendRegistry
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, explain, optimize
from ferrule.runtime import Runtime

pytestmark = pytest.mark.cc
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)


def chain(*names: str) -> Network:
    network = Network("chain")
    last = network.add_input(TensorInfo("x", (2, 8), DataType.FLOAT32))
    for name in names:
        last = network.add_relu_layer(last, name=name)
    network.set_outputs([last])
    return network


def runtime_of(folder: Path, *, profiling: bool = False, answer_s: float = math.inf) -> Runtime:
    registry = BackendRegistry()
    registry.register("CpuRef", CpuRef)
    options = CreationOptions(
        dynamic_backends_path=folder,
        isolate_dynamic_backends=True,
        isolated_timeout_s=answer_s,
        profiling=profiling,
    )
    return Runtime(options, registry)


def divided(runtime: Runtime, network: Network) -> OptimizedNetwork:
    return optimize(network, ["Full", "CpuRef"], runtime.registry, OptimizerOptions(simplify=False))


def run(runtime: Runtime, network: Network) -> Array:
    (output,) = runtime.enqueue_workload(runtime.load_network(divided(runtime, network)), [X])
    return output


def test_every_table_works_in_another_process(tmp_path: Path, compile_backend: Callable[..., Path]) -> None:
    defines = ("OWN_HANDLES", "OWN_MEMORY", "ASYNC")
    path = compile_backend(tmp_path, *defines, name="Test_Full", source="full.c")
    network = chain("one", "compile_a", "compile_b", "erase", "fail", "two")
    with runtime_of(tmp_path, profiling=True) as runtime:
        assert [row.reason for row in runtime.backends] == ["", ""]
        backend = runtime.registry.create("Full")
        assert isinstance(backend, IsolatedBackend)
        child = backend._process._process
        assert backend.capabilities() == {"Cores": -3, "Clock": 1.5, "Maker": "tests"}
        assert "process of its own" in backend.use_custom_memory_allocator(None)  # type: ignore[arg-type]
        optimized = divided(runtime, network)
        assert {name: given.backend for name, given in optimized.assignment.items()} == {
            "one": "Full",
            "compile_a_compiled": "Full",
            "fail": "CpuRef",
            "two": "Full",
        } | {name: given.backend for name, given in optimized.assignment.items() if name.startswith("[")}
        assert optimized.refusals["fail", "Full"].endswith("its name says so")
        number = runtime.load_network(optimized)
        for factor in (1, -2):
            (output,) = runtime.enqueue_workload(number, [factor * X])
            assert_array_equal(output, np.maximum(factor * X, 0))
        runtime.unload_network(number)
    assert str(path) not in Path("/proc/self/maps").read_text(encoding="utf-8")
    del runtime, backend, optimized
    gc.collect()
    assert child.returncode == 0, "the process ends with the last object"


def test_a_reason_and_a_failure_arrive(tmp_path: Path, compile_backend: Callable[..., Path]) -> None:
    compile_backend(tmp_path, "BREAK_EXECUTE", name="Test_Full", source="full.c")
    network = chain("good")
    network.add_tanh_layer("good", name="bad")
    with runtime_of(tmp_path) as runtime:
        rows = explain(network, [runtime.registry.create("Full")], OptimizerOptions())
        assert [row.refusals for row in rows] == [(), (("Full", "it runs RELU only"),)]
        with pytest.raises(DynamicLibraryError, match=r"layer 'good' failed on backend 'Full': the device is gone"):
            run(runtime, chain("good"))


@pytest.mark.parametrize(
    ("defect", "ending"),
    [
        ("abort()", "SIGABRT"),
        ("_exit(0)", "exit code 0"),
        pytest.param("exit(0)", "exit code 0", marks=pytest.mark.nightly),
        pytest.param("*(volatile int*)8=1", "SIGSEGV", marks=pytest.mark.nightly),
    ],
)
def test_the_end_of_the_process_is_an_error(
    tmp_path: Path, compile_backend: Callable[..., Path], defect: str, ending: str
) -> None:
    path = compile_backend(tmp_path, f"AT_EXECUTE={defect}", name="Test_Full", source="full.c")
    with runtime_of(tmp_path) as runtime:
        with pytest.raises(BrokenBackendError) as error:
            run(runtime, chain("good"))
        assert f"backend 'Full' ({path}) failed: its process ended by {ending} in execute()" in str(error.value)
        with pytest.raises(FerruleError, match=r"cannot answer: its process ended by"):
            runtime.registry.create("Full")
        assert set(optimize(chain("good"), ["CpuRef"], runtime.registry).assignment) == {"good"}


@pytest.mark.parametrize(
    ("defect", "damage"),
    [
        ("memset((char*)output+64,0,16)", "byte 1 behind 'good' was written"),
        ("((char*)output)[-1]=0", "byte 1 before 'good' was written"),
        ("((char*)input)[9]^=1", "its input 'x' was written"),
        ("memset((char*)input+64,0,16)", "byte 1 behind 'x' was written"),
    ],
)
def test_writes_outside_the_output_are_an_error(
    tmp_path: Path, compile_backend: Callable[..., Path], defect: str, damage: str
) -> None:
    """Here, what lies behind an output would be another tensor."""
    compile_backend(tmp_path, f"AT_EXECUTE={defect}", name="Test_Full", source="full.c")
    with runtime_of(tmp_path) as runtime, pytest.raises(BrokenBackendError) as error:
        run(runtime, chain("good"))
    assert f"layer 'good': the backend wrote what is not its output: {damage}" in str(error.value)


def test_a_process_that_does_not_answer_is_ended(tmp_path: Path, compile_backend: Callable[..., Path]) -> None:
    path = compile_backend(tmp_path, "AT_EXECUTE=for(;;)pause()", name="Test_Full", source="full.c")
    with runtime_of(tmp_path, answer_s=600) as runtime:
        backend = runtime.registry.create("Full")
        assert isinstance(backend, IsolatedBackend)
        assert backend._process._answer_s == 600
        number = runtime.load_network(divided(runtime, chain("good")))
        backend._process._answer_s = 0.5  # a loaded machine may take longer for the answers until here
        with pytest.raises(BrokenBackendError) as error:
            runtime.enqueue_workload(number, [X])
        assert f"backend 'Full' ({path}) failed: it did not answer execute()" in str(error.value)
        assert str(error.value).endswith("within 0.5 s")
        assert backend._process._process.returncode == -signal.SIGKILL
        with pytest.raises(BrokenBackendError, match="cannot answer: it did not answer execute"):
            backend.capabilities()


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_limit_is_a_positive_time(limit: float) -> None:
    with pytest.raises(FerruleError, match=f"isolated_timeout_s is {limit}, expected seconds above 0"):
        CreationOptions(isolated_timeout_s=limit)


def replied(value: bytes) -> bytes:
    return msgspec.msgpack.encode(Reply(value=msgspec.Raw(value)))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(b"\xc1", bool), (replied(b"\xa1a"), bool), (replied(b"\xa1\xff"), str)],
    ids=["no message", "another type", "not UTF-8"],
)
def test_an_answer_is_checked(answer: bytes, kind: type) -> None:
    """A child whose memory the shared object has overwritten may send anything."""
    process = HostProcess.__new__(HostProcess)
    process._name = "backend 'X'"
    with pytest.raises(BrokenBackendError, match="malformed answer"):
        process._value(kind, "start", answer)
