# SPDX-License-Identifier: Apache-2.0
"""IF and WHILE: results, limits and what is refused; on numpy, on CpuAcc's host face and on a board."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import oracle
import pytest
from compare import assert_arrays_equal
from needs import require_module
from numpy.testing import assert_array_equal

import ferrule
from ferrule.codegen import digest
from ferrule.errors import IterationLimitError, ModelError, UnsupportedError
from ferrule.formats import load, to_tflite
from ferrule.graph import Array, DataType, LayerType, Quantization, TensorInfo
from ferrule.link import RunFailedError
from ferrule.network import Network
from ferrule.network.execution import run_graph
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.optimizer.simplify import simplify
from ferrule.report.inspecting import inspect_network
from ferrule.runtime import Runtime

X = TensorInfo("x", (2, 3), DataType.INT8, quantization=Quantization.of(0.5, 3))
FLAGS = TensorInfo("flags", (4,), DataType.BOOL)


def graph(name: str, *inputs: TensorInfo) -> Network:
    """Return a network with inputs and no layers."""
    network = Network(name)
    for info in inputs:
        network.add_input(info)
    return network


def flags_loop(limit: int = 3) -> Network:
    """Return a loop that doubles `x` once for each true flag at the front of `flags`, and counts in a constant's copy.

    The body has an IF in it, which negates the sum of two values by a transposition if `swap` is true; the loop passes
    `swap` on unchanged.
    """
    swap = TensorInfo("swap", (1,), DataType.BOOL)
    then, other = graph("then", X), graph("else", X)
    turned = then.add_transpose_layer(then.add_reshape_layer("x", (3, 2)), (1, 0), name="turned")
    then.set_outputs([turned])
    other.set_outputs(["x"])
    condition, body = (graph(name, X, FLAGS, swap) for name in ("condition", "body"))
    condition.set_outputs([condition.add_slice_layer("flags", (0,), (1,), name="first")])
    (chosen,) = body.add_if_layer("swap", ["x"], then, other, name="chosen")
    doubled = body.add_add_layer(chosen, chosen, quantization=X.quantization, name="doubled")
    rest = body.add_slice_layer("flags", (1,), (3,), name="rest")
    end = body.add_constant_array("end", np.array([False]))
    body.set_outputs([doubled, body.add_concatenation_layer([rest, end], 0, name="shifted"), "swap"])
    network = graph("loop", X, FLAGS, swap)
    network.set_outputs(network.add_while_layer(["x", "flags", "swap"], condition, body, limit=limit, name="loop"))
    return network


def branches() -> Network:
    """Return an IF of a constant and an input, whose branches give an input, a constant and one tensor twice."""
    bias = TensorInfo("bias", (2, 3), DataType.INT8, quantization=X.quantization)
    then, other = graph("then", X, bias), graph("else", X, bias)
    sums = then.add_add_layer("x", "bias", quantization=X.quantization, name="sums")
    then.set_outputs([sums, sums, "bias"])
    fixed = other.add_constant_array("fixed", np.arange(6, dtype=np.int8).reshape(2, 3), X.quantization)
    other.set_outputs(["bias", fixed, "x"])
    network = graph("branches", TensorInfo("condition", (), DataType.BOOL), X)
    held = network.add_constant_array("held", np.full((2, 3), 7, np.int8), X.quantization)
    network.set_outputs(network.add_if_layer("condition", ["x", held], then, other, name="if"))
    return network


def loop_inputs(true: int, *, swap: bool) -> list[Array]:
    x = np.array([[4, 5, 3], [2, 7, 1]], np.int8)
    return [x, np.arange(4) < true, np.array([swap])]


def test_a_loop_ends_when_its_condition_is_false() -> None:
    network = flags_loop()
    for true in range(4):
        for swap in (False, True):
            inputs = loop_inputs(true, swap=swap)
            wanted = (inputs[0].astype(int) - 3).copy()
            for _ in range(true):
                wanted = 2 * (wanted.reshape(3, 2).T if swap else wanted)
            found = network.run(inputs)
            assert_array_equal(found[0], np.clip(wanted + 3, -128, 127))
            assert (found[1].any(), found[2].tolist()) == (False, [swap])
            assert_arrays_equal(found, oracle.tflm(network, inputs))


def test_a_branch_may_give_inputs_constants_and_a_tensor_twice() -> None:
    network = branches()
    x = np.array([[9, -100, 3], [0, 1, 2]], np.int8)
    for condition in (np.array(True), np.array(False)):
        assert_arrays_equal(network.run([condition, x]), oracle.tflm(network, [condition, x]))


@pytest.mark.parametrize("backend", ["CpuAcc", "CpuRef"])
def test_the_host_equals_numpy_and_stops_at_the_limit(backend: str) -> None:
    with Runtime() as runtime:
        options = OptimizerOptions(fallback=False)

        def loaded(network: Network) -> int:
            return runtime.load_network(optimize(network, [backend], runtime.registry, options))

        for network, samples in (
            (flags_loop(), [loop_inputs(true, swap=swap) for true in range(4) for swap in (False, True)]),
            (branches(), [[np.array(value), np.full((2, 3), 5, np.int8)] for value in (True, False, True)]),
        ):
            number = loaded(network)
            for inputs in samples:
                found = runtime.enqueue_workload(number, inputs)
                assert_arrays_equal(found, network.run(inputs))
        short = flags_loop(limit=2)
        number = loaded(short)
        for run in (partial(runtime.enqueue_workload, number), short.run):
            with pytest.raises(IterationLimitError, match=r"layer 'loop'.* after 2 iterations"):
                run(loop_inputs(3, swap=False))
            run(loop_inputs(2, swap=False))


def test_a_board_equals_numpy_and_stops_at_the_limit() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    loop, other = ferrule.compile([flags_loop(limit=2), branches()])
    x, flags, swap = (
        np.concatenate(arrays)
        for arrays in zip(*[loop_inputs(n, swap=s) for n in range(3) for s in (False, True)], strict=True)
    )
    report = loop.run([x, flags, swap], check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    with pytest.raises(RunFailedError, match=r"-14 \(ITERATIONS\)"):
        loop.run(loop_inputs(3, swap=False))
    for condition in (True, False):
        report = other.run([np.array(condition), np.full((2, 3), 5, np.int8)])
        assert report.verdict is ferrule.Verdict.EXACT


def test_all_graphs_are_listed_and_digested() -> None:
    (layer,) = inspect_network(flags_loop()).layers
    names = ["condition/first", "body/chosen", "body/doubled", "body/rest", "body/shifted"]
    assert [each.name for each in layer.inner] == names
    assert [each.name for each in layer.inner[1].inner] == ["then_branch/reshape_0", "then_branch/turned"]
    assert layer.constant_bytes == 1
    assert layer.parameters.keys() == {"condition", "body", "limit"}
    assert digest(flags_loop()) == digest(flags_loop()) != digest(flags_loop(limit=4))
    other = branches()
    then = other.layers[0].descriptor.graphs["then_branch"]
    assert isinstance(then, Network)
    before = digest(other)
    then.add_relu_layer("x", name="more")
    assert digest(other) != before


def nested_loops(limit: int) -> Network:
    """Return a loop over `outer` around a loop over `inner`, inside an IF; each of the latter negates `x` once more."""
    outer, inner = (TensorInfo(name, (3,), DataType.BOOL) for name in ("outer", "inner"))

    def shift(network: Network, flags: str) -> str:
        rest = network.add_slice_layer(flags, (1,), (2,), name=f"{flags}_rest")
        end = network.add_constant_array(f"{flags}_end", np.array([False]))
        return network.add_concatenation_layer([rest, end], 0, name=f"{flags}_shifted")

    low_condition, low = graph("low condition", X, inner), graph("low", X, inner)
    low_condition.set_outputs([low_condition.add_slice_layer("inner", (0,), (1,))])
    low.set_outputs([low.add_add_layer("x", "x", quantization=X.quantization, name="sum"), shift(low, "inner")])
    then, other = graph("then", X, inner), graph("else", X, inner)
    then.set_outputs(then.add_while_layer(["x", "inner"], low_condition, low, limit=limit)[:1])
    other.set_outputs(["x"])
    condition, body = graph("condition", X, outer, inner), graph("body", X, outer, inner)
    condition.set_outputs([condition.add_slice_layer("outer", (0,), (1,))])
    first = body.add_slice_layer("outer", (0,), (1,), name="first")
    (summed,) = body.add_if_layer(first, ["x", "inner"], then, other, name="summed")
    body.set_outputs([summed, shift(body, "outer"), "inner"])
    network = graph("nested", X, outer, inner)
    network.set_outputs(network.add_while_layer(["x", "outer", "inner"], condition, body, limit=limit, name="loop")[:1])
    return network


def test_the_iterations_of_nested_loops_count_together() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    network = nested_loops(limit=6)
    x = np.array([[4, 2, 3], [2, 4, 3]], np.int8)
    enough = [x, np.array([True, True, False]), np.array([True, True, False])]  # 2 + 2 * 2 iterations
    assert_arrays_equal(network.run(enough), oracle.tflm(network, enough))
    too_many = [x, np.array([True, True, False]), np.array([True, True, True])]
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry, OptimizerOptions(fallback=False)))
        assert_array_equal(runtime.enqueue_workload(number, enough), network.run(enough))
        for run in (network.run, partial(runtime.enqueue_workload, number)):
            with pytest.raises(IterationLimitError, match="after 6 iterations"):
                run(too_many)
    firmware = ferrule.compile(network)
    assert firmware.run(enough, check_ownership=True).verdict is ferrule.Verdict.EXACT
    with pytest.raises(RunFailedError, match=r"-14 \(ITERATIONS\)"):
        firmware.run(too_many)


def test_a_file_keeps_the_graphs_but_not_the_limit() -> None:
    again = load(to_tflite(flags_loop()), max_iterations=2)
    with pytest.raises(IterationLimitError):
        again.run(loop_inputs(3, swap=True))
    assert_arrays_equal(again.run(loop_inputs(2, swap=True)), flags_loop().run(loop_inputs(2, swap=True)))


def test_graphs_inside_are_simplified() -> None:
    then, other = graph("then", X), graph("else", X)
    turned = then.add_transpose_layer(then.add_transpose_layer("x", (1, 0)), (1, 0))
    then.set_outputs([then.add_relu_layer(turned, name="y")])
    other.set_outputs(["x"])
    network = graph("if", replace(FLAGS, shape=(1,)), X)
    network.set_outputs(network.add_if_layer("flags", ["x"], then, other))
    simple = simplify(network)
    assert [layer.type for layer in simple.layers[0].descriptor.graphs["then_branch"].layers] == [LayerType.RELU]
    inputs = [np.array([True]), np.array([[9, -100, 3], [0, 1, 2]], np.int8)]
    assert_array_equal(run_graph(simple, inputs), network.run(inputs))


def loop_of(*, condition: TensorInfo = FLAGS, limit: int = 1) -> None:
    """Add a loop over `x` and `flags` to a network."""
    network = graph("loop", X, FLAGS)
    body, test = graph("body", X, FLAGS), graph("condition", X, condition)
    body.set_outputs(["x", "flags"])
    test.set_outputs(["flags"])
    network.add_while_layer(["x", "flags"], test, body, limit=limit)


def test_what_is_refused() -> None:
    one = replace(FLAGS, shape=(1,))
    for kind, text, make in (
        (UnsupportedError, r"condition: tensor 'flags' is bool\[4\], expected one bool", loop_of),
        (ModelError, r"condition: 'flags' of its inputs is bool\[1\], .* bool\[4\]", lambda: loop_of(condition=one)),
        (ModelError, "the limit is 0 iterations", lambda: loop_of(limit=0)),
    ):
        with pytest.raises(kind, match=f"layer 'while_0' WHILE: {text}"):
            make()
    then, other = graph("then", X), graph("else", X)
    then.set_outputs(["x"])
    network = graph("if", X, one)
    with pytest.raises(ModelError, match="else_branch: it has 0 outputs, expected 1"):
        network.add_if_layer("flags", ["x"], then, other)
    other.add_state(replace(X, name="kept"), np.zeros((2, 3), np.int8))
    other.set_outputs(["x"])
    with pytest.raises(ModelError, match="else_branch: graph 'else' has states"):
        network.add_if_layer("flags", ["x"], then, other)
    with pytest.raises(UnsupportedError, match=r"'x' is int8\[2, 3\], expected one bool"):
        network.add_if_layer("x", ["x"], then, then)


def test_graphs_may_not_be_nested_too_deeply() -> None:
    one = replace(FLAGS, shape=(1,))
    inner = graph("innermost", X, one)
    inner.set_outputs(["x"])
    for depth in range(8):
        outer = graph(f"outer_{depth}", X, one)
        outer.set_outputs(outer.add_if_layer("flags", ["x", "flags"], inner, inner))
        inner = outer
    with pytest.raises(UnsupportedError, match="more than 8 graphs call one another"):
        graph("outermost", X, one).add_if_layer("flags", ["x", "flags"], inner, inner)
