# SPDX-License-Identifier: Apache-2.0
"""Tests of the host face: supported layers, optimised subgraphs, and execution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from my_custom.backend import MyCustom
from my_custom.memory import CustomMemoryManager, CustomTensorHandleFactory
from my_custom.program import MAX_ELEMENTS, AdditionProgram

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.backends import (
    BackendId,
    BackendRegistry,
    BackendUnavailableError,
    CreationOptions,
    Face,
    MemoryRef,
    MemorySource,
    PreCompiledDescriptor,
    default_target,
)
from ferrule.graph import Array, Graph, GraphEditor, LayerType, Rounding, SubgraphView
from ferrule.network import run_graph
from ferrule.operators import Activation
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import NetworkLoadError, Runtime

TARGET = default_target(BackendId("MyCustom"))

TYPES = [DataType.INT8, DataType.FLOAT32]


def quantization(dtype: DataType, scale: float = 0.05, zero_point: int = 3) -> Quantization | None:
    return None if dtype.is_float else Quantization.of(scale, zero_point)


def network(dtype: DataType, *shape: int, inputs: str = "abc") -> Network:
    """A network with inputs of different scales."""
    made = Network("sums")
    for index, name in enumerate(inputs):
        info = TensorInfo(name=name, shape=shape, dtype=dtype, quantization=quantization(dtype, 0.03 + 0.02 * index))
        made.add_input(info)
    return made


def add(made: Network, first: str, second: str, name: str, activation: Activation = Activation.NONE) -> str:
    dtype = made.info(first).dtype
    return made.add_add_layer(
        first, second, activation=activation, quantization=quantization(dtype, 0.08, -5), name=name
    )


def chain(dtype: DataType, *shape: int) -> Network:
    """Three additions; the last reads the output of the second twice, through an activation of another backend."""
    made = network(dtype, *shape)
    total = add(made, add(made, "a", "b", "ab"), "c", "abc", Activation.RELU)
    relu = made.add_relu_layer(total, name="relu")
    made.set_outputs([add(made, relu, total, "last"), total])
    return made


def arrays(made: Graph, seed: int = 1) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [
        np.asarray(generator.integers(-128, 128, info.shape), info.dtype.numpy)
        if not info.dtype.is_float
        else np.asarray(generator.normal(size=info.shape), np.float32)
        for info in made.inputs
    ]


def ruled(made: Graph, rule: Rounding) -> Graph:
    """The same network, whose additions round by a rule."""
    editor = GraphEditor(made)
    for layer in made.layers:
        if layer.type is LayerType.ADD:
            editor.replace_layer(replace(layer, rounding=rule))
    return editor.finish()


def types(graph: Graph) -> list[LayerType]:
    return [layer.type for layer in graph.layers]


# ---- layer support


@pytest.mark.parametrize("dtype", TYPES)
def test_additions_are_taken(dtype: DataType) -> None:
    made = chain(dtype, 3, 4)
    support = MyCustom().layer_support()
    assert [bool(support.supports(made, layer, TARGET)) for layer in made.layers] == [
        True,
        True,
        False,
        True,
    ]


def test_reasons_name_what_is_refused() -> None:
    support = MyCustom().layer_support()
    made = network(DataType.INT8, 3, 4)
    made.add_input(TensorInfo(name="row", shape=(1, 4), dtype=DataType.INT8, quantization=Quantization.of(0.1)))
    add(made, "a", "row", "broadcast")
    made.add_relu_layer("a", name="relu")
    assert support.supports(made, made.layer("broadcast"), TARGET).reason == (
        "tensor 'row' has shape [1, 4], expected [3, 4]: the device does not broadcast"
    )
    assert support.supports(made, made.layer("relu"), TARGET).reason == "the device adds, it has no RELU"
    wide = network(DataType.INT32, 3, inputs="")
    for name in "ab":
        wide.add_input(TensorInfo(name=name, shape=(3,), dtype=DataType.INT32))
    wide.add_add_layer("a", "b", name="sum")
    assert support.supports(wide, wide.layer("sum"), TARGET).reason == "tensor 'a' is int32, expected int8 or float32"


@pytest.mark.parametrize("rule", [Rounding.ONNX, Rounding.ONNX_UINT8], ids=str)
def test_declared_rules_of_rounding_are_taken_on_the_host_only(rule: Rounding) -> None:
    made = ruled(chain(DataType.INT8, 3, 4), rule)
    support, boards = MyCustom().layer_support(), default_target(BackendId("MyCustom"), Face.FIRMWARE)
    assert support.supports(made, made.layer("ab"), TARGET)
    reason = support.supports(made, made.layer("ab"), boards).reason
    assert reason == f"it rounds by {rule.phrase}, which the adder of boards does not"


# ---- optimising subgraphs


def test_neighbours_become_one_program() -> None:
    made = chain(DataType.INT8, 3, 4)
    views = MyCustom().optimize_subgraph(SubgraphView.of(made, ["ab", "abc"]), TARGET)
    (substitution,) = views.substitutions
    (layer,) = substitution.layers
    assert (layer.type, layer.inputs, layer.outputs) == (LayerType.PRE_COMPILED, ("a", "b", "c"), ("abc",))
    assert isinstance(layer.descriptor, PreCompiledDescriptor)
    program = layer.descriptor.payload
    assert isinstance(program, AdditionProgram)
    assert (program.inputs, program.registers, program.outputs, len(program.steps)) == (3, 5, (4,), 2)
    assert not views.failed
    assert not views.untouched


def test_the_three_lists() -> None:
    made = network(DataType.FLOAT32, MAX_ELEMENTS + 1)
    made.add_input(TensorInfo(name="small", shape=(4,), dtype=DataType.FLOAT32))
    weights = TensorInfo(name="weights", shape=(4,), dtype=DataType.FLOAT32)
    constant = made.add_constant(weights, np.ones(4, np.float32))
    add(made, "a", "b", "too_long")
    add(made, "small", "small", "unread")
    first = add(made, "small", "small", "first")
    second = add(made, first, constant, "second")
    made.set_outputs([add(made, first, second, "third")])
    view = SubgraphView.of(made, ["too_long", "unread", "first", "second", "third"])
    views = MyCustom().optimize_subgraph(view, TARGET)
    assert [part.names for part in views.failed] == [("too_long",)]
    assert views.reasons == {"too_long": "tensor 'too_long' has 65,537 elements, the device counts to 65,536"}
    assert [part.names for part in views.untouched] == [("second",), ("unread",)]
    assert [part.replaced.names for part in views.substitutions] == [("first",), ("third",)]


def test_programs_can_be_switched_off() -> None:
    made = chain(DataType.INT8, 3, 4)
    view = SubgraphView.of(made, ["ab", "abc"])
    assert MyCustom().optimize_subgraph(
        view, default_target(BackendId("MyCustom"), options={"programs": False})
    ).untouched == (view,)


# ---- end to end


def test_addition_to_pre_compiled(registry: BackendRegistry) -> None:
    """The guide's own test: an addition of 3 by 4 numbers."""
    made = Network("addition")
    for name in ("input1", "input2"):
        made.add_input(TensorInfo(name=name, shape=(3, 4), dtype=DataType.FLOAT32))
    made.set_outputs([made.add_add_layer("input1", "input2", name="add")])
    with Runtime(registry=registry) as runtime:
        optimized = optimize(made, ["MyCustom"], runtime.registry)
        assert types(optimized.graph) == [LayerType.PRE_COMPILED]
        number = runtime.load_network(optimized)
        first = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
        output = np.zeros((3, 4), np.float32)
        runtime.enqueue_workload(number, [first, 100 * first], [output])
    assert output.tolist() == (101 * first).tolist()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("programs", [True, False])
