# SPDX-License-Identifier: Apache-2.0
"""Periods of CIRCULAR_BUFFER: the runs that TensorFlow Lite Micro does not end early have its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from compare import graph_differences
from numpy.testing import assert_array_equal
from oracle import tflm_sequence

from ferrule.errors import FerruleError, UnsupportedError
from ferrule.formats import load, to_tflite
from ferrule.formats.tflite import periods
from ferrule.formats.tflite.flexbuffer import write_map
from ferrule.formats.tflite.periods import refuse_periods
from ferrule.graph import (
    Array,
    DataType,
    Graph,
    GraphEditor,
    Layer,
    LayerType,
    Quantization,
    Shape,
    Tensor,
    TensorInfo,
    assemble,
)
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.recurrent.circular_buffer import CircularBufferDescriptor
from ferrule.optimizer import optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs

REAL = Quantization.of(0.05, -3)
RUNS = 13


def frame(*shape: int) -> TensorInfo:
    return TensorInfo("x", shape, DataType.INT8, quantization=REAL)


def stream(*cycles: int) -> bytes:
    """Return a streaming model: a convolution over the last frames, then two such parts behind buffers with periods."""
    random = np.random.default_rng(4)
    network = Network("stream")
    name = network.add_input(frame(1, 1, 1, 3))
    for _ in cycles:
        frames = network.add_circular_buffer_layer(name, 3)
        weights = random.integers(-127, 128, (3, 3, 1, 3)).astype(np.int8)
        name = network.add_conv2d_layer(frames, weights, weights_quantization=Quantization.of(0.01), quantization=REAL)
    network.set_outputs([name])
    return with_periods(to_tflite(network), *cycles)


def with_periods(model: bytes, *cycles: int) -> bytes:
    """Return a model whose buffers have these periods, with 0 for none in the file."""
    written = write_map({"cycles_max": 1})
    for number in cycles:
        wanted = write_map({"cycles_max": 100 + number}).replace(bytes([100 + number]), bytes([number]))
        assert len(wanted) == len(written)
        model = model.replace(written, wanted, 1) if number != 1 else model.replace(written, b"#" * len(written), 1)
    return model.replace(b"#" * len(written), written)


def one(shape: Shape, slots: int) -> Network:
    network = Network("one")
    network.add_input(frame(*shape))
    network.set_outputs([network.add_circular_buffer_layer("x", slots)])
    return network


def samples(network: Graph) -> list[list[Array]]:
    return [random_inputs(network, run) for run in range(RUNS)]


@pytest.mark.parametrize("cycles", [(1,), (2,), (1, 2), (3, 1), (2, 2)])
def test_runs_that_end_a_period_equal_tflm_and_others_repeat_its_result(cycles: tuple[int, ...]) -> None:
    model = stream(*cycles)
    network = load(model)
    network.validate()
    inputs, state = samples(network), network.initial_state()
    previous = [np.full(info.shape, -3, np.int8) for info in network.outputs]
    for run, (given, wanted) in enumerate(zip(inputs, tflm_sequence(model, inputs), strict=True), 1):
        got = network.run(given, state=state)
        assert_array_equal(got[0], previous[0] if run % int(np.prod(cycles)) else wanted[0])
        previous = got
    assert graph_differences(network, load(to_tflite(network))) == []


def test_a_loaded_network_counts_from_its_reset() -> None:
    network = load(stream(2, 2))
    inputs, state = samples(network), network.initial_state()
    wanted = [network.run(each, state=state)[0] for each in inputs]
    with Runtime() as runtime:
        number = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry))
        for _ in range(2):
            for given, expected in zip(inputs, wanted, strict=True):
                assert_array_equal(runtime.enqueue_workload(number, given)[0], expected)
            runtime.reset_state(number)


@pytest.mark.parametrize(("slots", "cycles"), [(5, 1), (13, 1), (4, 2), (6, 2)])
def test_without_a_period_in_the_file_it_is_that_of_tflm(slots: int, cycles: int) -> None:
    network = one((1, 1, 2, 3), slots)
    model = with_periods(to_tflite(network), 0)
    descriptor = load(model).layers[0].descriptor
    assert descriptor == CircularBufferDescriptor(slots=slots, cycles=cycles)
    inputs = samples(network)
    state = load(model).initial_state()
    for given, wanted in zip(inputs, tflm_sequence(model, inputs), strict=True):
        assert_array_equal(load(model).run(given, state=state)[0], wanted[0])


def test_what_is_ambiguous_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="depends on other models") as caught:
        load(with_periods(to_tflite(one((1, 1, 2, 96), 4)), 0))
    assert "cycles_max" in str(caught.value.hint)


def test_a_period_in_a_subgraph_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="expected it in the model itself"):
        refuse_periods(load(stream(2)))
    refuse_periods(load(stream(1)))


@pytest.mark.parametrize(
    ("shape", "message"), [((1, 2, 1, 3), "expected .1, 1, width, depth."), ((1, 3), "expected 4 axes")]
)
def test_frames_that_are_refused(shape: Shape, message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        one(shape, 4)


def test_many_periods_are_refused() -> None:
    assert load(stream(*[2] * 7)).layers
    with pytest.raises(UnsupportedError, match="8 CIRCULAR_BUFFER end runs early, expected at most 7"):
        load(stream(*[2] * 8))


def counted(*, kept: bool = False) -> Network:
    """Return a buffer with a period of 2 runs and behind it `sum`, of its frames and those of an input or a state."""
    network = Network("counted")
    network.add_input(frame(1, 1, 1, 3))
    old = frame(1, 3, 1, 3)
    network.add_state(replace(old, name="frames"), np.full(old.shape, -3, np.int8))
    network.add_state(TensorInfo("count", (1,), DataType.INT32), np.zeros(1, np.int32))
    outputs = ("window", "frames_next", "count_next")
    buffer = Layer(
        "buffer",
        LayerType.CIRCULAR_BUFFER,
        CircularBufferDescriptor(slots=3, cycles=2),
        inputs=("x", "frames", "count"),
        outputs=outputs,
    )
    infos = [replace(old, name="window"), replace(old, name="frames_next"), replace(network.info("count"), name="")]
    network.add_layer(buffer, [replace(info, name=name) for info, name in zip(infos, outputs, strict=True)])
    network.set_state("frames", "frames_next")
    network.set_state("count", "count_next")
    other = replace(old, name="other")
    if kept:
        network.add_state(other, np.full(old.shape, 7, np.int8))
    else:
        network.add_input(other)
    network.add_add_layer("window", "other", quantization=REAL, name="sum")
    if kept:
        network.set_state("other", "sum")
    return network


def test_only_outputs_behind_a_period_that_no_state_holds_are_held() -> None:
    for kept, outputs, held in (
        (False, ["sum"], ["sum_held"]),
        (False, ["window", "sum", "window"], ["sum_held"]),
        (True, ["sum"], []),
        (True, ["window", "sum"], []),
    ):
        network = counted(kept=kept)
        network.set_outputs(outputs)
        waiting = periods.with_periods(network)
        assert [info.name for info in waiting.outputs] == outputs
        states = [state.name for state in network.states]
        assert [state.name for state in waiting.states] == [*states, *held]
        (chosen,) = (layer for layer in waiting.layers if layer.type is LayerType.IF)
        assert chosen.outputs == ("sum",)
        assert [state.name for state in periods.without_periods(waiting).states] == states


def with_if(**changed: object) -> Network:
    """Return a network that ends with an IF behind a period, with other fields, branches, or another comparison."""
    network = counted()
    network.add_input(TensorInfo("bool", (1,), DataType.BOOL))
    network.add_input(TensorInfo("number", (1,), DataType.INT32))
    network.add_constant_array("one", np.ones(1, np.int32))
    network.set_outputs(["sum"])
    editor = GraphEditor(periods.with_periods(network))
    compared, chosen = list(editor.layers())[-2:]
    assert (compared.inputs, chosen.inputs) == (("count_next", "period_begin"), ("buffer_is_due", *CAPTURED))
    for name, value in changed.items():
        if name in {"then_branch", "else_branch"}:
            chosen = replace(chosen, descriptor=replace(chosen.descriptor, **{name: value}))  # type: ignore[arg-type]
        elif name == "chosen":
            chosen = replace(chosen, inputs=value)  # type: ignore[arg-type]
        else:
            compared = replace(compared, **{name: value})  # type: ignore[arg-type]
    editor.set_tensor(Tensor(network.info("one"), np.ones(1, np.int32)))
    for layer in (compared, chosen):
        editor.replace_layer(layer)
    changed_network = network_of(editor.finish())
    changed_network.validate()
    return changed_network


CAPTURED = ("window", "other", "sum_held")
"""The inputs of both branches."""


def branch(inputs: Sequence[str], output: str, *, add: bool = False) -> Graph:
    """Return a graph that returns one of its inputs, its sum of the first two, or the constant `five`."""
    info = frame(1, 3, 1, 3)
    tensors = {name: Tensor(replace(info, name=name)) for name in (*inputs, output)}
    tensors["five"] = Tensor(replace(info, name="five"), np.full(info.shape, 5, np.int8))
    layer = Layer("sum", LayerType.ADD, BinaryDescriptor(), inputs=tuple(inputs[:2]), outputs=(output,))
    layers = [layer] if add else []
    return assemble("branch", inputs=inputs, outputs=[output], layers=layers, tensors=tensors)


@pytest.mark.parametrize(
    "changed",
    [
        {"type": LayerType.NOT_EQUAL},
        {"inputs": ("number", "period_begin")},
        {"inputs": ("count_next", "number")},
        {"inputs": ("count_next", "one")},
        {"chosen": ("bool", *CAPTURED)},
        {"chosen": ("buffer_is_due", "other", "window", "sum_held")},
        {"then_branch": branch(CAPTURED, "total", add=True)},
        {"else_branch": branch(CAPTURED, "window")},
        {"else_branch": branch(CAPTURED, "five")},
        {"else_branch": branch(CAPTURED, "total", add=True)},
        {"else_branch": branch(CAPTURED[::-1], "sum_held")},
    ],
)
def test_another_if_behind_a_period_cannot_be_written(changed: dict[str, object]) -> None:
    with pytest.raises(UnsupportedError, match=r"layer 'buffer': .* expected an IF with all layers behind it"):
        to_tflite(with_if(**changed))


def test_what_is_written_repeats_the_outputs_of_the_run_before() -> None:
    for network in (with_if(), with_if(else_branch=branch(("a", "b", "c"), "c"))):
        written = load(to_tflite(network))
        state, other = network.initial_state(), written.initial_state()
        for given in samples(network):
            assert_array_equal(written.run(given, state=other)[0], network.run(given, state=state)[0])


def test_an_output_before_the_first_period_is_that_of_a_file() -> None:
    """A file has no place for the initial value of an output that only the runs that end early repeat."""
    network = with_if()
    held = next(state for state in network.states if state.name == "sum_held")
    assert (held.initial == -3).all()
    for value, kept in ((-3, True), (4, False)):
        initial = np.full(held.initial.shape, value, np.int8)
        states = [replace(state, initial=initial) if state is held else state for state in network.states]
        changed = assemble(
            network.name,
            inputs=[info.name for info in network.inputs],
            outputs=["sum"],
            layers=network.layers,
            tensors={tensor.info.name: tensor for tensor in network.tensors},
            states=states,
        )
        if kept:
            assert to_tflite(changed) == to_tflite(network)
            continue
        with pytest.raises(UnsupportedError, match="state 'sum_held' is output 'sum' until a period"):
            to_tflite(changed)


def test_an_initial_value_of_a_state_that_layers_read_is_written_and_others_do_not_matter() -> None:
    network = counted(kept=True)
    network.add_state(replace(frame(1, 3, 1, 3), name="unread"), np.full((1, 3, 1, 3), 9, np.int8))
    network.set_state("unread", "window")
    network.set_outputs(["sum"])
    written = load(to_tflite(periods.with_periods(network)))
    assert sorted(state.initial.max() for state in written.states) == [-3, 0, 7]


def test_layers_that_do_not_wait_for_a_period_cannot_be_written() -> None:
    network = load(stream(2))
    network.set_outputs([network.add_relu_layer(network.outputs[0].name)])
    with pytest.raises(UnsupportedError, match="expected an IF with all layers behind it"):
        to_tflite(network)
