# SPDX-License-Identifier: Apache-2.0
"""Executors of models with state: the C runs natively, and each run is compared with numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from ckernels import NativeNetwork
from compare import assert_arrays_equal
from device_bench import FAULT, build_bench, check_idle
from device_networks import NPU0, job
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import require_module
from numpy.testing import assert_array_equal
from small_networks import SCALE, int8_input
from state_networks import constants, read_late, rotation, running_sum, shift_register, stream, views

from ferrule.codegen.state_code import Update, updates
from ferrule.errors import UnsupportedError
from ferrule.firmware import emit
from ferrule.graph import DataType, TensorInfo
from ferrule.nativelib import zig_compiler
from ferrule.network import Network

STATE_ERROR = -7
RUNS = 3


NETWORKS: Mapping[str, tuple[Callable[[], Network], tuple[str, ...]]] = {
    "sum": (running_sum, ("memmove(before, total, 8U);",)),
    "stream": (stream, ()),
    "shift": (
        shift_register,
        tuple(f"memmove(delay_{n}, {'x' if n == 0 else f'delay_{n - 1}'}, 12U);" for n in (2, 1, 0)),
    ),
    "rotation": (
        rotation,
        (
            "memmove(f, d, 8U);",
            "ferrule_state_exchange(a, b, 8U);",
            "ferrule_state_exchange(b, c, 8U);",
            "ferrule_state_exchange(d, e, 8U);",
        ),
    ),
    "views": (
        views,
        ("memmove(input, x_flat, 16U);", "memmove(other, square_flat, 16U);", "memmove(square, own_square, 16U);"),
    ),
    "constants": (constants, ("memmove(once, ", "memmove(left, total, 8U);", "memmove(right, total, 8U);")),
    "read late": (read_late, ("memmove(old, new_, 8U);",)),
}
"""By name: a network, and the statements of its update."""


@pytest.mark.cc
@pytest.mark.parametrize("name", NETWORKS)
def test_runs_of_the_c_carry_the_state_as_numpy_does(name: str) -> None:
    make, update = NETWORKS[name]
    network = make()
    native = NativeNetwork(network)
    source = native.artifact.files[f"ferrule_{native.artifact.symbol}.c"]
    written = source.partition("/* the state of the next run */")[2].partition("ferrule_state_end")[0].split("\n")
    found = [line.strip() for line in written if line.strip()]
    assert len(found) == len(update)
    assert all(line.startswith(start) for line, start in zip(found, update, strict=True)), found
    random = np.random.default_rng(1)
    for _ in range(2):
        state = network.initial_state()
        assert native.reset() == 0
        for _ in range(RUNS):
            inputs = [random.integers(-9, 9, each.shape).astype(np.float32) for each in network.inputs]
            assert_arrays_equal(native.run(inputs), network.run(inputs, state=state))


@pytest.mark.cc
def test_no_compiler_relies_on_more_alignment_than_a_constant_has() -> None:
    """zig takes an array of 16 bytes, such as this state's initial value, for one at a multiple of 16."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    network = stream()
    native = NativeNetwork(network, compiler=zig_compiler("cc"))
    assert native.reset() == 0
    inputs = [np.ones(each.shape, np.float32) for each in network.inputs]
    assert_arrays_equal(native.run(inputs), network.run(inputs))


def test_a_state_that_is_written_in_place_needs_no_second_buffer() -> None:
    """The window of 24 B is alive with the input and then with the output; the kept part of it is the state."""
    native = NativeNetwork(stream())
    storage = native.artifact.storage
    assert storage.plan.placements["kept"] == storage.plan.placements["past"]
    assert (storage.plan.region("state").peak_bytes, native.artifact.workspace_bytes) == (20, 24 + 16)