@pytest.mark.parametrize("imports", [True, False])
def test_it_equals_the_reference(dtype: DataType, programs: bool, imports: bool, registry: BackendRegistry) -> None:
    made = chain(dtype, 3, 4)
    options = OptimizerOptions(
        model_options={"MyCustom": {"programs": programs}}, import_enabled=imports, export_enabled=imports
    )
    with Runtime(registry=registry) as runtime:
        optimized = optimize(made, ["MyCustom", "CpuRef"], runtime.registry, options)
        assert (LayerType.PRE_COMPILED in types(optimized.graph)) == programs
        number = runtime.load_network(optimized)
        for seed in range(3):
            inputs = arrays(made, seed)
            outputs = runtime.enqueue_workload(number, inputs)
            assert [o.tobytes() for o in outputs] == [o.tobytes() for o in made.run(inputs)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_network_of_additions(data: st.DataObject, registry: BackendRegistry) -> None:
    """Programs never wait for their own outputs, whatever the layers between their additions."""
    dtype = data.draw(st.sampled_from(TYPES))
    made = network(dtype, 2, 3)
    weights = TensorInfo(name="weights", shape=(2, 3), dtype=dtype, quantization=quantization(dtype))
    made.add_constant(weights, np.arange(6).reshape(2, 3).astype(dtype.numpy))
    tensors = ["a", "b", "c"]
    for index in range(data.draw(st.integers(1, 12))):
        first, second = data.draw(st.sampled_from(tensors)), data.draw(st.sampled_from([*tensors, "weights"]))
        if data.draw(st.booleans()):
            tensors.append(add(made, first, second, f"sum_{index}"))
        else:
            tensors.append(made.add_relu6_layer(first, name=f"relu_{index}"))
    made.set_outputs(list(dict.fromkeys([tensors[-1], data.draw(st.sampled_from(tensors[3:]))])))
    with Runtime(registry=registry) as runtime:
        number = runtime.load_network(optimize(made, ["MyCustom", "CpuRef"], runtime.registry))
        inputs = arrays(made)
        outputs = runtime.enqueue_workload(number, inputs)
    assert [o.tobytes() for o in outputs] == [o.tobytes() for o in made.run(inputs)]


@pytest.mark.parametrize("rule", [Rounding.ONNX, Rounding.ONNX_UINT8], ids=str)
@pytest.mark.parametrize("programs", [True, False])
def test_it_equals_the_reference_by_each_rule(rule: Rounding, programs: bool, registry: BackendRegistry) -> None:
    made = ruled(chain(DataType.INT8, 16, 16), rule)
    options = OptimizerOptions(model_options={"MyCustom": {"programs": programs}})
    with Runtime(registry=registry) as runtime:
        optimized = optimize(made, ["MyCustom", "CpuRef"], runtime.registry, options)
        backends = {given.backend for name, given in optimized.assignment.items() if name != "relu"}
        assert backends == {"MyCustom"}
        inputs = arrays(made)
        outputs = runtime.enqueue_workload(runtime.load_network(optimized), inputs)
    assert [o.tobytes() for o in outputs] == [o.tobytes() for o in run_graph(made, inputs)]


def test_what_failed_goes_to_the_next_backend(registry: BackendRegistry) -> None:
    made = network(DataType.FLOAT32, MAX_ELEMENTS + 1)
    made.set_outputs([add(made, "a", "b", "too_long")])
    with Runtime(registry=registry) as runtime:
        optimized = optimize(made, ["MyCustom", "CpuRef"], runtime.registry)
        assert optimized.assignment["too_long"].backend == "CpuRef"
        assert "the device counts to 65,536" in optimized.refusals["too_long", MyCustom.id]
        number = runtime.load_network(optimized)
        inputs = arrays(made)
        assert runtime.enqueue_workload(number, inputs)[0].tobytes() == made.run(inputs)[0].tobytes()


# ---- memory


def test_blocks_are_used_again() -> None:
    manager = CustomMemoryManager()
    factory = CustomTensorHandleFactory(manager)
    info = TensorInfo(name="x", shape=(2, 3), dtype=DataType.FLOAT32)
    first, second, third = (factory.create_handle(info, managed=True) for _ in range(3))
    first.manage()
    second.manage()
    first.allocate()
    third.manage()
    assert manager.size_bytes == 2 * 24
    with pytest.raises(RuntimeError, match="is not acquired"):
        first.map()
    manager.acquire()
    third.map()[:] = 7
    assert first.map().tolist() == [[7, 7, 7], [7, 7, 7]]
    manager.acquire()
    assert first.map()[0, 0] == 7
    manager.release()
    with pytest.raises(RuntimeError, match="is not acquired"):
        first.map()


def test_memory_is_imported_if_it_fits() -> None:
    handle = CustomTensorHandleFactory().create_handle(
        TensorInfo(name="x", shape=(2, 3), dtype=DataType.FLOAT32), managed=False
    )
    memory = np.ones((2, 3), np.float32)
    with pytest.raises(RuntimeError, match="has no memory"):
        handle.map()
    assert not handle.import_memory(MemoryRef.of_array(memory, MemorySource.DMA_BUF))
    assert not handle.import_memory(MemoryRef.of_array(memory.T))
    assert not handle.import_memory(MemoryRef.of_array(memory.astype(np.float64)))
    assert handle.import_memory(MemoryRef.of_array(memory))
    assert handle.map() is memory
    handle.end_import()
    with pytest.raises(RuntimeError, match="has no memory"):
        handle.map()


# ---- context


def test_the_context_counts_networks(registry: BackendRegistry) -> None:
    made = chain(DataType.INT8, 3, 4)
    options = CreationOptions(backend_options={"MyCustom": {"networks": 1}})
    with Runtime(options, registry) as runtime:
        optimized = optimize(made, ["MyCustom", "CpuRef"], runtime.registry)
        number = runtime.load_network(optimized)
        with pytest.raises(NetworkLoadError, match="MyCustom"):
            runtime.load_network(optimized)
        runtime.unload_network(number)
        runtime.load_network(optimized)


def test_an_absent_device_costs_the_backend_only(registry: BackendRegistry) -> None:
    options = CreationOptions(backend_options={"MyCustom": {"present": False}})
    with pytest.raises(BackendUnavailableError):
        MyCustom().context(options)
    with Runtime(options, registry) as runtime:
        assert "MyCustom" not in runtime.registry
        (row,) = [row for row in runtime.backends if row.id == "MyCustom"]
        assert "the adder is not plugged in" in row.reason
