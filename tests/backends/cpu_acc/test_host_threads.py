# SPDX-License-Identifier: Apache-2.0
"""Threads that share the work of a layer, and the options that set their number."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from host_face import LoadedGraph
from needs import lacking, require_cc, require_module
from numpy.testing import assert_array_equal

from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.cpu_acc.host.library import host_library
from ferrule.backends.cpu_acc.host.lowering import conv2d, depthwise_conv2d
from ferrule.backends.cpu_acc.host.options import HostOptions
from ferrule.backends.cpu_acc.host.workloads import CpuAccWorkloadFactory
from ferrule.child_process import usable_processors
from ferrule.errors import FerruleError
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc
TASKS = Path("/proc/self/task")


@pytest.fixture(autouse=True)
def _shared_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the thresholds so that layers of any size are shared."""
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    monkeypatch.setattr(conv2d, "MIN_PRODUCTS", 1)
    monkeypatch.setattr(depthwise_conv2d, "MIN_DEPTHWISE_PRODUCTS", 1)


def network(dtype: DataType, batch: int = 2) -> Network:
    """Return a network with every kind of layer that threads share; the last layers have fewer rows than threads."""
    random = np.random.default_rng(1)
    result = Network("shared")
    quantization = None if dtype.is_float else Quantization.of(0.05, 3)
    weights_quantization = None if dtype.is_float else Quantization.of(0.02)

    def weights(*shape: int) -> np.ndarray:
        if dtype.is_float:
            return random.normal(0, 0.1, shape).astype(np.float32)
        return random.integers(-128, 128, shape, dtype=np.int8)

    scales = {"quantization": quantization, "weights_quantization": weights_quantization}
    result.add_input(TensorInfo("x", (batch, 19, 17, 5), dtype, quantization=quantization))
    last = result.add_conv2d_layer("x", weights(33, 3, 3, 5), padding="same", **scales)
    last = result.add_depthwise_conv2d_layer(last, weights(1, 3, 3, 33), strides=(2, 2), padding="same", **scales)
    last = result.add_conv2d_layer(last, weights(64, 1, 1, 33), **scales)
    last = result.add_conv2d_layer(last, weights(7, 9, 9, 64), **scales)
    last = result.add_fully_connected_layer(last, weights(10, 2 * 7) if batch == 2 else weights(10, 7), **scales)
    result.set_outputs([last])
    return result


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FLOAT32])
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_results_do_not_depend_on_threads(dtype: DataType, threads: int) -> None:
    graph = network(dtype)
    inputs = random_inputs(graph)
    (alone,) = LoadedGraph(graph, CpuAccWorkloadFactory(HostOptions(num_threads=1))).run(inputs)
    shared = LoadedGraph(graph, CpuAccWorkloadFactory(HostOptions(num_threads=threads)))
    for _ in range(50):
        assert_array_equal(shared.run(inputs)[0], alone)


def test_networks_on_several_threads_do_not_meet() -> None:
    graph = network(DataType.INT8)
    cases = [random_inputs(graph, seed) for seed in range(4)]
    wanted = [graph.run(inputs)[0] for inputs in cases]
    found: list[list[np.ndarray]] = [[] for _ in cases]

    def work(index: int) -> None:
        loaded = LoadedGraph(graph, CpuAccWorkloadFactory(HostOptions(num_threads=3)))
        for _ in range(30):
            found[index] += loaded.run(cases[index])

    workers = [threading.Thread(target=work, args=(index,)) for index in range(len(cases))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for results, right in zip(found, wanted, strict=True):
        assert len(results) == 30
        for result in results:
            assert_array_equal(result, right)


def test_helpers_end_with_the_last_workload() -> None:
    if not TASKS.is_dir():
        lacking(str(TASKS), "run the tests on Linux", rare=True)
    before = set(TASKS.iterdir())  # threads of earlier tests may still end
    loaded = LoadedGraph(network(DataType.INT8), CpuAccWorkloadFactory(HostOptions(num_threads=5)))
    helpers = set(TASKS.iterdir()) - before
    assert len(helpers) == 4
    loaded.workloads.clear()
    assert not helpers & set(TASKS.iterdir())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_fork_works_on_without_helpers() -> None:
    if not hasattr(os, "fork"):
        lacking("os.fork", "run the tests on Linux or macOS", rare=True)
    graph = network(DataType.INT8)
    inputs = random_inputs(graph)
    loaded = LoadedGraph(graph, CpuAccWorkloadFactory(HostOptions(num_threads=3)))
    (wanted,) = loaded.run(inputs)
    for attempt in range(100):  # helpers are in the midst of work, awake, or asleep
        loaded.run(inputs)
        time.sleep(attempt % 7 * 2e-5)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = int(not all(np.array_equal(loaded.run(inputs)[0], wanted) for _ in range(3)))
                if attempt == 0:
                    loaded.workloads.clear()
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert status == 0


def test_small_layers_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    factory = CpuAccWorkloadFactory(HostOptions(num_threads=8))
    LoadedGraph(network(DataType.INT8), factory)
    assert factory._pool is None


@pytest.mark.parametrize("pieces", [0, 1, 2, 7, 1000])
def test_every_piece_is_done_once(pieces: int) -> None:
    library = host_library()
    ffi, functions = library.ffi, library.functions
    counts = np.zeros(1000, np.int32)

    @ffi.callback("void(void *, int32_t)")
    def work(_context: object, piece: int) -> None:
        counts[piece] += 1

    pool = ffi.gc(functions.ferrule_pool_create(4), functions.ferrule_pool_destroy)
    for round_ in range(1, 6):
        functions.ferrule_pool_run(pool, work, ffi.NULL, pieces)
        assert (counts[:pieces] == round_).all()
        assert not counts[pieces:].any()


def test_by_default_all_processors_are_used() -> None:
    assert HostOptions.parse({}).threads == usable_processors()
    assert HostOptions.parse({"num_threads": 3, "instructions": "portable"}) == HostOptions(
        num_threads=3, instructions="portable"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 2}, "backend CpuAcc has no option 'threads'"),
        ({"num_threads": -1}, "'num_threads' of backend CpuAcc is -1, expected a whole number from 0 to 256"),
        ({"num_threads": 257}, "'num_threads' of backend CpuAcc is 257"),
        ({"num_threads": True}, "'num_threads' of backend CpuAcc is True"),
        ({"num_threads": 1.5}, "'num_threads' of backend CpuAcc is 1.5"),
        ({"instructions": 2}, "'instructions' of backend CpuAcc is 2, expected one of auto, portable"),
        ({"instructions": "mmx"}, "'instructions' of backend CpuAcc is 'mmx', expected one of auto, portable"),
    ],
)
def test_wrong_options_are_named(options: dict[str, bool | int | float | str], message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        CpuAcc().workload_factory(None, options)
