# SPDX-License-Identifier: Apache-2.0
"""Optimized networks in the runtime: the layers that the optimizer inserts leave every output bit unchanged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compare import assert_arrays_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_backends import Fussy, Mock, Slow, chain, check_chain, mock, registry_of, sample
from numpy.testing import assert_array_equal

from ferrule import formats
from ferrule.backends.context import CreationOptions
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.tensor_handle import MemorySource
from ferrule.graph import Array, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.operators.operator import Arithmetic
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import graph_difference

INT8_MODELS = ("ad01_int8.tflite", "kws_ref_model.tflite", "pretrainedResnet_quant.tflite", "vww_96_int8.tflite")
COPYING = mock("Copying", import_flags=MemorySource.UNDEFINED, export_flags=MemorySource.UNDEFINED)


def types(optimized: OptimizedNetwork) -> list[LayerType]:
    return [layer.type for layer in optimized.graph.layers]


@pytest.mark.parametrize(
    ("other", "import_enabled", "expected"),
    [
        (Mock, True, LayerType.MEM_IMPORT),
        (Mock, False, LayerType.MEM_COPY),
        (COPYING, True, LayerType.MEM_COPY),
    ],
)
def test_hints_divide_a_network_and_its_bits_stay(other: type[Mock], import_enabled: bool, expected: LayerType) -> None:
    options = OptimizerOptions(
        hints={"layer1": other.id}, import_enabled=import_enabled, export_enabled=import_enabled, simplify=False
    )
    with Runtime(CreationOptions(profiling=True), registry_of(CpuRef, other)) as runtime:
        optimized = optimize(chain(), ["CpuRef", other.id], runtime.registry, options)
        assert types(optimized).count(expected) == 2
        number = runtime.load_network(optimized)
        check_chain(runtime, number)
        categories = [event.category for event in runtime.profiler(number).events]
        assert categories.count(expected) >= 2


def test_a_promise_to_import_that_is_broken_is_seen() -> None:
    options = OptimizerOptions(hints={"layer1": "Fussy"}, import_enabled=True, export_enabled=True, simplify=False)
    with Runtime(registry=registry_of(CpuRef, Fussy)) as runtime:
        number = runtime.load_network(optimize(chain(), ["CpuRef", "Fussy"], runtime.registry, options))
        with pytest.raises(Exception, match=r"'Fussy' did not import tensor .* from backend 'CpuRef'"):
            runtime.enqueue_workload(number, [sample()])


def test_debug_layers_show_every_output() -> None:
    seen: dict[str, Array] = {}

    def show(layer: str, info: TensorInfo, values: Array) -> None:
        seen[layer] = values.copy()

    with Runtime(registry=registry_of(CpuRef, Mock)) as runtime:
        options = OptimizerOptions(debug=True, simplify=False, hints={"layer2": "Mock"})
        number = runtime.load_network(optimize(chain(), ["CpuRef", "Mock"], runtime.registry, options))
        runtime.register_debug_callback(number, show)
        runtime.enqueue_workload(number, [sample()])
    for index in range(4):
        assert_array_equal(seen[f"layer{index}"], chain(index + 1).run([sample()])[0])


def test_a_network_in_float16_is_close() -> None:
    options = OptimizerOptions(reduce_fp32_to_fp16=True)
    with Runtime(registry=registry_of(CpuRef)) as runtime:
        optimized = optimize(chain(), ["CpuRef"], runtime.registry, options)
        assert {LayerType.CONVERT_FP16_TO_FP32, LayerType.CONVERT_FP32_TO_FP16} <= set(types(optimized))
        number = runtime.load_network(optimized)
        (output,) = runtime.enqueue_workload(number, [sample()])
    expected = chain().run([sample()])[0]
    assert output.dtype == np.float32
    assert not graph_difference(chain(), [sample()], [output], Arithmetic(unit=2.0**-11, spare=2))
    assert not np.array_equal(output, expected)


def inputs_of(network: Network, seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs]


@pytest.mark.parametrize("name", INT8_MODELS)
@settings(max_examples=3)
@given(data=st.data())
def test_the_models_divided_at_random_keep_their_bits(models: Path, name: str, data: st.DataObject) -> None:
    network = formats.load(models / name)
    slow = type("Slow", (Slow,), {"delay_s": 0.0})
    kinds = (CpuRef, Mock, COPYING, slow)
    hints = {layer.name: data.draw(st.sampled_from(kinds)).id for layer in network.layers}
    imports = data.draw(st.booleans())
    options = OptimizerOptions(
        hints=hints, import_enabled=imports, export_enabled=imports, simplify=data.draw(st.booleans())
    )
    inputs = inputs_of(network, data.draw(st.integers(0, 100)))
    with Runtime(registry=registry_of(*kinds)) as runtime:
        number = runtime.load_network(optimize(network, [kind.id for kind in kinds], runtime.registry, options))
        for _ in range(2):
            outputs = runtime.enqueue_workload(number, inputs)
            assert_arrays_equal(outputs, network.run(inputs))
