# SPDX-License-Identifier: Apache-2.0
"""The C example runs real layers, and returns what the reference returns."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from children import ran
from compare import assert_arrays_equal
from needs import require_program
from numpy.testing import assert_array_equal

from ferrule import formats, resources
from ferrule.backends.context import CreationOptions
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.device import BackendId
from ferrule.backends.dynamic import load_dynamic_backends
from ferrule.backends.dynamic.abi import API_VERSION
from ferrule.backends.guarded import guarded
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.shared.host_memory import address, aligned_empty
from ferrule.backends.target import default_target
from ferrule.backends.tensor_handle import MemoryRef
from ferrule.backends.workload import WorkloadInfo
from ferrule.graph import DataType, Graph, GraphEditor, Quantization, Rounding, TensorInfo
from ferrule.network import Network, run_graph
from ferrule.operators.activation import Activation
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import graph_difference

TARGET = default_target(BackendId("Sample"))

pytestmark = pytest.mark.cc

EXAMPLE = Path(__file__).parents[3] / "examples" / "dynamic_backend"
ACTIVATIONS = list(Activation)
SHARED = OptimizerOptions(import_enabled=True, export_enabled=True)


@pytest.fixture
def registry(examples: Path) -> BackendRegistry:
    made = BackendRegistry()
    made.register("CpuRef", CpuRef)
    (row,) = load_dynamic_backends(made, examples)
    assert row.accepted, row
    return made


def quantised(name: str, dice: np.random.Generator, *shape: int) -> TensorInfo:
    quantization = Quantization.of(float(dice.uniform(0.01, 0.3)), int(dice.integers(-128, 128)))
    return TensorInfo(name, shape, DataType.INT8, quantization=quantization)


def int8_network(seed: int) -> Network:
    dice = np.random.default_rng(seed)
    network = Network("int8")
    a = network.add_input(quantised("a", dice, 3, 10))
    b = network.add_input(quantised("b", dice, 3, 10))
    activation = ACTIVATIONS[seed % len(ACTIVATIONS)]
    scale = Quantization.of(float(dice.uniform(0.1, 0.4)), int(dice.integers(-128, 128)))
    network.add_add_layer(a, b, activation=activation, quantization=scale, name="sum")
    network.add_relu_layer("sum", quantization=Quantization.of(0.11, -100), name="relu")
    channels = tuple(float(np.float32(value)) for value in dice.uniform(0.001, 0.02, 7))
    network.add_fully_connected_layer(
        "relu",
        dice.integers(-127, 128, (7, 10), dtype=np.int8),
        dice.integers(-3000, 3000, 7, dtype=np.int32) if seed % 2 else None,
        weights_quantization=Quantization(scales=channels, zero_points=(0,) * 7),
        quantization=Quantization.of(0.2, int(dice.integers(-128, 128))),
        activation=activation,
        name="dense",
    )
    network.set_outputs(["dense", "sum"])
    return network


def float_network(seed: int) -> Network:
    dice = np.random.default_rng(seed)
    network = Network("float32")
    for name in ("a", "b"):
        network.add_input(TensorInfo(name, (3, 10), DataType.FLOAT32))
    activation = ACTIVATIONS[seed % len(ACTIVATIONS)]
    network.add_add_layer("a", "b", activation=activation, name="sum")
    network.add_relu_layer("sum", name="relu")
    weights, bias = dice.normal(0, 1, (7, 10)).astype(np.float32), dice.normal(0, 1, 7).astype(np.float32)
    network.add_fully_connected_layer("relu", weights, bias if seed % 2 else None, activation=activation, name="dense")
    network.set_outputs(["dense", "sum"])
    return network


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("options", [OptimizerOptions(), SHARED], ids=["copied", "shared"])
def test_int8_equals_the_reference_in_every_bit(
    registry: BackendRegistry, seed: int, options: OptimizerOptions
) -> None:
    network = int8_network(seed)
    dice = np.random.default_rng(100 + seed)
    with Runtime(None, registry) as runtime:
        optimized = optimize(network, ["Sample"], runtime.registry, options)
        assert {row.backend for row in optimized.assignment.values()} == {"Sample"}
        number = runtime.load_network(optimized)
        for _ in range(5):
            inputs = [dice.integers(-128, 128, (3, 10), dtype=np.int8) for _ in range(2)]
            assert_arrays_equal(runtime.enqueue_workload(number, inputs), network.run(inputs))


def ruled(network: Network, layer: str, rule: Rounding) -> Graph:
    """Return a network in which one layer has another rule."""
    editor = GraphEditor(network)
    editor.replace_layer(replace(network.layer(layer), rounding=rule))
    return editor.finish()


@pytest.mark.parametrize("rule", [Rounding.SINGLE, Rounding.ONNX], ids=str)
def test_a_layer_is_rounded_by_its_rule(examples: Path, rule: Rounding) -> None:
    """A factor of 1/4 makes a quarter of all sums halves; a process of its own gets the rule, too."""
    network = Network("halves")
    whole = Quantization.of(1.0, 1)
    network.add_input(TensorInfo("x", (64, 4), DataType.INT8, quantization=whole))
    weights, quarter = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [1, 1, -1, 1]], np.int8), Quantization.of(0.25)
    network.add_fully_connected_layer("x", weights, weights_quantization=quarter, quantization=whole, name="dense")
    network.set_outputs(["dense"])
    graph = ruled(network, "dense", rule)
    x = np.random.default_rng(1).integers(-128, 128, (64, 4), dtype=np.int8)
    for isolate in (False, True):
        options = CreationOptions(dynamic_backends_path=examples, isolate_dynamic_backends=isolate)
        with Runtime(options, BackendRegistry()) as runtime:
            optimized = optimize(graph, ["Sample"], runtime.registry)
            found = runtime.enqueue_workload(runtime.load_network(optimized), [x])[0]
        assert_array_equal(found, run_graph(graph, [x])[0])
        assert (found != network.run([x])[0]).any()


def test_a_layer_that_cannot_be_rounded_by_a_declared_rule_is_refused(registry: BackendRegistry) -> None:
    graph = ruled(int8_network(0), "sum", Rounding.ONNX)
    support = guarded(registry.create("Sample")).layer_support()
    assert support.supports(graph, graph.layer("sum"), TARGET).reason == (
        "the sample rounds by rule 2 in FULLY_CONNECTED only"
    )
    graph = ruled(int8_network(0), "sum", Rounding.ONNX_UINT8)
    assert support.supports(graph, graph.layer("sum"), TARGET).reason == (
        "it rounds by ONNX's rule for uint8 tensors ('onnx-uint8'), Sample declares 'onnx', 'single', 'tflm'"
    )


@pytest.mark.parametrize("seed", range(4))
def test_float32_equals_the_reference_but_for_rounding(registry: BackendRegistry, seed: int) -> None:
    network = float_network(seed)
    dice = np.random.default_rng(100 + seed)
    with Runtime(None, registry) as runtime:
        number = runtime.load_network(optimize(network, ["Sample"], runtime.registry))
        inputs = [dice.normal(0, 2, (3, 10)).astype(np.float32) for _ in range(2)]
        assert not graph_difference(network, inputs, runtime.enqueue_workload(number, inputs))


@pytest.mark.parametrize("shape", [(3, 10), (1, 10), ()], ids=str)
def test_a_workload_reads_and_writes_the_memory_of_the_handles(
    registry: BackendRegistry, shape: tuple[int, ...]
) -> None:
    """No tensor is copied: the workload sees changes behind the handles, and its results appear there."""
    network = Network("relu")
    network.add_input(TensorInfo("x", shape, DataType.FLOAT32))
    network.add_relu_layer("x", name="y")
    network.set_outputs(["y"])
    backend = registry.create("Sample")
    memory = backend.memory_manager()
    (factory,) = backend.tensor_handle_factories(memory)
    source, target = (factory.create_handle(network.info(name), managed=False) for name in ("x", "y"))
    x, y = (aligned_empty(shape, DataType.FLOAT32) for _ in range(2))
    x[...], y[...] = -1, 5
    assert source.import_memory(MemoryRef.of_array(x))
    assert target.import_memory(MemoryRef.of_array(y))
    workloads = backend.workload_factory(memory, {})
    assert workloads is not None
    (layer,) = network.layers
    workload = workloads.create_workload(
        WorkloadInfo.of(network, layer, {"x": source, "y": target}.__getitem__, TARGET)
    )
    workload.execute()
    assert (y == 0).all()
    x[...] = 7
    workload.execute()
    assert (y == 7).all()
    assert (address(source.map()), address(target.map())) == (address(x), address(y))


REFUSED = {
    "SOFTMAX": "layer type 26",
    "broadcast": "input 'b' is broadcast",
    "int16": "output 'y' is neither int8 nor float32",
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_what_is_wrong(registry: BackendRegistry, case: str) -> None:
    network = Network(case)
    if case == "SOFTMAX":
        network.add_input(TensorInfo("a", (1, 4), DataType.FLOAT32))
        network.add_softmax_layer("a", name="y")
    elif case == "broadcast":
        network.add_input(TensorInfo("a", (2, 4), DataType.FLOAT32))
        network.add_input(TensorInfo("b", (1, 4), DataType.FLOAT32))
        network.add_add_layer("a", "b", name="y")
    else:
        info = TensorInfo("a", (1, 4), DataType.INT16, quantization=Quantization.of(0.1))
        network.add_input(info)
        network.add_relu_layer("a", quantization=Quantization.of(0.1), name="y")
    support = registry.create("Sample").layer_support().supports(network, network.layer("y"), TARGET)
    assert REFUSED[case] in support.reason


def test_a_trained_model_runs_on_it(registry: BackendRegistry, models: Path) -> None:
    network = formats.load(models / "ad01_int8.tflite")
    dice = np.random.default_rng(5)
    with Runtime(None, registry) as runtime:
        optimized = optimize(network, ["Sample", "CpuRef"], runtime.registry)
        on_sample = [layer for layer, row in optimized.assignment.items() if row.backend == "Sample"]
        assert len(on_sample) >= 9
        number = runtime.load_network(optimized)
        for _ in range(3):
            x = dice.integers(-128, 128, network.inputs[0].shape, dtype=np.int8)
            assert_array_equal(runtime.enqueue_workload(number, [x])[0], network.run([x])[0])


def test_the_sources_are_in_the_house_style_of_warnings(host_cc: tuple[str, ...], tmp_path: Path) -> None:
    """They compile without a warning, also when C++ users include the headers and under a second C standard."""
    for source in sorted(EXAMPLE.glob("*.c")):
        root = EXAMPLE.parents[1]
        includes = [f"-I{root / 'include'}", f"-I{root / 'src_c' / 'kernels' / 'include'}"]
        flags = ["-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
        subprocess.run([*host_cc, *flags, *includes, "-c", "-o", str(tmp_path / "out.o"), str(source)], check=True)


ACCESSES = """\
own memory: 0
begin: 0 b
end: 0 e
map: 0 b
unmap: 0 e
interrupted: 0 !!b
a file in memory: 0 !
refused: -12 !
map refused: -12 !
the dma-buf refuses an access
own memory: 0
"""
"""What sample_access.c prints: the statuses, and the calls that begin (b), end (e) or fail (!)."""


def test_accesses_to_a_dma_buf_are_bracketed(host_cc: tuple[str, ...], tmp_path: Path) -> None:
    """This machine may have none, so ioctl() is one of the test."""
    sources = [EXAMPLE / "sample_handles.c", EXAMPLE / "layer.c", Path(__file__).with_name("sample_access.c")]
    program = tmp_path / "program"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wl,--wrap=ioctl", f"-I{EXAMPLE}"]
    includes = [f"-I{resources.root() / 'include'}", f"-I{resources.root() / 'src_c' / 'kernels' / 'include'}"]
    subprocess.run([*host_cc, *flags, *includes, *map(str, sources), "-lm", "-o", str(program)], check=True)
    done = ran([program], check=True)
    assert [line.rstrip() for line in done.stdout.splitlines()] == ACCESSES.splitlines()


def test_the_readme_s_script_runs(examples: Path) -> None:
    found = ran([sys.executable, str(EXAMPLE / "run.py"), str(examples)])
    assert found.returncode == 0, found.stderr
    assert "equals the reference" in found.stdout


def test_only_the_entry_points_are_visible(examples: Path) -> None:
    nm = require_program("nm", "apt-get install binutils")
    for library in examples.rglob("*.so"):
        listed = ran([nm, "-D", "--defined-only", str(library)], check=True)
        names = {line.split()[-1] for line in listed.stdout.splitlines() if " T " in line}
        assert names == {"GetBackendId", "GetVersion", "BackendFactory"}


def test_entry_points_by_hand(examples: Path) -> None:
    """The entry points are called as a host in any language would call them."""
    library = ctypes.CDLL(str(examples / "Ferrule_Sample_backend.so"))
    library.GetBackendId.restype = ctypes.c_char_p
    assert library.GetBackendId() == b"Sample"
    major, minor = ctypes.c_uint32(9), ctypes.c_uint32(9)
    library.GetVersion(ctypes.byref(major), ctypes.byref(minor))
    assert (major.value, minor.value) == API_VERSION
    library.BackendFactory.restype = ctypes.c_void_p
    assert library.BackendFactory() == library.BackendFactory() is not None


@pytest.mark.parametrize("options", [OptimizerOptions(), SHARED], ids=["copied", "shared"])
def test_state_is_carried_from_run_to_run(registry: BackendRegistry, options: OptimizerOptions) -> None:
    dice = np.random.default_rng(1)
    x, before = quantised("x", dice, 3, 10), quantised("before", dice, 3, 10)
    network = Network("sum")
    network.add_input(x)
    network.add_state(before, np.full(before.shape, 7, np.int8))
    network.set_state("before", network.add_add_layer("x", "before", quantization=before.quantization, name="total"))
    network.set_outputs(["total"])
    state = network.initial_state()
    with Runtime(registry=registry) as runtime:
        optimized = optimize(network, ["Sample"], runtime.registry, options)
        number = runtime.load_network(optimized)
        for _ in range(3):
            given = dice.integers(-128, 128, x.shape, dtype=np.int8)
            (found,) = runtime.enqueue_workload(number, [given])
            assert_array_equal(found, network.run([given], state=state)[0])