@pytest.mark.cc
def test_instances_have_states_of_their_own_and_are_not_valid_before_a_reset() -> None:
    network = running_sum()
    native = NativeNetwork(network)
    x = np.ones((1, 2), np.float32)
    one, other = native.new_state(), native.new_state()
    native.run([x], state=one, expected=STATE_ERROR)
    assert (native.reset(one), native.reset(other)) == (0, 0)
    found = [native.run([x], state=each)[0].tolist() for each in (one, one, other, one)]
    assert found == [[[2, 0]], [[3, 1]], [[2, 0]], [[4, 2]]]


@given(st.data())
@settings(max_examples=50)
def test_updates_give_all_states_their_values_at_once(data: st.DataObject) -> None:
    """The new value of each state is a tensor of its own, or a view of any state's old value."""
    olds = [f"s{number}" for number in range(data.draw(st.integers(1, 6)))]
    news = {old: f"new of {old}" for old in olds}
    roots = {news[old]: root for old in olds if (root := data.draw(st.sampled_from([None, *olds]))) is not None}
    places = {old: f"old {old}" for old in olds}
    wanted = {old: places[roots[news[old]]] if news[old] in roots else news[old] for old in olds}
    for step in updates(news, roots):
        source = roots.get(step.source, step.source)
        if step.exchange:
            places[step.target], places[step.source] = places[step.source], places[step.target]
        else:
            places[step.target] = places.get(source, source)
    assert places == wanted


def test_an_update_without_a_cycle_exchanges_nothing() -> None:
    news = {"a": "b", "b": "c", "c": "x"}
    assert updates(news, {"b": "b", "c": "c"}) == (
        Update(target="a", source="b"),
        Update(target="b", source="c"),
        Update(target="c", source="x"),
    )


@pytest.mark.cc
def test_a_run_that_fails_at_any_device_call_leaves_the_state_invalid(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    """The device keeps tensors in its own memory; it computes the new value, which the core copies to the state."""
    require_module("cffi", "pip install 'ferrule[run]'")
    network = Network("device_sum")
    network.add_input(int8_input("x", 1, 8))
    network.add_state(int8_input("before", 1, 8), np.full((1, 8), 3, np.int8))
    network.set_state("before", network.add_add_layer("x", "before", quantization=SCALE, name="total"))
    network.set_outputs([network.add_relu_layer("total", name="y")])
    made = emit(network, job({"total": "SoftNpu/npu0"}, (NPU0,)))
    bench = build_bench(made, tmp_path, host_cc)
    x = np.arange(-40, 40, 10, dtype=np.int8).reshape(1, 8)
    assert bench.run({"x": x}).status == STATE_ERROR
    for position in range(len(made.device_calls)):
        state = network.initial_state()
        assert bench.reset() == 0
        for _ in range(2):
            found = bench.run({"x": x})
            assert_array_equal(found.outputs["y"], network.run([x], state=state)[0])
        assert bench.run({"x": x}, fail_at=position).status == FAULT
        after = bench.run({"x": x})
        assert (after.status, after.trace) == (STATE_ERROR, [])
        check_idle(bench)


def test_a_network_without_inputs_is_refused() -> None:
    network = Network("clock")
    network.add_state(TensorInfo("now", (1,), DataType.FLOAT32), np.ones(1, np.float32))
    network.set_state("now", network.add_add_layer("now", "now", name="later"))
    network.set_outputs(["later"])
    with pytest.raises(UnsupportedError, match="network 'clock' has no inputs, and the C of a model needs at least"):
        NativeNetwork(network)


@pytest.mark.cc
def test_a_state_that_nothing_reads_or_changes_is_no_warning() -> None:
    network = running_sum()
    network.add_state(TensorInfo("idle", (2,), DataType.FLOAT32), np.ones(2, np.float32))
    only = Network("idle")
    only.add_input(TensorInfo("x", (1, 2), DataType.FLOAT32))
    only.add_state(TensorInfo("idle", (2,), DataType.FLOAT32), np.ones(2, np.float32))
    only.set_outputs([only.add_relu_layer("x", name="y")])
    for each in (network, only):
        x = np.array([[1, -2]], np.float32)
        assert_array_equal(NativeNetwork(each).run([x])[0], each.run([x])[0])
