# SPDX-License-Identifier: Apache-2.0
"""Subgraphs become streams; what Vela leaves to the core goes back with its reason, and the rest is divided again."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_case import layer_network
from numpy.testing import assert_array_equal

from ferrule.backends.device import BackendId
from ferrule.backends.ethos_u import support
from ferrule.backends.ethos_u.compiler import compile_subgraph, connected_parts
from ferrule.backends.ethos_u.program import EthosUProgram
from ferrule.backends.ethos_u.support import EthosUSupport
from ferrule.backends.ethos_u.vela import VelaResult, reasons_of
from ferrule.backends.optimization_views import OptimizationViews, PreCompiledDescriptor
from ferrule.backends.target import default_target
from ferrule.graph import Array, DataType, Graph, LayerType, Quantization, Rounding, SubgraphView, TensorInfo
from ferrule.network import Network
from ferrule.operators.elementwise.quantize import QuantizeDescriptor
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

pytestmark = pytest.mark.usefixtures("ethos_u_vela")
SCALE = Quantization.of(0.05, 3)
TARGET = default_target(BackendId("EthosU"))
TWO = ("EthosU", "CpuRef")
STATES = ("hidden", "cell")


def begun(*shape: int, dtype: DataType = DataType.INT8) -> Network:
    network = Network("case")
    scale = SCALE if dtype is DataType.INT8 else Quantization.of(0.001)
    network.add_input(TensorInfo("x", shape, dtype, quantization=scale))
    return network


def finished(network: Network, *outputs: str) -> Network:
    network.set_outputs(outputs)
    return network


def reversed_(network: Network, source: str) -> str:
    return network.add_reverse_v2_layer(source, (0, 1, 2), name="core")


def mean(network: Network, source: str) -> str:
    return network.add_mean_layer(source, (3,), keep_dims=True, quantization=SCALE, name="core")


def average(network: Network, source: str) -> str:
    return network.add_average_pool2d_layer(source, (9, 9), padding="same", name="core")


def resized(network: Network, source: str) -> str:
    return network.add_resize_bilinear_layer(source, (15, 15), name="core")


def svdf(network: Network, source: str) -> str:
    flat = network.add_reshape_layer(source, (1, 400), name="flat")
    random = np.random.default_rng(3)
    return network.add_svdf_layer(
        flat,
        random.integers(-50, 50, (4, 400), np.int8),
        random.integers(-50, 50, (4, 3), np.int8),
        feature_quantization=Quantization.of(0.01),
        time_quantization=Quantization.of(0.01),
        state_quantization=Quantization.of(0.05),
        quantization=SCALE,
        name="core",
    )


def divided(network: Network, source: str) -> str:
    return network.add_depth_to_space_layer(source, 2, name="core")


CORE: dict[Callable[[Network, str], str], str] = {
    reversed_: "Vela leaves REVERSE_V2 to the core: Unsupported reverse mask",
    mean: "Vela leaves MEAN to the core: Unsupported depth-reduction. IFM: 1, 10, 10, 4",
    average: "Vela leaves AVERAGE_POOL_2D to the core: ",
    resized: "Vela leaves RESIZE_BILINEAR to the core: Scaling matches and operation has unsupported scale-factor=1.5",
    svdf: "Vela has no such operator for the NPU",
    divided: "Vela has no such operator for the NPU",
}
"""Layers that Vela leaves to the core, with the beginning of the reason."""


def around(make: Callable[[Network, str], str]) -> Network:
    """Return a network in which such a layer stands between two that the NPU runs, beside a third."""
    network = begun(1, 10, 10, 4)
    left = network.add_relu_layer("x", quantization=Quantization.of(0.05, 1), name="before")
    right = network.add_max_pool2d_layer("before", (2, 2), name="beside")
    core = make(network, left)
    return finished(network, network.add_relu_layer(core, name="after"), right)


def compiled(network: Graph, names: Sequence[str] | None = None) -> OptimizationViews:
    return compile_subgraph(SubgraphView.of(network, names or [layer.name for layer in network.layers]), TARGET)


def program_of(views: OptimizationViews) -> EthosUProgram:
    ((layer,),) = [each.layers for each in views.substitutions]
    assert isinstance(layer.descriptor, PreCompiledDescriptor)
    assert isinstance(layer.descriptor.payload, EthosUProgram)
    return layer.descriptor.payload


def inputs_of(network: Graph, seed: int = 0) -> list[Array]:
    random = np.random.default_rng(seed)
    limits = [np.iinfo(info.dtype.numpy) for info in network.inputs]
    return [
        random.integers(limit.min, limit.max + 1, info.shape).astype(info.dtype.numpy)
        for info, limit in zip(network.inputs, limits, strict=True)
    ]


def check(network: Network, *, runs: int = 2, backends: Sequence[str] = TWO) -> list[str]:
    """Run a network on the host and compare it with the reference; return the backends of what finally ran."""
    with Runtime() as runtime:
        optimized = optimize(network, backends, runtime.registry, OptimizerOptions())
        number = runtime.load_network(optimized)
        state = network.initial_state()
        for seed in range(runs):
            inputs = inputs_of(network, seed)
            found = runtime.enqueue_workload(number, inputs)
            for got, expected in zip(found, network.run(inputs, state=state), strict=True):
                assert_array_equal(got, expected)
    return [str(optimized.assignment[layer.name].backend) for layer in optimized.graph.layers]


@pytest.mark.parametrize("make", CORE, ids=lambda make: make.__name__)
def test_what_vela_leaves_to_the_core_is_refused_and_the_rest_runs(make: Callable[[Network, str], str]) -> None:
    network = around(make)
    support_ = EthosUSupport()
    reasons = {layer.name: support_.supports(network, layer, TARGET).reason for layer in network.layers}
    assert reasons.pop("core").startswith(CORE[make])
    assert set(reasons.values()) == {""}
    views = compiled(network)  # as if the support had not known it
    assert [view.names for view in views.failed] == [("core",)]
    assert views.reasons["core"].startswith(CORE[make])
    replaced = [each.replaced.names for each in views.substitutions]
    assert sorted(name for names in replaced for name in names) == sorted({x.name for x in network.layers} - {"core"})
    ran = check(network)
    assert set(ran) == {"EthosU", "CpuRef"}


def lstm(network: Network, source: str, units: int, name: str) -> str:
    random = np.random.default_rng(4)
    count = network.info(source).shape[-1]
    scale = Quantization.of(0.01)
    return network.add_lstm_layer(
        source,
        [random.integers(-100, 100, (units, count), np.int8) for _ in range(4)],
        [random.integers(-100, 100, (units, units), np.int8) for _ in range(4)],
        [random.integers(-99, 99, units, np.int32) for _ in range(4)],
        weights_quantizations=[scale] * 4,
        recurrent_quantizations=[scale] * 4,
        cell_quantization=Quantization.of(2**-11),
        quantization=Quantization.of(1 / 128, -1),
        name=name,
    )


def test_states_are_kept_between_runs() -> None:
    network = begun(1, 3, 5)
    first = lstm(network, "x", 4, "first")
    finished(network, lstm(network, first, 4, "second"), lstm(network, "x", 4, "third"))
    stream = program_of(compiled(network)).stream
    names = [tensor.name for tensor in stream.inputs]
    assert names == ["x", *(f"{layer}_{state}" for layer in ("first", "second", "third") for state in STATES)]
    assert stream.states == (), "they are inputs and outputs, at the same places"
    places = {tensor.name: tensor.offset for tensor in (*stream.inputs, *stream.outputs)}
    assert all(places[name] == places[f"{name}_next"] for name in names[1:])
    assert check(network, runs=4) == ["EthosU", "EthosU"]


def test_variables_outside_of_operators_are_plain_tensors() -> None:
    network = begun(1, 1, 8)
    past = TensorInfo("past", (1, 3, 8), DataType.INT8, quantization=SCALE)
    network.add_state(past, np.full((1, 3, 8), 7, np.int8))
    window = network.add_concatenation_layer(["past", "x"], axis=1, name="window")
    network.set_state("past", network.add_slice_layer(window, (0, 1, 0), (1, 3, 8), name="kept"))
    finished(network, network.add_softmax_layer(window, name="y"))
    assert check(network, runs=4) == ["EthosU"]


def test_inputs_and_outputs_keep_their_order() -> None:
    network = begun(1, 4, 4, 8)
    other = TensorInfo("w", (1, 4, 4, 8), DataType.INT8, quantization=SCALE)
    network.add_input(other)
    network.add_sub_layer("w", "x", quantization=SCALE, name="difference")
    network.add_sub_layer("x", "difference", quantization=SCALE, name="second")
    finished(network, "second", "difference")
    stream = program_of(compiled(network)).stream
    assert [tensor.name for tensor in stream.inputs] == ["w", "x"]
    assert [tensor.name for tensor in stream.outputs] == ["difference", "second"]
    assert check(network) == ["EthosU"]


def branches() -> Network:
    network = begun(1, 8, 8, 4)
    random = np.random.default_rng(5)
    scale = Quantization.of(0.01)
    for name in ("left", "right"):
        weights = random.integers(-99, 99, (4, 3, 3, 4), np.int8)
        network.add_conv2d_layer(
            "x", weights, padding="same", weights_quantization=scale, quantization=SCALE, name=name
        )
    return finished(network, network.add_add_layer("left", "right", quantization=SCALE, name="sum"))


def test_two_branches_divided_among_backends() -> None:
    network = branches()
    assert check(network) == ["EthosU"]
    hints = {"right": "CpuRef"}
    with Runtime() as runtime:
        optimized = optimize(network, TWO, runtime.registry, OptimizerOptions(hints=hints))
        number = runtime.load_network(optimized)
        inputs = inputs_of(network)
        assert_array_equal(runtime.enqueue_workload(number, inputs)[0], network.run(inputs)[0])
    ran = [str(optimized.assignment[layer.name].backend) for layer in optimized.graph.layers]
    assert sorted(set(ran)) == ["CpuRef", "EthosU"]


def test_programs_are_values() -> None:
    network = branches()
    first, second = program_of(compiled(network)), program_of(compiled(network))
    assert first is not second
    assert first == second
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301
    assert first != replace(first, stream=replace(first.stream, scratch_bytes=1))


def test_the_estimate_is_by_original_layer() -> None:
    network = begun(1, 9, 9, 3)
    weights = np.ones((2, 3, 3, 3), np.int8)
    padded = network.add_conv2d_layer(
        "x",
        weights,
        padding=((2, 1), (1, 2)),
        weights_quantization=Quantization.of(0.01),
        quantization=SCALE,
        name="padded",
    )
    finished(network, network.add_softmax_layer(padded, name="y"))
    report = program_of(compiled(network)).report
    assert [each.layer for each in report.layers] == ["padded", "y"], "the PAD that the file has is of the convolution"
    assert sum(each.cycles for each in report.layers) == report.cycles
    assert sum(each.cycles for each in report.operations) == report.cycles
    assert [each.offset for each in report.operations] == sorted({each.offset for each in report.operations})
    assert {each.layer for each in report.operations} == {"padded", "y"}
    estimate = report.estimate()
    assert dict(estimate.layers) == {each.layer: each.cycles for each in report.layers}
    assert estimate.source == "Vela 5.2.0 for ethos-u55-128, Ethos_U55_High_End_Embedded, Shared_Sram"
    assert [memory.name for memory in estimate.memories] == ["SRAM", "off-chip flash"]


def test_other_rules_of_rounding_are_refused_by_name() -> None:
    info = TensorInfo("x", (1, 4), DataType.INT8, quantization=SCALE)
    network = layer_network(LayerType.QUANTIZE, QuantizeDescriptor(), [info], SCALE, rounding=Rounding.SINGLE)
    assert EthosUSupport().supports(network, network.layer("layer"), TARGET).reason == (
        f"it rounds by {Rounding.SINGLE.phrase} ('single'), the NPU rounds as TensorFlow Lite Micro"
    )


def test_layers_are_refused_without_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "refused_alone", lambda view, *_, **__: dict.fromkeys(view.names, "asked"))
    network = begun(1, 4, 4, 2, dtype=DataType.INT16)
    network.add_mul_layer("x", "x", quantization=Quantization.of(0.001), name="product")
    network.add_add_layer("x", "product", quantization=Quantization.of(0.001), name="sum")
    finished(network, "sum")
    reasons = {each.name: EthosUSupport().supports(network, each, TARGET).reason for each in network.layers}
    assert reasons == {
        "product": "Vela 5.2 rounds some results otherwise than TensorFlow Lite Micro, by 1",
        "sum": "asked",
    }


@given(st.integers(1, 7), st.data())
def test_parts_are_connected_and_can_run_one_after_the_other(count: int, data: st.DataObject) -> None:
    network = begun(1, 4)
    tensors = ["x"]
    for number in range(count):
        first, second = (data.draw(st.sampled_from(tensors)) for _ in range(2))
        tensors.append(network.add_maximum_layer(first, second, name=f"n{number}"))
    finished(network, *tensors[1:])
    names = [layer.name for layer in network.layers]
    gone = data.draw(st.sets(st.sampled_from(names)))
    parts = connected_parts(SubgraphView.of(network, names), gone)
    own = {name: index for index, part in enumerate(parts) for name in part.names}
    assert sorted(own) == sorted(set(names) - gone)
    block = {name: f"part {own[name]}" if name in own else name for name in names}
    edges = {
        (block[source.name], block[layer.name])
        for layer in network.layers
        for tensor in layer.present_inputs
        if (source := network.producer(tensor)) is not None and block[source.name] != block[layer.name]
    }
    left = set(block.values())
    while ready := {name for name in left if not any(a in left and b == name for a, b in edges)}:
        left -= ready
    assert not left, f"a cycle through {left}"
    for part in parts:
        assert _connected(part), part.names


def _connected(part: SubgraphView) -> bool:
    groups = [{name} for name in part.names]
    for name, tensor in [(layer.name, tensor) for layer in part.layers for tensor in layer.present_inputs]:
        source = part.graph.producer(tensor)
        if source is not None and source.name in part.names:
            joined = [group for group in groups if group & {name, source.name}]
            groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    return len(groups) == 1


def test_reasons_are_read_from_what_vela_prints() -> None:
    log = (
        "Info: nothing\n\nWarning (supported operators) operator: CONV_2D, ofm: 'a'b_act'\n"
        "Reason: Too large.\nOnly small ones.\n\n"
        "Warning (supported operators) operator: None, ofm: 'c'\nReason: Unsupported opType\n\n"
        "Warning (supported operators) operator: RESIZE, ofm: 'd'\nReason: Odd\nRules:\n  - one\n  - two\n\nMore\n"
    )
    assert reasons_of(VelaResult(error="x", log=log)) == {
        "a'b": "Vela leaves CONV_2D to the core: Too large; Only small ones",
        "c": "Vela has no such operator for the NPU",
        "d": "Vela leaves RESIZE to the core: Odd",
    }


def test_a_failure_without_a_named_operator_is_traced_to_single_layers() -> None:
    network = begun(1, 1, 2, 4, dtype=DataType.INT16)
    alpha = np.array([-90, 20, 7, 100], np.int8).reshape(1, 1, 4)
    network.add_prelu_layer("x", alpha, alpha_quantization=SCALE, name="slope")
    finished(network, network.add_relu_layer("slope", name="y"))
    views = compiled(network)
    assert views.reasons == {
        "slope": "Vela does not compile it (RuntimeError: Non-passthrough operation (Mul) could not run on NPU)"
    }
    assert [each.replaced.names for each in views.substitutions] == [("y",)]
    assert check(network) == ["CpuRef", "EthosU"]
