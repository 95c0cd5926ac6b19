# SPDX-License-Identifier: Apache-2.0
"""CpuAcc as a backend of the runtime: whole models, memory, and its messages when it cannot work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from children import ran
from gate import every
from host_library import library
from needs import require_cc, require_module, require_program
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule import formats, nativelib, resources
from ferrule.backends.context import BackendUnavailableError, CreationOptions
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.cpu_acc.host import library as host
from ferrule.backends.cpu_acc.host.instruction_set import PORTABLE, available
from ferrule.backends.device import BackendId
from ferrule.backends.target import default_target
from ferrule.graph import DataType, Layer, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import graph_difference, random_inputs

TARGET = default_target(BackendId("CpuAcc"))

INT8_MODELS = ("pretrainedResnet_quant", "kws_ref_model", "vww_96_int8", "ad01_int8")
FLOAT_MODELS = ("pretrainedResnet", "vww_96_float", "ad01_fp32")


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No library has been loaded or compiled yet."""
    require_module("cffi", "pip install 'ferrule[run]'")
    monkeypatch.setenv("FERRULE_CACHE", str(tmp_path / "cache"))
    host.host_library.cache_clear()
    yield monkeypatch
    host.host_library.cache_clear()


def small_network() -> Network:
    network = Network("small")
    network.add_input(TensorInfo("x", (1, 4), DataType.INT8, quantization=Quantization.of(0.1)))
    network.set_outputs([network.add_relu_layer("x")])
    return network


def instruction_sets() -> list[str]:
    return [PORTABLE, *(item.name for item in available(library()))]


@pytest.mark.cc
@pytest.mark.parametrize("model", INT8_MODELS)
def test_int8_models_are_exact(model: str, models: Path) -> None:
    network = formats.load(models / f"{model}.tflite")
    cases = [random_inputs(network), *edge_inputs(network).values()]
    wanted = [network.run(inputs) for inputs in cases]
    with Runtime() as runtime:
        for name in instruction_sets():
            options = OptimizerOptions(model_options={"CpuAcc": {"instructions": name}})
            loaded = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry, options))
            for inputs, outputs in zip(cases, wanted, strict=True):
                for got, right in zip(runtime.enqueue_workload(loaded, inputs), outputs, strict=True):
                    assert_array_equal(got, right, strict=True)
            runtime.unload_network(loaded)


@pytest.mark.cc
@pytest.mark.parametrize("model", FLOAT_MODELS)
def test_float_models_are_within_bounds(model: str, models: Path) -> None:
    network = formats.load(models / f"{model}.tflite")
    inputs = random_inputs(network)
    with Runtime() as runtime:
        for name in instruction_sets():
            options = OptimizerOptions(model_options={"CpuAcc": {"instructions": name}})
            loaded = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry, options))
            assert not graph_difference(network, inputs, runtime.enqueue_workload(loaded, inputs))


@pytest.mark.cc
def test_two_backends_share_plain_memory() -> None:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    network = small_network()
    with Runtime() as runtime:
        hints = OptimizerOptions(hints={network.layers[0].name: "CpuRef"})
        loaded = runtime.load_network(optimize(network, ["CpuAcc", "CpuRef"], runtime.registry, hints))
        (got,) = runtime.enqueue_workload(loaded, [np.array([[-3, -1, 0, 5]], np.int8)])
    assert_array_equal(got, [[0, 0, 0, 5]])


def test_without_cffi_it_is_not_available(fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(host, "find_spec", lambda _name: None)
    with pytest.raises(BackendUnavailableError, match="cffi is missing") as caught:
        CpuAcc().context(CreationOptions())
    assert "pip install" in (caught.value.hint or "")


def test_without_a_compiler_it_is_not_available(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh.setenv("PATH", str(tmp_path))
    fresh.delenv("CC", raising=False)
    fresh.setattr(nativelib, "find_spec", lambda _name: None)
    with pytest.raises(BackendUnavailableError, match="no C compiler for this host was found; CpuAcc"):
        CpuAcc().context(CreationOptions())
    with Runtime() as runtime:
        rows = {row.id: row for row in runtime.backends}
        assert "no C compiler" in rows[CpuAcc.id].reason
        assert CpuAcc.id not in runtime.registry.ids()
        network = small_network()
        loaded = runtime.load_network(optimize(network, ["CpuRef"], runtime.registry))
        (got,) = runtime.enqueue_workload(loaded, [np.array([[-3, -1, 0, 5]], np.int8)])
        assert_array_equal(got, [[0, 0, 0, 5]])


@pytest.mark.cc
def test_a_failing_compiler_is_quoted(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho out of cheese >&2\nexit 3\n")
    broken.chmod(0o755)
    fresh.setenv("CC", str(broken))
    with pytest.raises(BackendUnavailableError, match=r"(?s)kernels of CpuAcc.*ended with 3.*out of cheese"):
        CpuAcc().context(CreationOptions())


@pytest.mark.cc
def test_a_library_that_cannot_be_loaded_is_named(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    rule = '[ "$1" = -MF ] && : > "$2"'  # of the files that it has read: none
    compiler.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do {rule}; shift; done\necho nothing > "$2"\n')
    compiler.chmod(0o755)
    fresh.setenv("CC", str(compiler))
    with pytest.raises(BackendUnavailableError, match="compiled kernels can't be loaded"):
        CpuAcc().context(CreationOptions())


@pytest.mark.cc
@pytest.mark.nightly
def test_the_wheel_of_a_compiler_serves_too(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    fresh.setenv("PATH", str(tmp_path))
    fresh.delenv("CC", raising=False)
    CpuAcc().context(CreationOptions())
    assert available(host.host_library()) == available(library())


def test_weights_that_are_computed_are_taken() -> None:
    network = Network("computed")
    for name, shape in (("x", (1, 4)), ("weights", (3, 4))):
        network.add_input(TensorInfo(name, shape, DataType.FLOAT32))
    layer = Layer(
        "fc",
        LayerType.FULLY_CONNECTED,
        FullyConnectedDescriptor(),
        inputs=("x", "weights"),
        outputs=("y",),
    )
    network.add_layer(layer, [TensorInfo("y", (1, 3), DataType.FLOAT32)])
    assert CpuAcc().layer_support().supports(network, layer, TARGET)


@pytest.mark.cc
@pytest.mark.parametrize("compiler", every(2, ["gcc", "zig"]))
def test_own_sources_compile_without_a_warning(compiler: str, tmp_path: Path) -> None:
    if compiler == "zig":
        require_module("ziglang", "pip install 'ferrule[run]'")
        command = [sys.executable, "-m", "ziglang", "cc"]
    else:
        command = [require_program("gcc", "apt-get install gcc")]
    includes = [f"-I{host.OWN_FOLDER / 'include'}", f"-I{resources.root() / 'src_c' / 'kernels' / 'include'}"]
    flags = ["-std=c11", "-O1", "-fPIC", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", *includes]
    for source in sorted(host.OWN_FOLDER.rglob("*.c")):
        argv = [*command, *flags, "-c", "-o", str(tmp_path / "out.o"), str(source)]
        done = ran(argv, timeout=300)
        assert done.returncode == 0, done.stderr
