# SPDX-License-Identifier: Apache-2.0
"""A stream is used only if it passes its trial; the layers to which it owes a difference go to the core."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from vela_divided import run_networks

from ferrule.backends.device import BackendId, Device
from ferrule.backends.ethos_u import compiler, support, trial
from ferrule.backends.ethos_u.bisection import Culprits, culprits
from ferrule.backends.ethos_u.compiled import CompiledStream
from ferrule.backends.ethos_u.configuration import CONFIGURATIONS
from ferrule.backends.ethos_u.known_differences import may_wrap
from ferrule.backends.ethos_u.program import EthosUProgram
from ferrule.backends.ethos_u.tables import TABULATED, has_tables, wrong_tables
from ferrule.backends.ethos_u.trial import Verdict, needs_own_trial, trial_inputs, verdict
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.errors import FerruleError
from ferrule.graph import DataType, Layer, LayerType, Quantization, SubgraphView, TensorInfo
from ferrule.network import Network
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.runtime import Runtime

pytestmark = pytest.mark.usefixtures("ethos_u_vela")
INT8, INT16 = DataType.INT8, DataType.INT16
SCALE = Quantization.of(0.05, 3)
DEFAULT = "ethos-u55-128"


def begun(
    shape: tuple[int, ...], dtype: DataType = INT8, quantization: Quantization = SCALE, count: int = 1
) -> Network:
    network = Network("case")
    for index in range(count):
        network.add_input(TensorInfo(f"x{index}", shape, dtype, quantization=quantization))
    return network


def finished(network: Network, output: str) -> Network:
    network.set_outputs([output])
    return network


def convolution(
    network: Network, source: str, outputs: int, scale: float, output: Quantization, *, groups: int = 1
) -> str:
    """Add a convolution of 3 x 3 with weights of one scale."""
    channels = network.info(source).shape[3] // groups
    weights = np.random.default_rng(1).integers(-127, 128, (outputs, 3, 3, channels)).astype(np.int8)
    quantization = Quantization(scales=(scale,) * outputs, zero_points=(0,) * outputs, axis=0)
    return network.add_conv2d_layer(
        source, weights, padding="same", weights_quantization=quantization, quantization=output
    )


def grouped_batch() -> Network:
    network = begun((2, 8, 7, 4))
    return finished(network, convolution(network, "x0", 8, 0.01, Quantization.of(0.9), groups=2))


def mirrored(second: Callable[[Network, str], str]) -> Network:
    network = begun((1, 6, 5, 4))
    moved = network.add_reshape_layer(
        network.add_mirror_pad_layer("x0", [(0, 0), (2, 1), (2, 2), (0, 0)], reflect=False), (1, 81, 1, 4)
    )
    return finished(network, second(network, moved))


def mirrored_sum() -> Network:
    return mirrored(lambda network, name: network.add_add_layer(name, name, quantization=Quantization.of(0.11, 1)))


def mirrored_convolution() -> Network:
    return mirrored(lambda network, name: convolution(network, name, 3, 0.01, Quantization.of(0.5)))


def transposed_table() -> Network:
    network = begun((1, 6, 5, 7))
    return finished(network, network.add_tanh_layer(network.add_transpose_layer("x0", [0, 2, 1, 3])))


def tied_logistic() -> Network:
    network = begun((1, 2, 2, 1), quantization=Quantization.of(1 / 256, -128))
    return finished(network, network.add_logistic_layer("x0"))


def tied_tanh_inside() -> Network:
    network = begun((1, 4, 4, 2))
    table = network.add_tanh_layer(convolution(network, "x0", 3, 0.01, Quantization.of(1 / 1024)))
    return finished(network, network.add_max_pool2d_layer(table, (2, 2)))


def beside_a_power_of_two() -> Network:
    """The factor is so little below a power of two that its 31 bits round to 2^31."""
    unit = 2.0**-23
    network = begun((1, 6, 5, 8), INT16, Quantization.of(2**-17 * (1 + 2 * unit)))
    return finished(network, convolution(network, "x0", 8, 2**-5 * (1 - unit), Quantization.of(2**-12 * (1 + unit))))


def wrapping_squares() -> Network:
    network = begun((1, 4, 4, 4), INT16, Quantization.of(1 / 256), count=2)
    return finished(network, network.add_squared_difference_layer("x0", "x1", quantization=Quantization.of(2**-18)))


def wrapping_sums() -> Network:
    network = begun((1, 6, 5, 8), INT16, Quantization.of(1.0))
    return finished(network, convolution(network, "x0", 4, 0.01, Quantization.of(1 / 4096)))


def minimum_of_a_curve() -> Network:
    """Most minimums are the lowest value, so that few inputs show that values are mistaken for others."""
    network = begun((1, 2, 7, 4), quantization=Quantization.of(0.005679667461663485, 127))
    curve = network.add_leaky_relu_layer(
        "x0", 0.16371284425258636, quantization=Quantization.of(0.24492105841636658, 127)
    )
    lowest = network.add_reduce_min_layer(curve, [2], keep_dims=True)
    return finished(network, network.add_expand_dims_layer(lowest, 4))


def many_classes() -> Network:
    network = begun((1, 5000), quantization=Quantization.of(1 / 16))
    layer = Layer("softmax", LayerType.SOFTMAX, SoftmaxDescriptor(), inputs=("x0",), outputs=("softmax",))
    output = TensorInfo("softmax", (1, 5000), INT16, quantization=Quantization.of(2**-16, -32768))
    network.add_layer(layer, [output])
    return finished(network, "softmax")


def two_convolutions() -> Network:
    network = begun((1, 8, 8, 4))
    first = convolution(network, "x0", 4, 0.01, Quantization.of(0.5))
    return finished(network, convolution(network, first, 4, 0.01, Quantization.of(2.0)))


def divided(network: Network, configuration: str = DEFAULT) -> OptimizedNetwork:
    """Divide a network between the NPU and numpy, and check its results for other inputs than the trial's."""
    device = Device(name="npu0", backend=BackendId("EthosU"), binding={"configuration": configuration})
    options = OptimizerOptions(devices=(device,), simplify=False)
    with Runtime() as runtime:
        optimized = optimize(network, ["EthosU", "CpuRef"], runtime.registry, options)
        number = runtime.load_network(optimized)
        random = np.random.default_rng(5)
        for _ in range(3):
            limits = [np.iinfo(info.dtype.numpy) for info in network.inputs]
            inputs = [
                random.integers(limit.min, limit.max, info.shape, info.dtype.numpy, endpoint=True)
                for limit, info in zip(limits, network.inputs, strict=True)
            ]
            for found, expected in zip(runtime.enqueue_workload(number, inputs), network.run(inputs), strict=True):
                assert_array_equal(found, expected)
    return optimized


def refused(optimized: OptimizedNetwork) -> dict[str, str]:
    return {layer: reason for (layer, backend), reason in optimized.refusals.items() if backend == "EthosU" and reason}


@pytest.mark.parametrize(
    ("make", "configuration", "layers", "words"),
    [
        (grouped_batch, DEFAULT, {"conv_2d_0"}, "its stream is not used"),
        (mirrored_sum, DEFAULT, {"mirror_pad_0", "reshape_1"}, "as 3 further compilations found"),
        (mirrored_convolution, DEFAULT, {"mirror_pad_0", "reshape_1"}, "a stream of 'mirror_pad_0' to 'reshape_1'"),
        (transposed_table, "ethos-u55-32", {"transpose_0", "tanh_1"}, "destination of the DMA"),
        (transposed_table, "ethos-u55-64", {"transpose_0", "tanh_1"}, "the model of the NPU cannot execute it"),
        (tied_logistic, DEFAULT, {"logistic_0"}, "differs from the reference in 1 of 256 entries, by up to 1"),
        (tied_tanh_inside, DEFAULT, {"tanh_1"}, "differs from the reference in 2 of 256 entries, by up to 1"),
        (beside_a_power_of_two, DEFAULT, {"conv_2d_0"}, "differ from the reference"),
        (wrapping_squares, DEFAULT, {"squared_difference_0"}, "by up to 65535"),
        (wrapping_sums, DEFAULT, {"conv_2d_0"}, "the NPU saturates sums that may wrap"),
        (minimum_of_a_curve, "ethos-u55-64", {"reduce_min_1", "expand_dims_2"}, "as 4 further compilations found"),
        (many_classes, DEFAULT, {"softmax"}, "5000 of 5000 values"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_what_differs_goes_to_the_core(
    make: Callable[[], Network], configuration: str, layers: set[str], words: str
) -> None:
    reasons = refused(divided(make(), configuration))
    assert set(reasons) == layers
    assert all(words in reason for reason in reasons.values())


@pytest.mark.parametrize("make", [two_convolutions, transposed_table], ids=lambda make: make.__name__)
def test_what_passes_stays_on_the_npu(make: Callable[[], Network]) -> None:
    optimized = divided(make())
    assert not refused(optimized)
    assert [layer.type for layer in optimized.graph.layers] == [LayerType.PRE_COMPILED]


def test_a_layer_that_multiplies_stays_beside_a_culprit() -> None:
    """The convolution behind the mirrored image is worth the most on the NPU, and its own stream passes."""
    optimized = divided(mirrored_convolution())
    owners = {str(each.backend) for each in optimized.assignment.values()}
    assert owners == {"EthosU", "CpuRef"}


@pytest.fixture
def program() -> tuple[Network, CompiledStream]:
    network = two_convolutions()
    (layer,) = divided(network).graph.layers
    assert isinstance(layer.descriptor, PreCompiledDescriptor)
    assert isinstance(layer.descriptor.payload, EthosUProgram)
    return network, layer.descriptor.payload.stream


def view_of(network: Network) -> SubgraphView:
    return SubgraphView.of(network, [layer.name for layer in network.layers])


def test_damaged_streams_fail(program: tuple[Network, CompiledStream], own_cache: Path) -> None:
    """Each bit of the first scale, a truncated payload, and a scratch that is too small."""
    network, stream = program
    view = view_of(network)
    assert verdict(stream, view, b"m").passes
    damaged = bytearray(stream.read_only)
    damaged[-16] ^= 1
    assert "differ from the reference" in verdict(replace(stream, read_only=bytes(damaged)), view, b"m").wrong
    for broken in (
        replace(stream, payload=stream.payload[:-4]),
        replace(stream, read_only=stream.read_only[:16]),
    ):
        assert verdict(broken, view, b"m").wrong.startswith("the model of the NPU cannot execute it: ")


def test_a_reference_that_refuses_the_inputs_is_no_pass(
    program: tuple[Network, CompiledStream], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> object:
        raise FerruleError("an index is too high")

    monkeypatch.setattr(trial, "execute", refuse)
    network, stream = program
    assert verdict(stream, view_of(network), b"m").wrong == "the reference cannot judge it: an index is too high"


def test_verdicts_are_kept_by_all_that_decides_them(
    program: tuple[Network, CompiledStream], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, stream = program
    tried: list[str] = []
    monkeypatch.setattr(trial, "_tried", lambda *_: tried.append("") or Verdict())
    view = view_of(network)
    for _ in range(2):
        verdict(stream, view, b"m")
    assert len(tried) == 1
    verdict(stream, view, b"n")
    verdict(replace(stream, read_only=stream.read_only + b"\0"), view, b"m")
    verdict(replace(stream, scratch_bytes=stream.scratch_bytes + 16), view, b"m")
    verdict(replace(stream, inputs=(replace(stream.inputs[0], offset=16),)), view, b"m")
    monkeypatch.setattr(trial, "trial_version", lambda: "another")
    verdict(stream, view, b"m")
    assert len(tried) == 6


def test_the_version_is_of_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    before = trial.trial_version()
    read = trial.read_bytes
    seen = {before}
    for name in ("fixed_point.py", "interpreter.py", "tensor.py", "execute.h", "_frozen.py", "nativelib.py"):
        with monkeypatch.context() as patch:
            patch.setattr(trial, "read_bytes", lambda path, name=name: read(path) + b"#" * (path.name == name))
            seen.add(version())
    monkeypatch.setenv("CPATH", "/elsewhere")
    seen.add(version())
    monkeypatch.setenv("CC", "missing")
    seen.add(version())
    assert len(seen) == 9, "without a compiler, numpy executes the streams, which needs a version, too"
    trial.trial_version.cache_clear()


def test_the_version_is_of_sources_at_any_depth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / "operators" / "one" / "two" / "three"
    deep.mkdir(parents=True)
    for path in (deep / "deep.py", tmp_path / "_frozen.py", tmp_path / "nativelib.py"):
        path.write_text("")
    monkeypatch.setattr(trial, "table", SimpleNamespace(__file__=str(tmp_path / "operators" / "table.py")))
    before = version()
    (deep / "deep.py").write_text("changed")
    assert version() != before
    trial.trial_version.cache_clear()


def version() -> str:
    trial.trial_version.cache_clear()
    return trial.trial_version()


def test_the_inputs_have_all_that_a_trial_promises() -> None:
    network = begun((1, 40, 40, 4))
    sets = {label: inputs["x0"] for label, inputs in trial_inputs(network, macs=10**6)}
    assert set(sets) == {"random", "mixed", "the lowest", "the highest", "zero-point"}
    assert len(np.unique(sets["random"])) == 256
    shares = [float(np.mean(sets["mixed"] == value)) for value in (-128, 127)]
    assert all(0.2 < share < 0.3 for share in shares)
    assert [np.unique(sets[label]).tolist() for label in ("the lowest", "the highest", "zero-point")] == [
        [-128],
        [127],
        [3],
    ]


def test_a_small_network_has_further_sets_mostly_of_one_value() -> None:
    network = begun((1, 40, 40, 4))
    sparse = [inputs["x0"] for label, inputs in trial_inputs(network, macs=1) if label == "sparse"]
    bases = [-128, 127, 3]
    shares = [float(np.mean(values != bases[number % 3])) for number, values in enumerate(sparse)]
    assert all(len(np.unique(values)) > 150 for values in sparse)
    assert np.allclose(shares, [0.5] * 3 + [0.25] * 3 + [0.125] * 3 + [0.0625] * 3, atol=0.03)


def test_a_large_network_has_one_set_of_inputs() -> None:
    ((label, inputs),) = trial_inputs(begun((1, 6, 10, 2)), macs=10**9)
    values = inputs["x0"].reshape(-1)
    assert label == "banded"
    assert len(np.unique(values[:60])) > 40
    assert values[60:].tolist() == [-128] * 20 + [127] * 20 + [3] * 20
    ((_, inputs),) = trial_inputs(begun((1, 1, 1, 1)), macs=10**9)
    assert inputs["x0"].shape == (1, 1, 1, 1)


def test_layers_with_rare_faults_are_tried_on_their_own() -> None:
    plain, wide, table = two_convolutions(), wrapping_squares(), tied_logistic()
    assert not any(needs_own_trial(layer, plain) for layer in plain.layers)
    assert all(needs_own_trial(layer, wide) for layer in wide.layers)
    assert all(needs_own_trial(layer, table) for layer in table.layers)


def test_only_sums_beyond_32_bits_may_wrap() -> None:
    for scale, wraps in ((1 / 256, False), (1 / 4096, True)):
        network = begun((1, 6, 5, 8), INT16, Quantization.of(1.0))
        name = convolution(network, "x0", 4, 0.01, Quantization.of(scale))
        assert may_wrap(network, network.layer(name)) == wraps
    network = begun((1, 1, 1, 1))
    name = network.add_conv2d_layer(
        "x0",
        np.ones((1, 1, 1, 1), np.int8),
        np.array([2**31 - 1 - 255], np.int32),  # more is refused when the network is made
        weights_quantization=Quantization.of(0.01),
        quantization=SCALE,
    )
    assert not may_wrap(network, network.layer(name))


def test_each_table_is_compared_with_the_layer_s() -> None:
    network = begun((1, 2, 2, 1))
    first = network.add_logistic_layer("x0")
    second = network.add_hard_swish_layer(first, quantization=SCALE)
    view = view_of(finished(network, second))
    every = begun((1, 16, 16, 1))
    values = np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1)
    finished(every, every.add_logistic_layer("x0"))
    right = every.run([values])[0].tobytes()
    swish = begun((1, 16, 16, 1), quantization=Quantization.of(1 / 256, -128))
    finished(swish, swish.add_hard_swish_layer("x0", quantization=SCALE))
    other = swish.run([values])[0].tobytes()
    wrong = np.frombuffer(right, np.int8).copy()
    wrong[7] ^= 2
    assert has_tables(view)
    assert wrong_tables(view, {right, other}) == {}
    assert wrong_tables(view, {other}) == {}  # a stream without a table of the layer is judged by its outputs
    reason = "the table that Vela compiles for it differs from the reference in 1 of 256 entries, by up to 2"
    assert wrong_tables(view, {wrong.tobytes(), other}) == {first: reason}
    assert not has_tables(view_of(two_convolutions()))


def test_vela_looks_up_what_is_said_to_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each such layer, the trial compares a table of its stream."""
    for type_ in sorted(TABULATED):
        network = begun((1, 3, 3, 2), quantization=Quantization.of(0.04, -128))
        adders = {
            LayerType.HARD_SWISH: lambda own: own.add_hard_swish_layer("x0", quantization=SCALE),
            LayerType.LEAKY_RELU: lambda own: own.add_leaky_relu_layer("x0", 0.1, quantization=SCALE),
            LayerType.LOGISTIC: lambda own: own.add_logistic_layer("x0"),
            LayerType.TANH: lambda own: own.add_tanh_layer("x0"),
        }
        add = adders.get(
            type_, lambda own, type_=type_: own.add_elementwise_unary_layer(type_, "x0", quantization=SCALE)
        )
        finished(network, add(network))
        seen: list[int] = []
        with monkeypatch.context() as patched:
            patched.setattr(trial, "wrong_tables", lambda _, tables, seen=seen: seen.append(len(tables)) or {})
            patched.setattr(trial, "Store", _Forgetful)
            patched.setattr(support, "_judged", {})
            divided(network)
        assert set(seen) == {1}, type_


class _Forgetful:
    def __init__(self, name: str) -> None:
        del name

    def get(self, name: str) -> None:
        del name

    def keep(self, name: str, data: bytes) -> None:
        del name, data


@given(st.integers(1, 40), st.data())
def test_the_search_finds_a_run_that_differs_by_both_of_its_ends(count: int, data: st.DataObject) -> None:
    network = begun((1, 1, 1, 1))
    at = "x0"
    for _ in range(count):
        at = network.add_relu_layer(at)
    view = view_of(finished(network, at))
    first = data.draw(st.integers(0, count - 1))
    last = data.draw(st.integers(first, count - 1))
    asked: list[tuple[str, ...]] = []

    def judge(part: SubgraphView) -> str:
        asked.append(part.names)
        return "wrong" if {view.names[first], view.names[last]} <= set(part.names) else ""

    found = culprits(view, "wrong", judge)
    assert found.names == view.names[first : last + 1]
    assert found.compilations == len(asked) <= 2 * math.ceil(math.log2(count)) if count > 1 else not asked


def test_the_search_keeps_what_is_known_if_no_part_differs() -> None:
    """Vela fuses layers otherwise where another tensor is an output."""
    view = view_of(two_convolutions())
    found = culprits(view, "7 values differ", lambda _: "")
    assert found == Culprits(names=view.names, wrong="7 values differ", compilations=2)
    assert found.reason == (
        "a stream of 'conv_2d_0' to 'conv_2d_1' is not used, as 2 further compilations found: 7 values differ"
    )
    assert Culprits(names=("a",), wrong="w").reason == "its stream is not used: w"


def test_layers_that_multiply_go_back_if_no_other_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        compiler, "verdict", lambda _, view, __: Verdict(wrong="it differs" if len(view.names) == 2 else "")
    )
    assert set(refused(divided(two_convolutions()))) == {"conv_2d_0", "conv_2d_1"}


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_are_exact(seed: int) -> None:
    """Each on another configuration."""
    (row,) = run_networks([seed])
    assert not row.failure


@pytest.mark.nightly
@pytest.mark.parametrize("configuration", [each.name for each in CONFIGURATIONS])
@pytest.mark.parametrize("first", range(20_000, 20_600, 20))
def test_many_random_networks_are_exact(first: int, configuration: str) -> None:
    rows = run_networks(range(first, first + 20), [configuration])
    assert [row for row in rows if row.failure] == []
